//! HTTP/1.1 as bytes and messages, without I/O: requests are written once, responses are read from
//! whatever pieces arrive. Nothing here knows of sockets, users or clocks.

pub mod captured;
pub mod expect;
mod folded;
pub mod head;
pub mod memory;
pub mod response;
