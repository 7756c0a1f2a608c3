//! What happened on the connections of HTTP/2 in a span of time, and its sum, as an event shows it.
//! Plain numbers; units are in the names.

use std::collections::BTreeMap;

use prony_h2::ErrorCode;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::connections::Connections;
use crate::units;

sums! {
    /// Connections and streams of HTTP/2, and what held requests back.
    #[derive(PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "Http2Report")]
    Http2Figures {
        /// Among those of all connections.
        #[serde(skip)]
        connections: Connections,
        streams_opened: u64,
        /// RST_STREAM of the server, by its code.
        #[serde(serialize_with = "by_name")]
        #[schemars(with = "BTreeMap<String, u64>")]
        resets_received: BTreeMap<u32, u64>,
        /// How many of them were REFUSED_STREAM.
        streams_refused: u64,
        /// Streams on which the server broke the protocol, by the code that was sent to it.
        #[serde(serialize_with = "by_name")]
        #[schemars(with = "BTreeMap<String, u64>")]
        stream_errors: BTreeMap<u32, u64>,
        /// GOAWAY of the server, by its code.
        #[serde(serialize_with = "by_name")]
        #[schemars(with = "BTreeMap<String, u64>")]
        goaways_received: BTreeMap<u32, u64>,
        /// Connections on which the server broke the protocol, by the code that was sent to it.
        #[serde(serialize_with = "by_name")]
        #[schemars(with = "BTreeMap<String, u64>")]
        connection_errors: BTreeMap<u32, u64>,
        /// Requests that GOAWAY said were not looked at.
        streams_unprocessed: u64,
        pings_received: u64,
        settings_received: u64,
        /// Header lists as RFC 9113 counts them (section 6.5.2), and what was sent of them.
        header_list_bytes_sent: u64,
        header_block_bytes_sent: u64,
        header_list_bytes_received: u64,
        header_block_bytes_received: u64,
        /// Fields of the lists received, each of which counts 32 bytes beside its name and value.
        header_fields_received: u64,
        /// The smallest SETTINGS_MAX_CONCURRENT_STREAMS of the server; `null`: it named none.
        max_concurrent_streams: Option<u32> = smallest,
        /// Requests that waited in the client for a stream: those of a new connection until the server's
        /// SETTINGS come, and those beyond `max_concurrent_streams`. Their service time counts it.
        stream_waits: u64,
        #[serde(rename = "stream_wait_sum_s", serialize_with = "seconds")]
        #[schemars(with = "f64")]
        stream_wait_ns: u128,
        #[serde(rename = "stream_wait_max_ms", serialize_with = "ms")]
        #[schemars(with = "f64")]
        longest_stream_wait_ns: u64 = longest,
        /// Bodies of requests that waited for the server's windows.
        send_blocks: u64,
        #[serde(rename = "send_blocked_sum_s", serialize_with = "seconds")]
        #[schemars(with = "f64")]
        send_blocked_ns: u128,
        #[serde(rename = "send_blocked_max_ms", serialize_with = "ms")]
        #[schemars(with = "f64")]
        longest_send_block_ns: u64 = longest,
        /// How often the server had used up a window of the client, and had to wait for more.
        receive_window_used_up: u64,
    }
}

fn longest(mine: &mut u64, other: &u64) {
    *mine = (*mine).max(*other);
}

pub fn smallest(mine: &mut Option<u32>, other: &Option<u32>) {
    *mine = mine.iter().chain(other).min().copied();
}

fn by_name<S: Serializer>(counts: &BTreeMap<u32, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut named = BTreeMap::new();
    for (code, count) in counts {
        *named.entry(ErrorCode(*code).name()).or_insert(0) += count;
    }
    named.serialize(serializer)
}

fn seconds<S: Serializer>(ns: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(units::seconds(*ns))
}

fn ms<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(units::ms(*ns))
}

impl Http2Figures {
    /// RST_STREAM of the server.
    pub fn was_reset(&mut self, code: ErrorCode) {
        *self.resets_received.entry(code.0).or_default() += 1;
        self.streams_refused += u64::from(code == ErrorCode::REFUSED_STREAM);
    }

    pub fn waited_for_stream(&mut self, ns: u64) {
        self.stream_waits += 1;
        self.stream_wait_ns += u128::from(ns);
        longest(&mut self.longest_stream_wait_ns, &ns);
    }

    pub fn was_blocked(&mut self, ns: u64) {
        self.send_blocks += 1;
        self.send_blocked_ns += u128::from(ns);
        longest(&mut self.longest_send_block_ns, &ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sum;

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
