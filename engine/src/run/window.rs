//! The measured window: what all threads did in it. No I/O.

use crate::job::OpenJob;
use crate::measure::addresses::{self, AddressFigures};
use crate::measure::counters::Counters;
use crate::measure::edges::Edges;
use crate::measure::gaps::Gaps;
use crate::measure::histogram::Durations;
use crate::measure::opened::Opened;
use crate::measure::receive_delay::ReceiveDelay;
use crate::measure::scheduled::Scheduled;
use crate::measure::segment::{OpenLoad, PartTimes, Segment};
use crate::measure::slowest::{Slow, slowest_of};
use crate::measure::steps::{StepFigures, add_all};
use crate::measure::uniformity::Uniformity;
use crate::net::address::Address;
use crate::plan::SlowestPlan;
use crate::report::{
    BodyReport, CounterReport, GapReport, HistogramReport, StepReport, ThreadReady, ThreadReport,
    WindowReport,
};
use crate::scenario::compile::StepName;
use crate::units::{ms, seconds};

/// What a report must know of an open load.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    /// An arrival is a user who walks the scenario.
    pub walks: bool,
}

impl Open {
    pub fn of(job: &OpenJob) -> Self {
        Self { walks: job.walks }
    }
}

/// How what is counted one by one is called.
pub struct Names<'a> {
    pub steps: &'a [StepName],
    pub addresses: &'a [Address],
}

/// One window under way or closed.
pub struct Measured {
    pub id: u32,
    /// The instants that all threads agreed on.
    pub opens_ns: u64,
    pub closes_ns: u64,
    pub opened: usize,
    pub closed: usize,
    edges: Edges,
    counters: Counters,
    service_time: Durations,
    with_connect: Opened,
    steps: Vec<StepFigures>,
    addresses: Vec<AddressFigures>,
    open: Option<Open>,
    open_load: OpenLoad,
    parts: PartTimes,
    asked_slowest: Option<SlowestPlan>,
    slowest: Vec<Slow>,
    arrival_gaps: Uniformity,
    threads: Vec<Thread>,
    gaps: Gaps,
}

struct Thread {
    span_ns: u64,
    cpu_ns: u64,
    polled_ns: u64,
    wall_ns: u64,
    loops: u64,
    loop_lag: Durations<2>,
    receive_delay: ReceiveDelay,
    /// `None` from the first segment on for which it could not be read.
    scheduled: Option<Scheduled>,
    /// Spans in which this thread completed nothing although it had requests in flight.
    gaps: Gaps,
}

/// The longest gaps of a thread that are reported one by one.
const GAPS_LISTED: usize = 32;

/// The rows of the transactions, or those of the steps.
fn rows(names: &[StepName], figures: &[StepFigures], transactions: bool) -> Vec<StepReport> {
    let rows = names.iter().zip(figures);
    rows.filter(|(name, _)| name.transaction == transactions)
        .map(|(name, figures)| StepReport::new(name, figures))
        .collect()
}

fn bodies(names: &[StepName], counters: &Counters) -> Vec<BodyReport> {
    let named = counters.bodies.all().filter_map(|(step, digest, count)| {
        names.get(step).map(|name| BodyReport {
            scenario: name.scenario.clone(),
            step: name.step.clone(),
            sha256: digest.map(|bits| format!("{bits:016x}")),
            count,
        })
    });
    named.collect()
}

impl Thread {
    fn report(self, ready: &ThreadReady, started_ns: u64) -> ThreadReport {
        let found = self.gaps.finish();
        let listed = found.longest.iter().take(GAPS_LISTED);
        let delays = &self.receive_delay.delays;
        ThreadReport {
            cpu: ready.cpu,
            cpu_s: seconds(self.cpu_ns.into()),
            wall_s: seconds(self.wall_ns.into()),
            polled_s: seconds(self.polled_ns.into()),
            run_delay_s: self
                .scheduled
                .map(|scheduled| seconds(scheduled.run_delay_ns.into())),
            timeslices: self.scheduled.map(|scheduled| scheduled.timeslices),
            loops: self.loops,
            loop_lag_p50_ns: self.loop_lag.quantile_ns(0.5),
            loop_lag_p99_ns: self.loop_lag.quantile_ns(0.99),
            loop_lag_max_ns: self.loop_lag.max_ns(),
            reads: self.receive_delay.reads,
            reads_stamped: delays.count(),
            receive_delay_mean_ns: delays.mean_ns(),
            receive_delay_p50_ns: delays.quantile_ns(0.5),
            receive_delay_p99_ns: delays.quantile_ns(0.99),
            receive_delay_max_ns: delays.max_ns(),
            gaps: listed.map(|gap| GapReport::new(gap, started_ns)).collect(),
            gaps_total: found.total,
        }
    }
}

impl Measured {
    pub fn new(
        id: u32,
        threads: usize,
        opens_ns: u64,
        closes_ns: u64,
        open: Option<Open>,
        asked_slowest: Option<SlowestPlan>,
    ) -> Self {
        let thread = |_| Thread {
            span_ns: 0,
            cpu_ns: 0,
            polled_ns: 0,
            wall_ns: 0,
            loops: 0,
            loop_lag: Durations::default(),
            receive_delay: ReceiveDelay::default(),
            scheduled: Some(Scheduled::default()),
            gaps: Gaps::new(1, opens_ns),
        };
        Self {
            id,
            opens_ns,
            closes_ns,
            opened: 0,
            closed: 0,
            edges: Edges::default(),
            counters: Counters::default(),
            service_time: Durations::default(),
            with_connect: Opened::default(),
            steps: Vec::new(),
            addresses: Vec::new(),
            open,
            open_load: OpenLoad::default(),
            parts: PartTimes::default(),
            asked_slowest,
            slowest: Vec::new(),
            arrival_gaps: Uniformity::default(),
            threads: (0..threads).map(thread).collect(),
            gaps: Gaps::new(threads, opens_ns),
        }
    }

    /// Adds a segment of this window.
    pub fn add(&mut self, segment: &Segment) {
        self.counters.add(&segment.counters);
        self.service_time.add(&segment.service_time);
        self.with_connect.add(&segment.opened);
        add_all(&mut self.steps, &segment.steps);
        addresses::add_all(&mut self.addresses, &segment.addresses);
        self.open_load.add(&segment.open_load);
        self.parts.add(&segment.parts);
        let thread = &mut self.threads[segment.thread];
        thread.span_ns += segment.to_ns - segment.from_ns;
        thread.cpu_ns += segment.cpu_ns;
        thread.polled_ns += segment.polled_ns;
        thread.wall_ns += segment.wall_ns;
        thread.loops += segment.loops;
        thread.loop_lag.add(&segment.loop_lag);
        thread.receive_delay.add(&segment.receive_delay);
        match (&mut thread.scheduled, segment.scheduled) {
            (Some(sum), Some(more)) => *sum += more,
            (known, _) => *known = None,
        }
        thread.gaps.add(0, &segment.quiet, segment.to_ns);
        self.gaps.add(segment.thread, &segment.quiet, segment.to_ns);
    }

    /// A segment of this window is the last one of a turn in its thread; `last`: and of the window.
    pub fn closes(&mut self, segment: &Segment, last: bool) {
        let edge = &segment.at_edge;
        let users = if last { segment.users } else { 0 };
        self.edges.close(edge, &edge.window_user_time, users);
        self.arrival_gaps.add(&segment.gaps);
        self.slowest.extend_from_slice(&segment.slowest);
        self.closed += usize::from(last);
    }

    /// A thread has opened a turn of the window; `first`: and the window.
    pub fn opens(&mut self, segment: &Segment, first: bool) {
        self.opened += usize::from(first);
        self.edges.open(&segment.at_edge);
    }

    pub fn service_time(&self) -> &Durations {
        &self.service_time
    }

    pub fn report(
        self,
        started_ns: u64,
        ready: &[ThreadReady],
        names: &Names<'_>,
        (complete, adds_up): (bool, bool),
    ) -> WindowReport {
        let found = self.gaps.finish();
        let since_start = |at_ns: u64| at_ns.saturating_sub(started_ns);
        let count = self.threads.len();
        let spans: u128 = self
            .threads
            .iter()
            .map(|thread| u128::from(thread.span_ns))
            .sum();
        let threads = self
            .threads
            .into_iter()
            .zip(ready)
            .map(|(thread, ready)| thread.report(ready, started_ns));
        let mut counters = CounterReport::new(&self.counters, &self.edges);
        if let Some(open) = self.open {
            counters.open_load(&self.counters, self.edges.overdue, open.walks);
        }
        counters.by_address(names.addresses, &self.addresses);
        let tested = self.arrival_gaps.count();
        let requests = self.service_time.count();
        let slowest = self
            .asked_slowest
            .map(|asked| slowest_of(self.slowest, requests, asked.share, asked.most));
        WindowReport {
            counters,
            opened_ms: ms(self.opens_ns.saturating_sub(started_ns)),
            // All threads cut at the same instants, unless one was held up longer than the notice
            // it had: then the mean is exact.
            duration_s: seconds(spans) / count as f64,
            complete,
            service_time: HistogramReport::new(&self.service_time),
            response_time: HistogramReport::response_time(&self.with_connect, &self.service_time),
            steps: rows(names.steps, &self.steps, false),
            bodies: bodies(names.steps, &self.counters),
            transactions: rows(names.steps, &self.steps, true),
            latency: HistogramReport::new(&self.open_load.latency),
            send_lag: HistogramReport::new(&self.open_load.send_lag),
            session_time: HistogramReport::new(&self.open_load.session_time),
            send_time: HistogramReport::new(&self.parts.send),
            wait_time: HistogramReport::new(&self.parts.wait),
            receive_time: HistogramReport::new(&self.parts.receive),
            slowest: slowest.map(|slowest| {
                let told = slowest.iter();
                told.map(|slow| [since_start(slow.start_ns), slow.service_ns])
                    .collect()
            }),
            arrival_gaps: (tested > 0).then_some(tested),
            arrival_gaps_ks: self.arrival_gaps.distance(),
            arrival_gaps_ks_from: self.arrival_gaps.distances(),
            arrival_gaps_cells: adds_up
                .then(|| self.arrival_gaps.cells())
                .filter(|cells| !cells.is_empty()),
            threads: threads.collect(),
            gaps: found
                .longest
                .iter()
                .map(|gap| GapReport::new(gap, started_ns))
                .collect(),
            gaps_total: found.total,
            silences: found.silences.filter(|_| adds_up).map(|silences| {
                silences
                    .iter()
                    .map(|one| {
                        let [from_ns, busy_from_ns, to_ns] =
                            [one.from_ns, one.busy_from_ns, one.to_ns].map(since_start);
                        [from_ns, busy_from_ns, to_ns, one.in_flight]
                    })
                    .collect()
            }),
        }
    }
}
