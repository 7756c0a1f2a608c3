//! What happened on the connections of HTTP/2, as an event shows it.

use std::collections::BTreeMap;

use prony_h2::ErrorCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::measure::http2::Http2Figures;
use crate::units::{ms, seconds};

/// Connections and streams of HTTP/2, and what held requests back.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Http2Report {
    pub streams_opened: u64,
    /// RST_STREAM of the server, by its code.
    pub resets_received: BTreeMap<String, u64>,
    /// How many of them were REFUSED_STREAM.
    pub streams_refused: u64,
    /// Streams on which the server broke the protocol, by the code that it was told.
    pub stream_errors: BTreeMap<String, u64>,
    /// GOAWAY of the server, by its code.
    pub goaways_received: BTreeMap<String, u64>,
    /// Connections on which the server broke the protocol, by the code that it was told.
    pub connection_errors: BTreeMap<String, u64>,
    /// Requests that GOAWAY said were not looked at.
    pub streams_unprocessed: u64,
    pub pings_received: u64,
    pub settings_received: u64,
    /// Header lists as RFC 9113 counts them (section 6.5.2), and what was sent of them.
    pub header_list_bytes_sent: u64,
    pub header_block_bytes_sent: u64,
    pub header_list_bytes_received: u64,
    pub header_block_bytes_received: u64,
    /// Fields of the lists received, each of which counts 32 bytes beside its name and value.
    pub header_fields_received: u64,
    /// The smallest SETTINGS_MAX_CONCURRENT_STREAMS of the server; `null`: it named none.
    pub max_concurrent_streams: Option<u32>,
    /// Requests that waited in the client for a stream: those of a new connection until the server's
    /// SETTINGS come, and those beyond `max_concurrent_streams`. Their service time counts it.
    pub stream_waits: u64,
    pub stream_wait_sum_s: f64,
    pub stream_wait_max_ms: f64,
    /// Bodies of requests that waited for the server's windows.
    pub send_blocks: u64,
    pub send_blocked_sum_s: f64,
    pub send_blocked_max_ms: f64,
    /// How often the server had used up a window of the client, and had to wait for more.
    pub receive_window_used_up: u64,
}

fn by_name(counts: &BTreeMap<u32, u64>) -> BTreeMap<String, u64> {
    let mut named = BTreeMap::new();
    for (code, count) in counts {
        *named.entry(ErrorCode(*code).name().to_owned()).or_default() += count;
    }
    named
}

impl Http2Report {
    pub fn new(figures: &Http2Figures) -> Self {
        let refused = figures.resets_received.get(&ErrorCode::REFUSED_STREAM.0);
        Self {
            streams_opened: figures.streams_opened,
            resets_received: by_name(&figures.resets_received),
            streams_refused: refused.copied().unwrap_or(0),
            stream_errors: by_name(&figures.stream_errors),
            goaways_received: by_name(&figures.goaways_received),
            connection_errors: by_name(&figures.connection_errors),
            streams_unprocessed: figures.streams_unprocessed,
            pings_received: figures.pings_received,
            settings_received: figures.settings_received,
            header_list_bytes_sent: figures.header_list_bytes_sent,
            header_block_bytes_sent: figures.header_block_bytes_sent,
            header_list_bytes_received: figures.header_list_bytes_received,
            header_block_bytes_received: figures.header_block_bytes_received,
            header_fields_received: figures.header_fields_received,
            max_concurrent_streams: figures.max_concurrent_streams,
            stream_waits: figures.stream_waits,
            stream_wait_sum_s: seconds(figures.stream_wait_ns),
            stream_wait_max_ms: ms(figures.longest_stream_wait_ns),
            send_blocks: figures.send_blocks,
            send_blocked_sum_s: seconds(figures.send_blocked_ns),
            send_blocked_max_ms: ms(figures.longest_send_block_ns),
            receive_window_used_up: figures.receive_window_used_up,
        }
    }
}
