//! How long what had arrived lay in its socket before the thread looked at it, of a sample of the
//! reads. It must not know who says when it arrived.

use super::histogram::Durations;

sums! {
    /// The reads of one thread.
    ReceiveDelay {
        /// All of them, also those of which nothing else is known.
        reads: u64,
        /// From the arrival of their last packet to their receive time, where that is known.
        delays: Durations<2>,
    }
}

impl ReceiveDelay {
    #[inline]
    pub fn record(&mut self, at_ns: u64, arrived_ns: Option<u64>) {
        self.reads += 1;
        if let Some(arrived_ns) = arrived_ns {
            self.delays.record(at_ns.saturating_sub(arrived_ns));
        }
    }
}
