//! What the scheduler counted of a thread. A value; who reads it is not its business.

use std::ops::{AddAssign, Sub};

/// Since the thread was started, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// How long it was runnable and did not run.
    pub run_delay_ns: u64,
    /// How often it was put on a CPU.
    pub timeslices: u64,
}

impl Sub for Scheduled {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            run_delay_ns: self.run_delay_ns.saturating_sub(before.run_delay_ns),
            timeslices: self.timeslices.saturating_sub(before.timeslices),
        }
    }
}

impl AddAssign for Scheduled {
    fn add_assign(&mut self, more: Self) {
        self.run_delay_ns += more.run_delay_ns;
        self.timeslices += more.timeslices;
    }
}
