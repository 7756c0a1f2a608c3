//! The events that the server prints, one JSON object per line.

use std::io::Write;

use serde::Serialize;

use super::counters::Totals;

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Listening(Listening),
    Finished(Box<Finished>),
}

/// The server accepts connections.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Listening {
    pub address: String,
    pub pid: u32,
    pub version: &'static str,
    pub seed: u64,
    pub tls: bool,
    pub http2: bool,
    pub threads: Vec<ThreadStart>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ThreadStart {
    pub cpu: Option<usize>,
    pub pinned: bool,
}

/// The server has stopped.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Finished {
    pub reason: Reason,
    pub elapsed_s: f64,
    #[serde(flatten)]
    pub totals: Totals,
    pub threads: Vec<ThreadReport>,
}

#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Signal,
    StdinClosed,
}

/// What one thread did; its CPU time is that of the thread alone.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ThreadReport {
    pub cpu: Option<usize>,
    pub cpu_s: f64,
    pub requests: u64,
    pub connections: u64,
}

impl Event {
    pub fn print(&self) -> std::io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}
