//! What users speak, and what a connection and a request may take. Types and their defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a connection lives, and how it is used.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Connection {
    pub reuse: Reuse,
    /// Addresses of the other family are left out; without it, those of a family on which nobody
    /// answers before the start.
    pub family: Option<Family>,
    /// Close after so many requests.
    pub max_requests: Option<u32>,
    /// So many requests go out on a connection together before their responses are waited for.
    pub pipeline: u32,
    /// Who ends a connection that is not to be used again.
    pub close: Close,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            reuse: Reuse::default(),
            family: None,
            max_requests: None,
            pipeline: 1,
            close: Close::default(),
        }
    }
}

/// How a connection ends: who closes first has its port in TIME_WAIT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Close {
    /// The client closes at once.
    #[default]
    Client,
    /// After the last response the client waits for the server to close, a second at most.
    Wait,
    /// The client resets: nobody is in TIME_WAIT, and what was not sent yet is lost.
    Reset,
}

/// A family of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum HttpVersion {
    /// A connection that is to stay is asked for by `Connection: keep-alive`.
    #[serde(rename = "1.0")]
    V1_0,
    /// A connection stays unless one side says otherwise.
    #[default]
    #[serde(rename = "1.1")]
    V1_1,
    /// With TLS by ALPN, without it by prior knowledge.
    #[serde(rename = "2")]
    V2,
}

/// How HTTP/2 is spoken.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Http2Plan {
    /// Connections to each server that all users share: as many requests are under way on one at once
    /// as it has users. `null`: each user has one of its own.
    pub connections: Option<u32>,
    /// What the server may send on a stream before it is given more.
    pub stream_window_bytes: u32,
    /// The same for a whole connection.
    pub connection_window_bytes: u32,
    /// The dynamic table of header compression, either way.
    pub header_table_bytes: u32,
}

impl Default for Http2Plan {
    fn default() -> Self {
        Self {
            connections: None,
            stream_window_bytes: WIDEST_WINDOW_BYTES,
            connection_window_bytes: WIDEST_WINDOW_BYTES,
            header_table_bytes: prony_h2::hpack::DEFAULT_TABLE_BYTES,
        }
    }
}

/// More than any response: what comes is read at once, so that no window of the client bounds it.
const WIDEST_WINDOW_BYTES: u32 = (1 << 30) - 1;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    #[default]
    KeepAlive,
    PerRequest,
    /// Kept alive for one user of an open load: who leaves closes its connection, who arrives opens one.
    PerSession,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    pub connect_ms: f64,
    /// From the connection to the end of the TLS handshake; `connect_ms` when it is not set.
    pub tls_ms: Option<f64>,
    /// From the actual send to the last byte of the response.
    pub request_ms: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_ms: 5_000.0,
            tls_ms: None,
            request_ms: 30_000.0,
        }
    }
}

/// How much of a response is taken before it is given up.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest head, status line and final empty line included.
    pub header_bytes: u32,
    /// Memory budget per thread for incomplete responses: their heads, and bodies that are copied
    /// for captures.
    pub partial_response_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 64 * 1024,
            partial_response_bytes: 256 * 1024 * 1024,
        }
    }
}
