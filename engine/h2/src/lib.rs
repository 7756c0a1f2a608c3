//! HTTP/2 (RFC 9113) without I/O: frames and header blocks (RFC 7541) in and out of bytes, and a
//! client's side of a connection. It knows nothing of sockets, clocks, users or plans.

mod client;
mod connection;
pub mod error;
mod fields;
pub mod frame;
mod head;
pub mod hpack;
#[cfg(any(test, feature = "properties"))]
pub mod properties;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use connection::{Client, Event, Tally};
pub use error::{ConnectionError, ErrorCode};
pub use fields::Fields;
pub use head::Head;
pub use hpack::encoder::Indexing;
pub use settings::Config;
