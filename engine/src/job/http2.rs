//! How the users of a thread share connections of HTTP/2.

use prony_h2::Config;

use crate::pace::share::Share;
use crate::plan::{HttpVersion, Plan};

/// A load over HTTP/2.
#[derive(Debug, Clone, Copy)]
pub struct Http2Job {
    /// Of all engines; `None`: each user has one.
    connections: Option<u32>,
    pub client: Config,
}

impl Http2Job {
    pub fn new(plan: &Plan) -> Option<Self> {
        if plan.http_version != HttpVersion::V2 {
            return None;
        }
        let http2 = plan.http2.clone().unwrap_or_default();
        Some(Self {
            connections: http2.connections,
            client: Config {
                stream_window_bytes: http2.stream_window_bytes,
                connection_window_bytes: http2.connection_window_bytes,
                table_bytes: http2.header_table_bytes,
                max_head_bytes: plan.limits.header_bytes,
            },
        })
    }

    /// Connections that the users of a thread share.
    pub fn shared(&self, place: &Share, users: usize) -> usize {
        let connections = self
            .connections
            .map_or(users, |connections| place.of(connections));
        connections.clamp(1, users.max(1))
    }
}
