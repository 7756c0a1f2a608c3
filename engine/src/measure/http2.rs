//! What happened on the connections of HTTP/2 in a span of time, and its sum. Plain numbers; units are
//! in the names.

use std::collections::BTreeMap;

/// Figures of one thread over one span, or of many added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Http2Figures {
    pub connect_attempts: u64,
    pub connections_opened: u64,
    pub connections_closed_by_server: u64,
    pub connections_closed_by_client: u64,
    /// Frames, without TLS.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub streams_opened: u64,
    /// RST_STREAM of the server, by code.
    pub resets_received: BTreeMap<u32, u64>,
    /// Streams on which the server broke the protocol, by the code of our RST_STREAM.
    pub stream_errors: BTreeMap<u32, u64>,
    /// GOAWAY of the server, by code.
    pub goaways_received: BTreeMap<u32, u64>,
    /// Connections on which the server broke the protocol, by the code of our GOAWAY.
    pub connection_errors: BTreeMap<u32, u64>,
    /// Streams that GOAWAY said were not looked at.
    pub streams_unprocessed: u64,
    pub pings_received: u64,
    pub settings_received: u64,
    /// Header lists as RFC 9113, section 6.5.2, counts them, and the blocks that they became.
    pub header_list_bytes_sent: u64,
    pub header_block_bytes_sent: u64,
    pub header_list_bytes_received: u64,
    pub header_block_bytes_received: u64,
    pub header_fields_received: u64,
    /// The smallest SETTINGS_MAX_CONCURRENT_STREAMS of a server; `None`: none said any.
    pub max_concurrent_streams: Option<u32>,
    /// Requests that waited in the client because the server took no more streams at once, or for a
    /// connection to take the place of one that went away.
    pub stream_waits: u64,
    pub stream_wait_ns: u128,
    pub longest_stream_wait_ns: u64,
    /// Bodies that waited because the server's windows were used up.
    pub send_blocks: u64,
    pub send_blocked_ns: u128,
    pub longest_send_block_ns: u64,
    /// How often the server had used up a window of the client.
    pub receive_window_used_up: u64,
}

fn add_all(mine: &mut BTreeMap<u32, u64>, theirs: &BTreeMap<u32, u64>) {
    for (code, count) in theirs {
        *mine.entry(*code).or_default() += count;
    }
}

impl Http2Figures {
    pub fn add(&mut self, other: &Self) {
        add_fields! { self, other;
            connect_attempts, connections_opened, connections_closed_by_server,
            connections_closed_by_client, bytes_sent, bytes_received, streams_opened,
            streams_unprocessed, pings_received, settings_received,
            header_list_bytes_sent, header_block_bytes_sent, header_list_bytes_received,
            header_block_bytes_received, header_fields_received, stream_waits,
            stream_wait_ns, send_blocks, send_blocked_ns, receive_window_used_up,
        }
        add_all(&mut self.resets_received, &other.resets_received);
        add_all(&mut self.stream_errors, &other.stream_errors);
        add_all(&mut self.goaways_received, &other.goaways_received);
        add_all(&mut self.connection_errors, &other.connection_errors);
        let limits = self.max_concurrent_streams.into_iter();
        self.max_concurrent_streams = limits.chain(other.max_concurrent_streams).min();
        self.longest_stream_wait_ns = self
            .longest_stream_wait_ns
            .max(other.longest_stream_wait_ns);
        self.longest_send_block_ns = self.longest_send_block_ns.max(other.longest_send_block_ns);
    }

    pub fn waited_for_stream(&mut self, ns: u64) {
        self.stream_waits += 1;
        self.stream_wait_ns += u128::from(ns);
        self.longest_stream_wait_ns = self.longest_stream_wait_ns.max(ns);
    }

    pub fn was_blocked(&mut self, ns: u64) {
        self.send_blocks += 1;
        self.send_blocked_ns += u128::from(ns);
        self.longest_send_block_ns = self.longest_send_block_ns.max(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_and_the_smallest_limit_and_the_longest_wait_stay() {
        let mut one = Http2Figures {
            streams_opened: 3,
            max_concurrent_streams: Some(100),
            ..Http2Figures::default()
        };
        one.resets_received.insert(7, 1);
        one.waited_for_stream(5);
        let mut other = Http2Figures {
            max_concurrent_streams: Some(1),
            ..one.clone()
        };
        other.waited_for_stream(9);
        let mut sum = Http2Figures::default();
        sum.add(&one);
        sum.add(&other);
        assert_eq!((sum.streams_opened, sum.resets_received[&7]), (6, 2));
        assert_eq!(sum.max_concurrent_streams, Some(1));
        assert_eq!(
            (
                sum.stream_waits,
                sum.stream_wait_ns,
                sum.longest_stream_wait_ns
            ),
            (3, 19, 9)
        );
    }
}
