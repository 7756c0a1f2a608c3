//! What the server counts, per thread, and the totals over all threads that it
//! reports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::random::{FAULTS, Outcome};

const FIRST_STATUS: u16 = 200;
const STATUSES: usize = 400;

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Statuses([Count; STATUSES]);

impl Default for Statuses {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Count::default()))
    }
}

/// The counters of one thread; aligned so that two threads never write to one cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    pub requests: Count,
    pub stats_requests: Count,
    pub malformed: Count,
    pub abandoned: Count,
    pub connections: Count,
    pub connections_open: Count,
    pub accept_errors: Count,
    pub bytes_sent: Count,
    pub bytes_received: Count,
    pub tls_handshakes: Count,
    pub tls_resumptions: Count,
    pub tls_errors: Count,
    pub http2_connections: Count,
    pub streams_refused: Count,
    answered: Statuses,
    faults: [Count; FAULTS.len()],
}

impl Counters {
    pub fn answered(&self, status: u16) {
        let at = usize::from(status.wrapping_sub(FIRST_STATUS));
        if let Some(count) = self.answered.0.get(at) {
            count.add(1);
        }
    }

    pub fn fault(&self, outcome: Outcome) {
        if let Some(at) = FAULTS.iter().position(|(known, _)| *known == outcome) {
            self.faults[at].add(1);
        }
    }
}

/// The sums over all threads, as they are reported.
#[derive(Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Totals {
    /// Requests that were read whole, except those for `/__prony/stats`.
    pub requests: u64,
    pub connections: u64,
    pub connections_open: u64,
    /// On the wire.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// CPU time of the whole process.
    pub cpu_s: f64,
    /// Status code to responses begun.
    pub answered: BTreeMap<String, u64>,
    /// Kind of injected fault to requests that got it.
    pub faults: BTreeMap<&'static str, u64>,
    /// Not an HTTP/1.x request, or a connection that broke the rules of HTTP/2.
    pub malformed: u64,
    /// Requests whose client had gone before the response was due.
    pub abandoned: u64,
    pub stats_requests: u64,
    pub accept_errors: u64,
    /// The most requests that ever waited for one of `--workers`.
    pub longest_queue: u64,
    pub tls_handshakes: u64,
    pub tls_resumptions: u64,
    pub tls_errors: u64,
    /// Connections that speak HTTP/2.
    pub http2_connections: u64,
    /// Streams beyond `--streams`, reset with REFUSED_STREAM.
    pub streams_refused: u64,
}

impl Totals {
    /// Adds up `threads`; `cpu_s` and `longest_queue` are the caller's.
    pub fn over<'a>(threads: impl IntoIterator<Item = &'a Counters>) -> Self {
        let mut totals = Self::default();
        for thread in threads {
            totals.requests += thread.requests.get();
            totals.stats_requests += thread.stats_requests.get();
            totals.malformed += thread.malformed.get();
            totals.abandoned += thread.abandoned.get();
            totals.connections += thread.connections.get();
            totals.connections_open += thread.connections_open.get();
            totals.accept_errors += thread.accept_errors.get();
            totals.bytes_sent += thread.bytes_sent.get();
            totals.bytes_received += thread.bytes_received.get();
            totals.tls_handshakes += thread.tls_handshakes.get();
            totals.tls_resumptions += thread.tls_resumptions.get();
            totals.tls_errors += thread.tls_errors.get();
            totals.http2_connections += thread.http2_connections.get();
            totals.streams_refused += thread.streams_refused.get();
            let counted = |count: &u64| *count > 0;
            for (status, count) in (FIRST_STATUS..).zip(&thread.answered.0) {
                if let Some(count) = Some(count.get()).filter(counted) {
                    *totals.answered.entry(status.to_string()).or_default() += count;
                }
            }
            for ((_, name), count) in FAULTS.iter().zip(&thread.faults) {
                if let Some(count) = Some(count.get()).filter(counted) {
                    *totals.faults.entry(name).or_default() += count;
                }
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_over_threads() {
        let (one, two) = (Counters::default(), Counters::default());
        one.requests.add(2);
        two.requests.add(3);
        one.connections_open.add(1);
        one.connections_open.subtract(1);
        one.answered(200);
        two.answered(200);
        two.answered(599);
        two.answered(100);
        one.fault(Outcome::Reset);
        one.fault(Outcome::Normal);
        let totals = Totals::over([&one, &two]);
        assert_eq!((totals.requests, totals.connections_open), (5, 0));
        assert_eq!(
            totals.answered,
            BTreeMap::from([("200".to_owned(), 2), ("599".to_owned(), 1)])
        );
        assert_eq!(totals.faults, BTreeMap::from([("reset", 1)]));
    }
}
