//! Where a load goes, and where it comes from. Types and their defaults only.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the requests go.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Scheme, host and port, such as `http://127.0.0.1:8080`; or `unix:` and the path of a socket.
    pub url: String,
    /// Where connections go to instead of the host of the URL, in turn: hosts, each with a port or
    /// with that of the URL.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// How TLS is spoken; only with `https://`.
    pub tls: Option<Tls>,
    /// Where connections come from, in turn; the kernel chooses when there are none. One address
    /// has about 28,000 ports.
    #[serde(default)]
    pub source_addresses: Sources,
}

/// A server beside the target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherTarget {
    /// Scheme, host and port.
    pub url: String,
    /// Where connections go to instead of the host of the URL, in turn.
    #[serde(default)]
    pub addresses: Vec<String>,
}

/// How TLS is spoken with the target.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// A PEM file with the certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Takes any certificate for the server's own. `ready` says so.
    pub insecure: bool,
    /// A PEM file with the client's certificate chain; together with `client_key`.
    pub client_cert: Option<PathBuf>,
    /// A PEM file with the client's private key.
    pub client_key: Option<PathBuf>,
    /// The name that the server is asked for and that its certificate must hold; otherwise the host
    /// of the URL.
    pub sni: Option<String>,
    pub min_version: TlsVersion,
    pub max_version: TlsVersion,
    /// Whose sessions a new connection may resume.
    pub sessions: TlsSessions,
    /// Protocols offered by ALPN, the preferred first; an empty list offers none.
    pub alpn: Vec<String>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            ca: None,
            insecure: false,
            client_cert: None,
            client_key: None,
            sni: None,
            min_version: TlsVersion::V1_2,
            max_version: TlsVersion::V1_3,
            sessions: TlsSessions::User,
            alpn: vec!["http/1.1".to_owned()],
        }
    }
}

/// Who remembers TLS sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TlsSessions {
    /// Each user its own, by address, as clients do that are programs of their own.
    User,
    /// All users of a thread together, by address, as the connections of one program do.
    Shared,
    /// Nobody: every handshake is a full one.
    None,
}

/// A version of TLS.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub enum TlsVersion {
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}

/// Addresses of this host, as a list, or as a range such as `127.0.1.1-127.0.1.40`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Sources {
    List(Vec<String>),
    Range(String),
}

impl Default for Sources {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}
