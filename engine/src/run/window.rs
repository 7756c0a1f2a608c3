//! The measured window: what all threads did in it. No I/O.

use crate::job::OpenJob;
use crate::measure::Sum;
use crate::measure::edges::Edges;
use crate::measure::gaps::Gaps;
use crate::measure::histogram::Durations;
use crate::measure::scheduled::Scheduled;
use crate::measure::segment::{Figures, Segment, ThreadSum};
use crate::measure::slowest::{Slow, slowest_of};
use crate::measure::uniformity::Uniformity;
use crate::net::address::Address;
use crate::plan::SlowestPlan;
use crate::report::{CounterReport, ThreadReady, ThreadReport, WindowReport, WindowSpan};
use crate::scenario::compile::StepName;
use crate::units::seconds;

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
        let count = self.threads.len();
        let spans_ns: u64 = self.threads.iter().map(|thread| thread.span_ns).sum();
        let threads = self.threads.into_iter().zip(ready);
        let threads = threads.map(|(mut thread, ready)| {
            let gaps = std::mem::take(&mut thread.gaps).finish();
            ThreadReport::new(&thread, &gaps, ready, started_ns)
        });
        let mut counters = CounterReport::new(&self.figures.counters, &self.edges);
        if let Some(open) = self.open {
            counters.open_load(&self.figures.counters, self.edges.overdue, open.walks);
        }
        counters.by_address(names.addresses, &self.figures.addresses);
        let requests = self.figures.service_time.count();
        let slowest = self
            .asked_slowest
            .map(|asked| slowest_of(self.slowest, requests, asked.share, asked.most));
        let span = WindowSpan {
            started_ns,
            opens_ns: self.opens_ns,
            // All threads cut at the same instants, unless one was held up longer than the notice
            // it had: then the mean is exact.
            duration_s: seconds(spans_ns.into()) / count as f64,
            complete,
            adds_up,
        };
        let (gaps, ran) = (self.gaps.finish(), (threads.collect(), slowest));
        WindowReport::new(
            &span,
            counters,
            &self.figures,
            names.steps,
            &self.arrival_gaps,
            &gaps,
            ran,
        )
    }
}
