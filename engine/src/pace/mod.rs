//! When the next thing is due: arrivals, think times, starts, ends and timers, as values and pure
//! functions. No clock is read here.

pub mod arrivals;
pub mod lateness;
pub mod ramp;
pub mod rate;
pub mod share;
pub mod think;
pub mod wheel;
