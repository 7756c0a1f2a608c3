//! When the next thing is due: think times, starts and timers, as values and pure functions. No clock is read here.

pub mod ramp;
pub mod think;
pub mod wheel;
