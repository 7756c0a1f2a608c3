//! The reference server on its epoll loop.

mod serve;
mod serve_support;

/// The loop that this run of the suite is about.
const DRIVER: &str = "epoll";
