//! The events that `prony-engine run` writes, one JSON object per line. Types and their making from
//! counters; no decisions.

/// Declares an event, or a part of one: its fields, each with what it is made of.
macro_rules! report {
    ($(#[$about:meta])* $name:ident($($from:ident: $kind:ty),*) {
        $($(#[$doc:meta])* $field:ident: $shown:ty = $made:expr,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Serialize, JsonSchema)]
        pub struct $name { $($(#[$doc])* pub $field: $shown,)* }

        impl $name {
            pub fn new($($from: $kind),*) -> Self {
                Self { $($field: $made,)* }
            }
        }
    };
}

mod counters;
mod histogram;
mod response;
mod window;

use std::collections::BTreeMap;

use prony_script::{Figures, Printed};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::counters::CounterReport;
pub use self::histogram::HistogramReport;
pub use self::response::{ResponseReport, Responses};
pub use self::window::{ThreadReport, WindowReport, WindowSpan};
use crate::fault::Fault;
use crate::log::LogReport;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::edges::Edges;
use crate::measure::interval::IntervalRow;
use crate::script::Script;
use crate::tls::config::TlsReady;
use crate::units::ms;

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

report! {
    /// What ended in one interval, over all threads.
    Interval(row: &IntervalRow, from_ns: u64, started_ns: u64, open: bool, adds_up: bool) {
        /// End of the row, after the start of the run.
        t_ms: f64 = ms(row.to_ns - started_ns),
        duration_ms: f64 = ms(row.to_ns - from_ns),
        /// Whether the whole row lies in the measured window.
        in_window: bool = !row.outside_window,
        completed: u64 = row.counters.completed,
        failed: u64 = row.counters.failed,
        errors: BTreeMap<ErrorKind, u64> = row.counters.errors.clone(),
        bytes_received: u64 = row.counters.connections.bytes_received,
        /// At the end of the row.
        in_flight: u64 = row.in_flight,
        users: u64 = row.users,
        connections_open: u64 = row.connections_open,
        connections_opened: u64 = row.counters.connections.opened,
        mean_ns: Option<u64> = row.service_time.mean_ns(),
        p50_ns: Option<u64> = row.service_time.quantile_ns(0.5),
        p90_ns: Option<u64> = row.service_time.quantile_ns(0.9),
        p99_ns: Option<u64> = row.service_time.quantile_ns(0.99),
        max_ns: Option<u64> = row.service_time.max_ns(),
        /// CPU time of the threads divided by their wall time: 1 when all are busy all the time.
        client_cpu: f64 = row.cpu_ns as f64 / row.wall_ns.max(1) as f64,
        loop_lag_p99_ns: Option<u64> = row.loop_lag.quantile_ns(0.99),
        sent: u64 = row.counters.sent,
        /// Open load: requests that became due in the row.
        offered: Option<u64> = open.then_some(row.counters.offered),
        /// Open load: arrivals that found no place.
        blocked: Option<u64> = open.then_some(row.counters.blocked),
        /// Of the requests that ended in the row; only with a `share`.
        #[serde(skip_serializing_if = "Option::is_none")]
        service_time: Option<HistogramReport> = adds_up
            .then(|| HistogramReport::new(&row.service_time))
            .flatten(),
        /// Open load: from the intended send, of what ended in the row.
        latency_p50_ns: Option<u64> = row.latency.quantile_ns(0.5),
        latency_p99_ns: Option<u64> = row.latency.quantile_ns(0.99),
        /// Open load: actual minus intended send, of what was sent in the row.
        send_lag_p99_ns: Option<u64> = row.send_lag.quantile_ns(0.99),
    }
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
    /// Of a run that a command ended while it was being prepared: nothing was sent.
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

report! {
    /// What a script did beside its requests.
    ScriptReport(script: &Script, figures: Figures, printed: Printed) {
        /// Its interpreters that sent requests.
        threads: usize = script.threads(),
        /// It was called for every send; otherwise its request was fixed before the load.
        dynamic: bool = script.dynamic,
        /// Requests in the first piece that it sent.
        pipeline: u32 = script.pipeline,
        /// File, line and reason.
        error: Option<String> = script.error(),
        /// What it counted itself, by name; only of one that is called by blocks.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        counters: BTreeMap<String, u64> = figures.counters,
        /// How often each thing happened of which it asked for the rate.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        rates: BTreeMap<String, u64> = figures.rates,
        /// Values that it gave, by name: each, rounded to a tenth, with how often.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        histograms: BTreeMap<String, Vec<(f64, u64)>> = figures
            .histograms
            .into_iter()
            .map(|(name, values)| (name, in_tenths(values)))
            .collect(),
        /// What it printed before the load, during it, and in `done`.
        printed_setup: String = printed.setup,
        printed_run: String = printed.run,
        printed_done: String = printed.done,
        /// More was printed than is kept.
        printed_left_out: bool = printed.left_out,
    }
}

fn in_tenths(values: BTreeMap<i64, u64>) -> Vec<(f64, u64)> {
    let values = values.into_iter();
    values
        .map(|(tenths, count)| (tenths as f64 / 10.0, count))
        .collect()
}

/// Something that ended the run before it could be finished.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorEvent {
    /// `plan`: it cannot be run; `internal`: the instrument itself failed.
    pub kind: String,
    pub message: String,
}
