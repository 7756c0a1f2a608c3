//! What all threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::ServerConfig;

use super::behaviour::Behaviour;
use super::clock::{self, Clock};
use super::counters::{Counters, Totals};
use super::options::Http2Limits;
use super::recorder::Recorder;
use super::workers::Workers;

#[derive(Debug)]
pub struct Shared {
    pub behaviour: Behaviour,
    pub clock: Clock,
    /// By thread.
    pub counters: Vec<Arc<Counters>>,
    pub workers: Option<Workers>,
    pub tls: Option<Arc<ServerConfig>>,
    /// HTTP/2 is spoken beside HTTP/1.1.
    pub http2: Option<Http2Limits>,
    /// Connections are served by the bare loop.
    pub bare: bool,
    pub recorder: Option<Recorder>,
    /// The server is to end.
    pub stop: AtomicBool,
}

impl Shared {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub fn totals(&self) -> Totals {
        Totals {
            cpu_s: clock::process_cpu_ns() as f64 / 1e9,
            longest_queue: self.workers.as_ref().map_or(0, Workers::longest_queue),
            ..Totals::over(self.counters.iter().map(AsRef::as_ref))
        }
    }

    /// The totals as one line of JSON.
    pub fn totals_json(&self) -> String {
        serde_json::to_string(&self.totals()).unwrap_or_default() + "\n"
    }
}
