//! The events that `prony-engine run` writes, one JSON object per line. Types and their making from counters; no decisions.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use rustls::{CipherSuite, ProtocolVersion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::log::LogReport;
use crate::measure::addresses::AddressFigures;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::gaps::Gap;
use crate::measure::histogram::Durations;
use crate::measure::steps::StepFigures;
use crate::net::address::Address;
use crate::scenario::compile::StepName;
use crate::script::Script;
use crate::tls::{PROTOCOLS, Secured};

/// Answers that are listed one by one.
const ANSWERS_LISTED: usize = 32;

/// One line on stdout.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Ready(Ready),
    Interval(Interval),
    Mark(Mark),
    WindowOpened(WindowOpened),
    WindowClosed(WindowClosed),
    Finished(Box<Finished>),
    Error(ErrorEvent),
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
    pub transport: Transport,
    /// How TLS is spoken; `null` without it.
    pub tls: Option<TlsReady>,
    pub threads: Vec<ThreadReady>,
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

/// What the handshakes of the run ask for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TlsReady {
    /// Any certificate is taken: who answers is not proved.
    pub insecure: bool,
    /// Whose certificates are trusted: `system`, `file` (target.tls.ca) or `any`.
    pub trust: String,
    /// The name in the certificate, and in the handshake where it is no IP address.
    pub server_name: String,
    pub resumption: bool,
    pub alpn: Vec<String>,
    pub client_certificate: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ThreadReady {
    /// `null` when no CPU was listed.
    pub cpu: Option<usize>,
    pub pinned: bool,
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
    /// Open load: from the intended send, of what ended in the row.
    pub latency_p50_ns: Option<u64>,
    pub latency_p99_ns: Option<u64>,
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
    /// Rates in requests per second, rising, each with how often it was seen; `null` when the plan asks for none.
    pub rates: Option<Vec<(u64, u64)>>,
    /// `null` without a script.
    pub script: Option<ScriptReport>,
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
    /// What it printed before the load, during it, and in `done`.
    pub printed_setup: String,
    pub printed_run: String,
    pub printed_done: String,
    /// More was printed than is kept.
    pub printed_left_out: bool,
}

impl ScriptReport {
    pub fn new(script: &Script) -> Self {
        let printed = script.shared().printed();
        Self {
            threads: script.threads(),
            dynamic: script.dynamic,
            pipeline: script.pipeline,
            error: script.shared().error(),
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

/// The counters of the whole run or of the window.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CounterReport {
    pub sent: u64,
    pub completed: u64,
    pub failed: u64,
    pub abandoned: u64,
    pub errors: BTreeMap<ErrorKind, u64>,
    /// In words, the first reason found, of the kinds of error that have one.
    pub error_reasons: BTreeMap<ErrorKind, String>,
    /// The head of an answer as it came, the first one of a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_head: Option<String>,
    pub status: BTreeMap<u16, u64>,
    pub answers: Vec<AnswerCount>,
    pub answers_other: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub connections_opened: u64,
    pub connections_closed_by_server: u64,
    pub connections_closed_by_client: u64,
    pub connect_attempts: u64,
    /// Connections and requests by address of the target.
    pub addresses: Vec<AddressReport>,
    pub tls_handshakes: u64,
    pub tls_resumptions: u64,
    /// What was agreed on in the handshakes, and how often.
    pub tls_agreed: Vec<TlsAgreed>,
    /// From the attempt to connect to the connection, of connections that were opened.
    pub connect_time: Option<HistogramReport>,
    /// From the connection to the end of the TLS handshake; never part of a service time.
    pub tls_time: Option<HistogramReport>,
    pub service_time_sum_s: f64,
    pub in_flight_integral_s: f64,
    pub clipped_cycle_s: f64,
    pub users: u64,
    /// ∫ users dt, from the change of their number alone.
    pub users_integral_s: f64,
    pub think_drawn_sum_s: f64,
    pub think_actual_sum_s: f64,
    pub think_count: u64,
    /// Actual less drawn; `null` without think times.
    pub think_overshoot: Option<HistogramReport>,
    pub eaddrnotavail: u64,
    pub emfile: u64,
    /// Open load: requests that became due.
    pub offered: Option<u64>,
    /// Open load: requests that were due for more than 10 ms at the end and not sent, or whose deadline had passed before they could be.
    pub due_unsent: Option<u64>,
    /// Open load: arrivals that found no place.
    pub blocked: Option<u64>,
    /// Open load of users who walk: those who found a place.
    pub sessions_begun: Option<u64>,
    /// Those of them who came to the end of their scenario.
    pub sessions_completed: Option<u64>,
}

/// What went to one address of the target.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AddressReport {
    pub address: String,
    pub connect_attempts: u64,
    pub connections_opened: u64,
    pub sent: u64,
}

impl AddressReport {
    fn new(address: &Address, figures: AddressFigures) -> Self {
        Self {
            address: address.to_string(),
            connect_attempts: figures.connect_attempts,
            connections_opened: figures.connections_opened,
            sent: figures.sent,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct TlsAgreed {
    pub version: String,
    pub cipher_suite: String,
    /// `null` when the server chose no protocol.
    pub alpn: Option<String>,
    pub count: u64,
}

impl TlsAgreed {
    fn new(agreed: Secured, count: u64) -> Self {
        let version = match ProtocolVersion::from(agreed.version) {
            ProtocolVersion::TLSv1_2 => "1.2".to_owned(),
            ProtocolVersion::TLSv1_3 => "1.3".to_owned(),
            other => format!("{other:?}"),
        };
        Self {
            version,
            cipher_suite: format!("{:?}", CipherSuite::from(agreed.cipher_suite)),
            alpn: usize::from(agreed.alpn)
                .checked_sub(1)
                .and_then(|place| PROTOCOLS.get(place).copied().map(str::to_owned)),
            count,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AnswerCount {
    pub status: u16,
    pub body_bytes: u64,
    pub count: u64,
}

/// The measured window.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WindowReport {
    #[serde(flatten)]
    pub counters: CounterReport,
    pub opened_ms: f64,
    pub duration_s: f64,
    /// False when the run stopped before the end of the window.
    pub complete: bool,
    /// Of the requests that completed or timed out.
    pub service_time: Option<HistogramReport>,
    /// By step name; empty when the scenarios have a single one.
    pub steps: Vec<StepReport>,
    /// By the name of a transaction: the sum of the service times of its requests. One that was not walked to its end is left out.
    pub transactions: Vec<StepReport>,
    /// Open load: from the intended send; of the same requests.
    pub latency: Option<HistogramReport>,
    /// Open load: from the intended send to the actual one, or to the attempt to connect where no connection was ready.
    pub send_lag: Option<HistogramReport>,
    /// Open load of users who walk: from the intended arrival to the end of the last answer, of those who came to the end.
    pub session_time: Option<HistogramReport>,
    /// With `parts`: from the send to the moment when the kernel had taken the last byte of the request; of answered requests.
    pub send_time: Option<HistogramReport>,
    /// With `parts`: from there to the first byte of the answer.
    pub wait_time: Option<HistogramReport>,
    /// With `parts`: from there to the last byte.
    pub receive_time: Option<HistogramReport>,
    /// Poisson arrivals: how many gaps between sends were tested.
    pub arrival_gaps: Option<u64>,
    /// Kolmogorov-Smirnov distance of these gaps from the exponential distribution of the asked rate.
    pub arrival_gaps_ks: Option<f64>,
    pub threads: Vec<ThreadReport>,
    pub gaps: Vec<GapReport>,
    pub gaps_total: u64,
}

/// The requests of one step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepReport {
    pub scenario: String,
    pub name: String,
    pub completed: u64,
    pub failed: u64,
    pub status: BTreeMap<u16, u64>,
    pub service_time: Option<HistogramReport>,
}

impl StepReport {
    pub fn new(name: &StepName, figures: &StepFigures) -> Self {
        Self {
            scenario: name.scenario.clone(),
            name: name.step.clone(),
            completed: figures.completed,
            failed: figures.failed,
            status: figures.status.iter().copied().collect(),
            service_time: HistogramReport::new(&figures.service_time),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ThreadReport {
    pub cpu: Option<usize>,
    pub cpu_s: f64,
    pub wall_s: f64,
    pub loops: u64,
    pub loop_lag_p50_ns: Option<u64>,
    pub loop_lag_p99_ns: Option<u64>,
    pub loop_lag_max_ns: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct GapReport {
    pub start_ms: f64,
    pub duration_ms: f64,
    pub in_flight: u64,
}

/// A histogram, with its V2 compressed encoding in base64.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistogramReport {
    pub unit: String,
    pub count: u64,
    pub mean_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Samples above an hour, recorded as an hour.
    pub saturated: u64,
    pub v2: String,
}

impl HistogramReport {
    pub fn new(durations: &Durations) -> Option<Self> {
        let histogram = durations.filled()?;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .ok()?;
        Some(Self {
            unit: "ns".to_owned(),
            count: durations.count(),
            mean_ns: durations.mean_ns()?,
            min_ns: durations.min_ns()?,
            max_ns: durations.max_ns()?,
            saturated: durations.saturated(),
            v2: BASE64.encode(bytes),
        })
    }
}

impl CounterReport {
    /// `cycle_ns`: clipped cycles; `users`: alive at the end.
    pub fn new(counters: &Counters, cycle_ns: u128, users: u64) -> Self {
        let (answers, answers_other) = counters.answers.most_frequent(ANSWERS_LISTED);
        Self {
            sent: counters.sent,
            completed: counters.completed,
            failed: counters.failed,
            abandoned: counters.abandoned,
            errors: counters.errors().collect(),
            error_reasons: counters.reasons.clone(),
            first_head: counters.first_head.clone(),
            status: counters.answers.by_status(),
            answers: answers
                .into_iter()
                .map(|((status, body_bytes), count)| AnswerCount {
                    status,
                    body_bytes,
                    count,
                })
                .collect(),
            answers_other,
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
            connections_opened: counters.connections_opened,
            connections_closed_by_server: counters.connections_closed_by_server,
            connections_closed_by_client: counters.connections_closed_by_client,
            connect_attempts: counters.connect_attempts,
            addresses: Vec::new(),
            tls_handshakes: counters.tls_handshakes,
            tls_resumptions: counters.tls_resumptions,
            tls_agreed: counters
                .tls_agreed
                .iter()
                .map(|(agreed, count)| TlsAgreed::new(*agreed, *count))
                .collect(),
            connect_time: HistogramReport::new(&counters.connect_time),
            tls_time: HistogramReport::new(&counters.tls_time),
            service_time_sum_s: seconds(counters.service_time_ns),
            in_flight_integral_s: seconds(counters.in_flight_integral_ns),
            clipped_cycle_s: seconds(cycle_ns),
            users,
            users_integral_s: seconds(counters.users_integral_ns),
            think_drawn_sum_s: seconds(counters.think_drawn_ns),
            think_actual_sum_s: seconds(counters.think_actual_ns),
            think_count: counters.think_count,
            think_overshoot: HistogramReport::new(&counters.think_overshoot),
            eaddrnotavail: counters.eaddrnotavail,
            emfile: counters.emfile,
            offered: None,
            due_unsent: None,
            blocked: None,
            sessions_begun: None,
            sessions_completed: None,
        }
    }

    /// Fills in what went to each address. `figures` is empty where there is a single one.
    pub fn by_address(&mut self, addresses: &[Address], figures: &[AddressFigures]) {
        let all = AddressFigures {
            connect_attempts: self.connect_attempts,
            connections_opened: self.connections_opened,
            sent: self.sent,
        };
        let report = |(place, address): (usize, &Address)| {
            let figures = figures.get(place).copied();
            AddressReport::new(address, figures.unwrap_or_default())
        };
        self.addresses = match addresses {
            [single] => vec![AddressReport::new(single, all)],
            several => several.iter().enumerate().map(report).collect(),
        };
    }

    /// Fills in what only an open load has. `overdue`: not sent at the end.
    pub fn open_load(&mut self, counters: &Counters, overdue: u64, walks: bool) {
        self.sessions_begun = walks.then_some(counters.sessions_begun);
        self.sessions_completed = walks.then_some(counters.sessions_completed);
        self.offered = Some(counters.offered);
        self.due_unsent = Some(counters.expired + overdue);
        self.blocked = Some(counters.blocked);
    }
}

impl GapReport {
    pub fn new(gap: &Gap, started_ns: u64) -> Self {
        Self {
            start_ms: ms(gap.from_ns.saturating_sub(started_ns)),
            duration_ms: ms(gap.to_ns - gap.from_ns),
            in_flight: gap.in_flight,
        }
    }
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}
