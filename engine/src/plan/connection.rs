//! What users speak, and what a connection and a request may take. Types and their defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a connection lives, and how it is used.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    #[serde(default)]
    pub reuse: Reuse,
    /// Addresses of the other family are left out; without it, those of a family on which nobody
    /// answers before the start.
    #[serde(default)]
    pub family: Option<Family>,
    /// Close after so many requests.
    #[serde(default)]
    pub max_requests: Option<u32>,
    /// So many requests go out on a connection together before their responses are waited for.
    #[serde(default = "default_pipeline")]
    pub pipeline: u32,
    /// Who ends a connection that is not to be used again.
    #[serde(default)]
    pub close: Close,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            reuse: Reuse::default(),
            family: None,
            max_requests: None,
            pipeline: default_pipeline(),
            close: Close::default(),
        }
    }
}

fn default_pipeline() -> u32 {
    1
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
#[serde(deny_unknown_fields)]
pub struct Http2Plan {
    /// Connections to each server that all users share: as many requests are under way on one at once
    /// as it has users. `null`: each user has one of its own.
    #[serde(default)]
    pub connections: Option<u32>,
    /// What the server may send on a stream before it is given more.
    #[serde(default = "widest_window")]
    pub stream_window_bytes: u32,
    /// The same for a whole connection.
    #[serde(default = "widest_window")]
    pub connection_window_bytes: u32,
    /// The dynamic table of header compression, either way.
    #[serde(default = "usual_table")]
    pub header_table_bytes: u32,
}

impl Default for Http2Plan {
    fn default() -> Self {
        Self {
            connections: None,
            stream_window_bytes: widest_window(),
            connection_window_bytes: widest_window(),
            header_table_bytes: usual_table(),
        }
    }
}

/// More than any response: what comes is read at once, so that no window of the client bounds it.
fn widest_window() -> u32 {
    (1 << 30) - 1
}

fn usual_table() -> u32 {
    prony_h2::hpack::DEFAULT_TABLE_BYTES
}

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
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    #[serde(default = "default_connect_ms")]
    pub connect_ms: f64,
    /// From the connection to the end of the TLS handshake; `connect_ms` when it is not set.
    #[serde(default)]
    pub tls_ms: Option<f64>,
    /// From the actual send to the last byte of the response.
    #[serde(default = "default_request_ms")]
    pub request_ms: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_ms: default_connect_ms(),
            tls_ms: None,
            request_ms: default_request_ms(),
        }
    }
}

/// How much of a response is taken before it is given up.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The longest head, status line and final empty line included.
    #[serde(default = "default_header_bytes")]
    pub header_bytes: u32,
    /// Memory budget per thread for incomplete responses: their heads, and bodies that are copied
    /// for captures.
    #[serde(default = "default_partial_response_bytes")]
    pub partial_response_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: default_header_bytes(),
            partial_response_bytes: default_partial_response_bytes(),
        }
    }
}

fn default_header_bytes() -> u32 {
    64 * 1024
}

fn default_partial_response_bytes() -> u64 {
    256 * 1024 * 1024
}

fn default_connect_ms() -> f64 {
    5_000.0
}

fn default_request_ms() -> f64 {
    30_000.0
}
