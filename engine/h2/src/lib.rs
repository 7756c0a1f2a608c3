//! HTTP/2 (RFC 9113) without I/O: frames and header blocks (RFC 7541) in and out of bytes, and the
//! client's side of a connection. It knows nothing of sockets, clocks, users or plans.

pub mod client;
pub mod error;
pub mod frame;
mod head;
pub mod hpack;
#[cfg(any(test, feature = "properties"))]
pub mod properties;
mod request;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use client::{Client, Config, Event};
pub use error::{ConnectionError, ErrorCode};
pub use head::Head;
pub use hpack::encoder::Indexing;
pub use request::Request;
