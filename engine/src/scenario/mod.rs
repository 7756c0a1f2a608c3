//! Scenarios: which request a user sends next, what it fills in, and what it keeps of the response.
//! Pure: it must not know of sockets or drivers, and reads no clock.

pub mod assemble;
mod block_check;
pub mod cache;
pub mod capture;
pub mod capture_source;
pub mod compile;
pub mod condition;
pub mod cookies;
mod date;
pub mod feeder;
pub mod filter;
pub mod fork;
pub mod names;
pub mod program;
pub mod redirect;
pub mod reported;
pub mod request;
pub mod resources;
mod set_cookie;
mod standard_url;
pub mod template;
pub mod vars;
pub mod walk;
