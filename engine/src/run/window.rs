//! The measured window: what all threads did in it. No I/O.

use crate::job::OpenJob;
use crate::measure::Sum;
use crate::measure::counters::Counters;
use crate::measure::edges::Edges;
use crate::measure::gaps::Gaps;
use crate::measure::histogram::Durations;
use crate::measure::scheduled::Scheduled;
use crate::measure::segment::{Figures, Segment, ThreadSum};
use crate::measure::slowest::{Slow, slowest_of};
use crate::measure::steps::StepFigures;
use crate::measure::uniformity::Uniformity;
use crate::measure::urls::MAX_DISTINCT;
use crate::net::address::Address;
use crate::plan::SlowestPlan;
use crate::report::{
    BodyReport, CounterReport, GapReport, HistogramReport, StepReport, ThreadReady, ThreadReport,
    UrlReport, WindowReport,
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
#[derive(Default)]
pub struct Measured {
    pub id: u32,
    /// The instants that all threads agreed on.
    pub opens_ns: u64,
    pub closes_ns: u64,
    pub opened: usize,
    pub closed: usize,
    edges: Edges,
    figures: Figures,
    open: Option<Open>,
    asked_slowest: Option<SlowestPlan>,
    slowest: Vec<Slow>,
    arrival_gaps: Uniformity,
    threads: Vec<ThreadSum>,
    gaps: Gaps,
}

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

fn urls(names: &[StepName], counters: &Counters) -> Vec<UrlReport> {
    let named = counters.urls.all().filter_map(|(step, rows, distinct)| {
        names.get(step).map(|name| UrlReport {
            scenario: name.scenario.clone(),
            step: name.step.clone(),
            rows,
            distinct: (distinct < MAX_DISTINCT).then_some(distinct),
        })
    });
    named.collect()
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
        let thread = |_| ThreadSum {
            scheduled: Some(Scheduled::default()),
            gaps: Gaps::new(1, opens_ns),
            ..ThreadSum::default()
        };
        Self {
            id,
            opens_ns,
            closes_ns,
            open,
            asked_slowest,
            threads: (0..threads).map(thread).collect(),
            gaps: Gaps::new(threads, opens_ns),
            ..Self::default()
        }
    }

    /// Adds a segment of this window.
    pub fn add(&mut self, segment: &Segment) {
        self.figures.add(&segment.figures);
        self.threads[segment.thread].add(segment);
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
        &self.figures.service_time
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
            .map(|(mut thread, ready)| {
                let gaps = std::mem::take(&mut thread.gaps).finish();
                ThreadReport::new(&thread, &gaps, ready, started_ns)
            });
        let mut counters = CounterReport::new(&self.figures.counters, &self.edges);
        if let Some(open) = self.open {
            counters.open_load(&self.figures.counters, self.edges.overdue, open.walks);
        }
        counters.by_address(names.addresses, &self.figures.addresses);
        let tested = self.arrival_gaps.count();
        let requests = self.figures.service_time.count();
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
            service_time: HistogramReport::new(&self.figures.service_time),
            response_time: HistogramReport::response_time(
                &self.figures.opened,
                &self.figures.service_time,
            ),
            steps: rows(names.steps, &self.figures.steps, false),
            bodies: bodies(names.steps, &self.figures.counters),
            urls: urls(names.steps, &self.figures.counters),
            transactions: rows(names.steps, &self.figures.steps, true),
            latency: HistogramReport::new(&self.figures.open_load.latency),
            send_lag: HistogramReport::new(&self.figures.open_load.send_lag),
            session_time: HistogramReport::new(&self.figures.open_load.session_time),
            send_time: HistogramReport::new(&self.figures.parts.send),
            wait_time: HistogramReport::new(&self.figures.parts.wait),
            receive_time: HistogramReport::new(&self.figures.parts.receive),
            slowest: slowest.map(|slowest| {
                let rows = slowest.iter();
                rows.map(|slow| [since_start(slow.start_ns), slow.service_ns])
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
