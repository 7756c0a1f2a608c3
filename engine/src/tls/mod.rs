//! TLS for the client, by `rustls`: its configuration, and the state of one connection between
//! plain bytes and TLS records. It opens no socket and knows nothing of users or requests.

pub mod config;
pub mod session;
pub mod store;

/// What may be offered by ALPN: what the engine speaks.
pub const PROTOCOLS: [&str; 3] = ["http/1.1", "http/1.0", "h2"];

/// What a handshake ended with. Small, for it travels as an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secured {
    /// The protocol version and the cipher suite by their numbers at IANA.
    pub version: u16,
    pub cipher_suite: u16,
    /// The protocol that the server chose: its place in [`PROTOCOLS`], from 1; 0 for none.
    pub alpn: u8,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}
