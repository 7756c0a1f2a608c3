//! What was measured in the window as an event shows it: times, steps, threads and gaps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::ThreadReady;
use super::counters::CounterReport;
use super::histogram::HistogramReport;
use crate::measure::gaps::{Found, Gap, Quiet};
use crate::measure::segment::{Figures, ThreadSum};
use crate::measure::slowest::Slow;
use crate::measure::steps::StepFigures;
use crate::measure::uniformity::Uniformity;
use crate::measure::urls::MAX_DISTINCT;
use crate::scenario::compile::StepName;
use crate::units::{ms, seconds};

/// When a window was, and what else its report says.
pub struct WindowSpan {
    pub started_ns: u64,
    pub opens_ns: u64,
    pub duration_s: f64,
    pub complete: bool,
    /// Figures of several engines are to be added up.
    pub adds_up: bool,
}

report! {
    /// The measured window.
    WindowReport(span: &WindowSpan, of_requests: CounterReport, figures: &Figures, names: &[StepName], tested: &Uniformity, quiet: &Found, ran: (Vec<ThreadReport>, Option<Vec<Slow>>)) {
        #[serde(flatten)]
        counters: CounterReport = of_requests,
        opened_ms: f64 = ms(span.opens_ns.saturating_sub(span.started_ns)),
        duration_s: f64 = span.duration_s,
        /// False when the run stopped before the end of the window.
        complete: bool = span.complete,
        /// Of the requests that completed or timed out.
        service_time: Option<HistogramReport> = HistogramReport::new(&figures.service_time),
        /// Closed load: of the same requests, of those that opened a connection from the begin of
        /// connecting; and of attempts to connect that timed out. `null` where none was opened.
        response_time: Option<HistogramReport> =
            HistogramReport::response_time(&figures.opened, &figures.service_time),
        /// By step name; empty when the scenarios have a single one.
        steps: Vec<StepReport> = rows(names, &figures.steps, false),
        /// Sampled bodies of at most 64 KiB, of right responses with a status of 2xx.
        bodies: Vec<BodyReport> = figures
            .counters
            .bodies
            .all()
            .filter_map(|(step, digest, count)| Some(BodyReport::new(names.get(step)?, digest, count)))
            .collect(),
        /// Of steps whose path takes values of a feeder.
        urls: Vec<UrlReport> = figures
            .counters
            .urls
            .all()
            .filter_map(|(step, rows, distinct)| Some(UrlReport::new(names.get(step)?, rows, distinct)))
            .collect(),
        /// By the name of a transaction: the sum of the service times of its requests. One that was not
        /// walked to its end is left out.
        transactions: Vec<StepReport> = rows(names, &figures.steps, true),
        /// Open load: from the intended send; of the same requests.
        latency: Option<HistogramReport> = HistogramReport::new(&figures.open_load.latency),
        /// Open load: from the intended send to the actual one, or to the attempt to connect where no
        /// connection was ready.
        send_lag: Option<HistogramReport> = HistogramReport::new(&figures.open_load.send_lag),
        /// Open load of users who walk: from the intended arrival to the end of the last response, of
        /// those who came to the end.
        session_time: Option<HistogramReport> = HistogramReport::new(&figures.open_load.session_time),
        /// With `parts`: from the send to the moment when the kernel had taken the last byte of the
        /// request; of answered requests.
        send_time: Option<HistogramReport> = HistogramReport::new(&figures.parts.send),
        /// With `parts`: from there to the first byte of the response.
        wait_time: Option<HistogramReport> = HistogramReport::new(&figures.parts.wait),
        /// With `parts`: from there to the last byte.
        receive_time: Option<HistogramReport> = HistogramReport::new(&figures.parts.receive),
        /// With `slowest`: the slowest of the same requests, slowest first: when it was sent, in ns after
        /// the start of the run, and its service time in ns.
        #[serde(skip_serializing_if = "Option::is_none")]
        slowest: Option<Vec<[u64; 2]>> = ran.1.map(|slowest| {
            let since_start = |at_ns: u64| at_ns.saturating_sub(span.started_ns);
            let slowest = slowest.iter();
            slowest.map(|slow| [since_start(slow.start_ns), slow.service_ns]).collect()
        }),
        /// Poisson arrivals: how many gaps between sends were tested.
        arrival_gaps: Option<u64> = Some(tested.count()).filter(|count| *count > 0),
        /// Kolmogorov-Smirnov distance of these gaps from the exponential distribution of the asked rate.
        arrival_gaps_ks: Option<f64> = tested.distance(),
        /// `[u, distance]`: the distance looked for only among gaps longer than the shortest `u` of a
        /// Poisson process, where a thread that works on another request cannot send any closer.
        arrival_gaps_ks_from: Vec<[f64; 2]> = tested.distances(),
        /// With a `share`: the gaps as `1 - exp(-m)`, where `m` arrivals were expected in the gap, counted
        /// in cells of equal width from 0 to 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        arrival_gaps_cells: Option<Vec<u64>> =
            span.adds_up.then(|| tested.cells()).filter(|cells| !cells.is_empty()),
        threads: Vec<ThreadReport> = ran.0,
        gaps: Vec<GapReport> = gap_reports(quiet, usize::MAX, span.started_ns),
        gaps_total: u64 = quiet.total,
        /// With a `share`: every span above 20 ms in which this engine completed nothing, also those in
        /// which it had nothing in flight, in order: from, since when requests were in flight (the end
        /// when none were), to, all in ns after the start, and requests in flight. Not given where there
        /// are more than 65,536.
        #[serde(skip_serializing_if = "Option::is_none")]
        silences: Option<Vec<[u64; 4]>> = quiet.silences.as_ref().filter(|_| span.adds_up).map(|all| {
            let since_start = |at_ns: u64| at_ns.saturating_sub(span.started_ns);
            let row = |one: &Quiet| {
                let [from_ns, busy_ns, to_ns] = [one.from_ns, one.busy_from_ns, one.to_ns].map(since_start);
                [from_ns, busy_ns, to_ns, one.in_flight]
            };
            all.iter().map(row).collect()
        }),
    }
}

report! {
    /// Number of samples with this body.
    BodyReport(of: &StepName, digest: Option<u64>, samples: u64) {
        scenario: String = of.scenario.clone(),
        step: String = of.step.clone(),
        /// The first 16 digits of its SHA-256; `null`: all beyond the 16 that are counted one by one.
        sha256: Option<String> = digest.map(|bits| format!("{bits:016x}")),
        count: u64 = samples,
    }
}

report! {
    /// How many different paths, with their queries, the requests of a step had.
    UrlReport(of: &StepName, largest: u32, found: usize) {
        scenario: String = of.scenario.clone(),
        step: String = of.step.clone(),
        /// Rows of the largest feeder in its path.
        rows: u32 = largest,
        /// `null`: at least 1024.
        distinct: Option<usize> = Some(found).filter(|found| *found < MAX_DISTINCT),
    }
}

/// The rows of the transactions, or those of the steps.
fn rows(names: &[StepName], figures: &[StepFigures], transactions: bool) -> Vec<StepReport> {
    let rows = names.iter().zip(figures);
    rows.filter(|(name, _)| name.transaction == transactions)
        .map(|(name, figures)| StepReport::new(name, figures))
        .collect()
}

/// The longest of the gaps.
fn gap_reports(found: &Found, most: usize, started_ns: u64) -> Vec<GapReport> {
    let longest = found.longest.iter().take(most);
    longest.map(|gap| GapReport::new(gap, started_ns)).collect()
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
        gaps: Vec<GapReport> = gap_reports(gaps, GAPS_LISTED, started_ns),
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
