//! When the kernel took the last byte of each connection's last send, for plans with time parts.

use std::collections::VecDeque;

use super::sys::monotonic_ns;
use super::{Config, ConnId};

/// Not yet.
const NOT: u64 = 0;

/// By connection: when its last send was taken.
#[derive(Debug, Default)]
pub(super) struct SendTimes {
    at_ns: Vec<u64>,
}

impl SendTimes {
    pub(super) fn new(config: &Config) -> Self {
        let count = if config.times_sends {
            config.connections.max(1)
        } else {
            0
        };
        Self {
            at_ns: vec![NOT; count],
        }
    }

    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        !self.at_ns.is_empty()
    }

    #[inline]
    pub(super) fn clear(&mut self, conn: ConnId) {
        self.set(conn, NOT);
    }

    #[inline]
    pub(super) fn set(&mut self, conn: ConnId, at_ns: u64) {
        if let Some(slot) = self.at_ns.get_mut(conn as usize) {
            *slot = at_ns;
        }
    }

    #[inline]
    pub(super) fn set_now(&mut self, conn: ConnId) {
        if self.is_kept() {
            self.set(conn, monotonic_ns());
        }
    }

    pub(super) fn get(&self, conn: ConnId) -> Option<u64> {
        self.at_ns
            .get(conn as usize)
            .copied()
            .filter(|at_ns| *at_ns != NOT)
    }
}

/// By when completions had happened that are fetched in batches.
#[derive(Debug, Default)]
pub(super) struct CompletionTimes {
    /// Completions fetched since the start, the present batch included.
    fetched: u64,
    fetched_ns: u64,
    /// So many completions were there at this time, which was before they were fetched.
    seen: VecDeque<(u64, u64)>,
}

impl CompletionTimes {
    /// So many completions wait to be fetched now.
    pub(super) fn see(&mut self, waiting: usize) {
        let count = self.fetched + waiting as u64;
        self.seen.push_back((count, monotonic_ns()));
    }

    /// A batch of this length was fetched now; all before it have been returned.
    pub(super) fn fetch(&mut self, count: usize) {
        self.seen.retain(|(seen, _)| *seen > self.fetched);
        self.fetched += count as u64;
        self.fetched_ns = monotonic_ns();
    }

    /// By when the completion had happened behind which so many of the batch follow.
    pub(super) fn happened_ns(&self, behind: usize) -> u64 {
        let number = self.fetched - behind as u64;
        let seen = self.seen.iter().find(|(count, _)| *count >= number);
        seen.map_or(self.fetched_ns, |(_, at_ns)| *at_ns)
    }
}
