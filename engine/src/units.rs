//! From one unit of time to another.

/// Nanoseconds as milliseconds.
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

/// The same of a difference, or of a sum of differences.
pub fn signed_seconds(ns: i128) -> f64 {
    ns as f64 / 1e9
}
