//! The events that `prony-engine run` writes, one JSON object per line. Types and their making from
//! counters; no decisions.

mod counters;
mod histogram;
mod http2;
mod response;
mod window;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::counters::CounterReport;
pub use self::histogram::HistogramReport;
pub use self::response::{ResponseReport, Responses};
pub use self::window::{BodyReport, GapReport, StepReport, ThreadReport, WindowReport};
use crate::fault::Fault;
use crate::log::LogReport;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::edges::Edges;
use crate::script::Script;
use crate::tls::config::TlsReady;

/// One line on stdout.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Prepared(PreparedEvent),
    Ready(Ready),
    Interval(Interval),
    Mark(Mark),
    WindowOpened(WindowOpened),
    WindowClosed(WindowClosed),
    Finished(Box<Finished>),
    Error(ErrorEvent),
}

/// Of a plan whose `start` is `commanded`: the threads are set up and wait for the command.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Prepared")]
pub struct PreparedEvent {
    pub version: String,
    pub pid: u32,
    /// The clock of all instants in commands and events, now.
    pub monotonic_ns: u64,
}

/// The threads are set up and the load starts at the given instant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ready {
    pub version: String,
    pub driver: String,
    pub driver_reason: String,
    pub pid: u32,
    /// Where connections go, in turn; resolved once.
    pub addresses: Vec<String>,
    /// Addresses of the same names that are left out: before the start nobody answered on their family.
    pub unanswered: Vec<String>,
    pub transport: Transport,
    /// How TLS is spoken; `null` without it.
    pub tls: Option<TlsReady>,
    pub threads: Vec<ThreadReady>,
    /// Defects that the plan asked for; with any, no figure of the run counts.
    pub injected_faults: Vec<Fault>,
    /// What is emulated; with it, no figure of the run counts. Left out where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
    pub started_unix_ns: u64,
    pub started_monotonic_ns: u64,
}

/// What connections are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    /// Connections have no ports that could run out.
    Unix,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ThreadReady {
    /// `null` when no CPU was listed.
    pub cpu: Option<usize>,
    pub pinned: bool,
    /// Whether it goes before every ordinary thread of its CPU.
    pub realtime: bool,
}

/// What ended in one interval, over all threads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Interval {
    /// End of the row, after the start of the run.
    pub t_ms: f64,
    pub duration_ms: f64,
    /// Whether the whole row lies in the measured window.
    pub in_window: bool,
    pub completed: u64,
    pub failed: u64,
    pub errors: BTreeMap<ErrorKind, u64>,
    pub bytes_received: u64,
    /// At the end of the row.
    pub in_flight: u64,
    pub users: u64,
    pub connections_open: u64,
    pub connections_opened: u64,
    pub mean_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// CPU time of the threads divided by their wall time: 1 when all are busy all the time.
    pub client_cpu: f64,
    pub loop_lag_p99_ns: Option<u64>,
    pub sent: u64,
    /// Open load: requests that became due in the row.
    pub offered: Option<u64>,
    /// Open load: arrivals that found no place.
    pub blocked: Option<u64>,
    /// Of the requests that ended in the row; only with a `share`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<HistogramReport>,
    /// Open load: from the intended send, of what ended in the row.
    pub latency_p50_ns: Option<u64>,
    pub latency_p99_ns: Option<u64>,
    /// Open load: actual minus intended send, of what was sent in the row.
    pub send_lag_p99_ns: Option<u64>,
}

/// So many requests have completed since the start of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Mark {
    pub requests: u64,
    pub elapsed_ms: f64,
    pub mean_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub errors: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WindowOpened {
    pub t_ms: f64,
    pub monotonic_ns: u64,
    /// `null` for a window that lasts until the stop.
    pub duration_ms: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WindowClosed {
    pub t_ms: f64,
    pub monotonic_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Duration,
    TotalRequests,
    Iterations,
    /// The phases of an open load ended, and every request with them.
    Schedule,
    Stopped,
    /// The script made an error, see `script.error`.
    Script,
    /// One of a step with `ends_run_on_error`.
    RequestFailed,
    Signal,
    StdinClosed,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Finished {
    pub reason: Reason,
    pub elapsed_ms: f64,
    pub totals: CounterReport,
    /// `null` when no window was opened.
    pub window: Option<WindowReport>,
    /// `null` unless the plan asks for a log of its requests.
    pub log: Option<LogReport>,
    /// CPU time of the thread that read streamed files for request bodies, which is not part of the
    /// measuring threads' figures; `null` without such files.
    pub reader_cpu_s: Option<f64>,
    /// Rates in requests per second, rising, each with how often it was seen; `null` when the plan
    /// asks for none.
    pub rates: Option<Vec<(u64, u64)>>,
    /// `null` without a script.
    pub script: Option<ScriptReport>,
    /// What was last captured of each name of the plan's `report`; left out when it names none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Left out unless the plan asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<Vec<ResponseReport>>,
    /// As in `ready`.
    pub injected_faults: Vec<Fault>,
}

impl Finished {
    /// Of a run that was told to end while it was being prepared: nothing was sent.
    /// `injected_faults`: those of the plan, once it was read.
    pub fn without_a_load(reason: Reason, injected_faults: Vec<Fault>) -> Self {
        Self {
            reason,
            elapsed_ms: 0.0,
            totals: CounterReport::new(&Counters::default(), &Edges::default()),
            window: None,
            log: None,
            reader_cpu_s: None,
            rates: None,
            script: None,
            values: BTreeMap::new(),
            responses: None,
            injected_faults,
        }
    }
}

/// What a script did beside its requests.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScriptReport {
    /// Its interpreters that sent requests.
    pub threads: usize,
    /// It was called for every send; otherwise its request was fixed before the load.
    pub dynamic: bool,
    /// Requests in the first piece that it sent.
    pub pipeline: u32,
    /// File, line and reason.
    pub error: Option<String>,
    /// What it counted itself, by name; only of one that is called by blocks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// How often each thing happened of which it asked for the rate.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, u64>,
    /// Values that it gave, by name: each, rounded to a tenth, with how often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, Vec<(f64, u64)>>,
    /// What it printed before the load, during it, and in `done`.
    pub printed_setup: String,
    pub printed_run: String,
    pub printed_done: String,
    /// More was printed than is kept.
    pub printed_left_out: bool,
}

impl ScriptReport {
    pub fn new(script: &Script) -> Self {
        let printed = script.printed();
        let figures = script.figures();
        let spread = |values: BTreeMap<i64, u64>| {
            let values = values.into_iter();
            values
                .map(|(tenths, count)| (tenths as f64 / 10.0, count))
                .collect()
        };
        Self {
            counters: figures.counters,
            rates: figures.rates,
            histograms: figures
                .histograms
                .into_iter()
                .map(|(name, values)| (name, spread(values)))
                .collect(),
            threads: script.threads(),
            dynamic: script.dynamic,
            pipeline: script.pipeline,
            error: script.error(),
            printed_setup: printed.setup,
            printed_run: printed.run,
            printed_done: printed.done,
            printed_left_out: printed.left_out,
        }
    }
}

/// Something that ended the run before it could be finished.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorEvent {
    /// `plan`: it cannot be run; `internal`: the instrument itself failed.
    pub kind: String,
    pub message: String,
}
