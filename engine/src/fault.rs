//! Faults that the client carries on request, so that a self-test can show that they are detected.
//! Which ones a run carries is part of its plan and of its output. It knows nothing of users or
//! requests.

use std::time::Duration;

pub use crate::plan::Fault;

/// How late timers fire with [`Fault::LateTimers`].
pub const LATE_NS: u64 = 20_000_000;

/// How long, and how often, a thread stands still with [`Fault::StalledThread`].
pub const STALL: Duration = Duration::from_millis(50);
pub const STALL_EVERY_NS: u64 = 1_000_000_000;

/// The faults of a run, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults(u8);

impl Faults {
    pub const NONE: Self = Self(0);

    pub fn new(faults: &[Fault]) -> Self {
        Self(faults.iter().fold(0, |bits, fault| bits | bit(*fault)))
    }

    /// Without faults this is `false` at compile time: [`crate::net::Driver::faults`] is then a
    /// constant.
    #[inline(always)]
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & bit(fault) != 0
    }
}

const fn bit(fault: Fault) -> u8 {
    1 << fault as u8
}
