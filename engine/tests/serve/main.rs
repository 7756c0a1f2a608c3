//! The suite of `prony-engine serve`, against the built binary and raw sockets.

mod bare;
mod faults;
mod http2;
mod lifecycle;
mod protocol;
#[path = "../serve_support/mod.rs"]
mod serve_support;
mod time;
mod wire;
