//! Connections of a span of time, of HTTP/1 and HTTP/2 alike.

sums! {
    /// Connections, and bytes on them: without TLS where users share them.
    #[derive(PartialEq, Eq)]
    Connections {
        attempts: u64,
        opened: u64,
        closed_by_server: u64,
        closed_by_client: u64,
        /// Of both, not with HTTP/2: the server's end came first.
        closed_first_by_server: u64,
        bytes_sent: u64,
        bytes_received: u64,
    }
}
