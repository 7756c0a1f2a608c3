//! What was measured in the window as an event shows it: times, steps, threads and gaps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::ThreadReady;
use super::counters::CounterReport;
use super::histogram::HistogramReport;
use crate::measure::gaps::{Found, Gap};
use crate::measure::segment::ThreadSum;
use crate::measure::steps::StepFigures;
use crate::scenario::compile::StepName;
use crate::units::{ms, seconds};

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
    /// Closed load: of the same requests, of those that opened a connection from the begin of
    /// connecting; and of attempts to connect that timed out. `null` where none was opened.
    pub response_time: Option<HistogramReport>,
    /// By step name; empty when the scenarios have a single one.
    pub steps: Vec<StepReport>,
    /// Sampled bodies of at most 64 KiB, of right responses with a status of 2xx.
    pub bodies: Vec<BodyReport>,
    /// Of steps whose path takes values of a feeder.
    pub urls: Vec<UrlReport>,
    /// By the name of a transaction: the sum of the service times of its requests. One that was not
    /// walked to its end is left out.
    pub transactions: Vec<StepReport>,
    /// Open load: from the intended send; of the same requests.
    pub latency: Option<HistogramReport>,
    /// Open load: from the intended send to the actual one, or to the attempt to connect where no
    /// connection was ready.
    pub send_lag: Option<HistogramReport>,
    /// Open load of users who walk: from the intended arrival to the end of the last response, of
    /// those who came to the end.
    pub session_time: Option<HistogramReport>,
    /// With `parts`: from the send to the moment when the kernel had taken the last byte of the
    /// request; of answered requests.
    pub send_time: Option<HistogramReport>,
    /// With `parts`: from there to the first byte of the response.
    pub wait_time: Option<HistogramReport>,
    /// With `parts`: from there to the last byte.
    pub receive_time: Option<HistogramReport>,
    /// With `slowest`: the slowest of the same requests, slowest first: when it was sent, in ns after
    /// the start of the run, and its service time in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Vec<[u64; 2]>>,
    /// Poisson arrivals: how many gaps between sends were tested.
    pub arrival_gaps: Option<u64>,
    /// Kolmogorov-Smirnov distance of these gaps from the exponential distribution of the asked rate.
    pub arrival_gaps_ks: Option<f64>,
    /// `[u, distance]`: the distance looked for only among gaps longer than the shortest `u` of a
    /// Poisson process, where a thread that works on another request cannot send any closer.
    pub arrival_gaps_ks_from: Vec<[f64; 2]>,
    /// With a `share`: the gaps as `1 - exp(-m)`, where `m` arrivals were expected in the gap, counted
    /// in cells of equal width from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival_gaps_cells: Option<Vec<u64>>,
    pub threads: Vec<ThreadReport>,
    pub gaps: Vec<GapReport>,
    pub gaps_total: u64,
    /// With a `share`: every span above 20 ms in which this engine completed nothing, also those in
    /// which it had nothing in flight, in order: from, since when requests were in flight (the end
    /// when none were), to, all in ns after the start, and requests in flight. Not given where there
    /// are more than 65,536.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silences: Option<Vec<[u64; 4]>>,
}

/// Number of samples with this body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BodyReport {
    pub scenario: String,
    pub step: String,
    /// The first 16 digits of its SHA-256; `null`: all beyond the 16 that are counted one by one.
    pub sha256: Option<String>,
    pub count: u64,
}

/// How many different paths, with their queries, the requests of a step had.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UrlReport {
    pub scenario: String,
    pub step: String,
    /// Rows of the largest feeder in its path.
    pub rows: u32,
    /// `null`: at least 1024.
    pub distinct: Option<usize>,
}

report! {
    /// The requests of one step.
    StepReport(of: &StepName, figures: &StepFigures) {
        scenario: String = of.scenario.clone(),
        name: String = of.step.clone(),
        completed: u64 = figures.completed,
        failed: u64 = figures.failed,
        status: BTreeMap<u16, u64> = figures.status.clone(),
        service_time: Option<HistogramReport> = HistogramReport::new(&figures.service_time),
        /// As that of the window.
        response_time: Option<HistogramReport> =
            HistogramReport::response_time(&figures.opened, &figures.service_time),
    }
}

/// The longest gaps of a thread that are reported one by one.
const GAPS_LISTED: usize = 32;

report! {
    ThreadReport(thread: &ThreadSum, gaps: &Found, ready: &ThreadReady, started_ns: u64) {
        cpu: Option<usize> = ready.cpu,
        cpu_s: f64 = seconds(thread.cpu_ns.into()),
        wall_s: f64 = seconds(thread.wall_ns.into()),
        /// Open load: of `cpu_s`, what went into looking for an arrival that was not due yet, and
        /// finding nothing else to do.
        polled_s: f64 = seconds(thread.work.polled_ns.into()),
        /// How long the thread was runnable and did not run, as its kernel counts it
        /// (/proc/thread-self/schedstat); `null` where that cannot be read.
        run_delay_s: Option<f64> = thread.scheduled.map(|counted| seconds(counted.run_delay_ns.into())),
        /// How often it was put on a CPU.
        timeslices: Option<u64> = thread.scheduled.map(|counted| counted.timeslices),
        loops: u64 = thread.work.loops,
        loop_lag_p50_ns: Option<u64> = thread.work.loop_lag.quantile_ns(0.5),
        loop_lag_p99_ns: Option<u64> = thread.work.loop_lag.quantile_ns(0.99),
        loop_lag_max_ns: Option<u64> = thread.work.loop_lag.max_ns(),
        /// How often bytes were taken from a connection.
        reads: u64 = thread.work.receive_delay.reads,
        /// Those of them for which the kernel said when the last packet had come (SO_TIMESTAMPNS).
        reads_stamped: u64 = thread.work.receive_delay.delays.count(),
        /// Of these: from then to the receive time that the response is given. `null` where the kernel
        /// said it of none.
        receive_delay_mean_ns: Option<u64> = thread.work.receive_delay.delays.mean_ns(),
        receive_delay_p50_ns: Option<u64> = thread.work.receive_delay.delays.quantile_ns(0.5),
        receive_delay_p99_ns: Option<u64> = thread.work.receive_delay.delays.quantile_ns(0.99),
        receive_delay_max_ns: Option<u64> = thread.work.receive_delay.delays.max_ns(),
        /// Spans above 20 ms in which this thread completed nothing although it had requests in flight:
        /// the longest ones.
        gaps: Vec<GapReport> = gaps
            .longest
            .iter()
            .take(GAPS_LISTED)
            .map(|gap| GapReport::new(gap, started_ns))
            .collect(),
        gaps_total: u64 = gaps.total,
    }
}

report! {
    GapReport(gap: &Gap, started_ns: u64) {
        start_ms: f64 = ms(gap.from_ns.saturating_sub(started_ns)),
        duration_ms: f64 = ms(gap.to_ns - gap.from_ns),
        in_flight: u64 = gap.in_flight,
    }
}
