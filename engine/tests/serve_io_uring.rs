//! The reference server on its io_uring loop.

mod serve;
mod serve_support;

/// The loop that this run of the suite is about.
const DRIVER: &str = "io_uring";
