//! Adds up the segments of all threads: interval rows, marks, totals and the window. No I/O.

use std::collections::BTreeMap;

use prony_script::Summary;

use super::window::{Measured, Names, Open};
use crate::measure::Sum;
use crate::measure::addresses::AddressFigures;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::edges::Edges;
use crate::measure::histogram::Durations;
use crate::measure::interval::IntervalRow;
use crate::measure::rates::RateCounts;
use crate::measure::segment::{Cut, Segment};
use crate::plan::SlowestPlan;
use crate::report::{
    CounterReport, Event, Interval, Mark, ThreadReady, WindowClosed, WindowOpened, WindowReport,
};
use crate::units::ms;

/// What happened up to a mark, thread by thread.
#[derive(Clone, Default)]
struct UpToMark {
    requests: u64,
    reached_ns: Option<u64>,
    cut: usize,
    service_time: Durations,
    failed: u64,
}

/// What the threads have recorded so far.
#[derive(Default)]
pub struct Collector {
    started_ns: u64,
    threads: usize,
    rows: BTreeMap<u64, IntervalRow>,
    marks: Vec<UpToMark>,
    next_mark: usize,
    /// Per thread, from the start on, as long as marks remain.
    so_far: Vec<(Durations, u64)>,
    window: Option<Measured>,
    totals: Counters,
    rates: RateCounts,
    addresses: Vec<AddressFigures>,
    edges: Edges,
    stopped: usize,
    /// `None` for a closed load.
    open: Option<Open>,
    pub slowest: Option<SlowestPlan>,
    /// Histograms are reported where figures of several engines cannot be added up without.
    pub adds_up: bool,
}

impl Collector {
    pub fn new(started_ns: u64, threads: usize, marks: &[u64], open: Option<Open>) -> Self {
        let mark = |requests: &u64| UpToMark {
            requests: *requests,
            ..UpToMark::default()
        };
        Self {
            started_ns,
            threads,
            marks: marks.iter().map(mark).collect(),
            so_far: vec![(Durations::default(), 0); threads],
            open,
            ..Self::default()
        }
    }

    /// From now on segments of this window are gathered; one before is forgotten.
    pub fn expect_window(&mut self, id: u32, opens_ns: u64, closes_ns: u64) {
        self.window = Some(Measured::new(
            id,
            self.threads,
            opens_ns,
            closes_ns,
            self.open,
            self.slowest,
        ));
    }

    /// Moves the close of the open window forward to `at_ns`: its number, if there is one to move.
    pub fn close_window(&mut self, at_ns: u64) -> Option<u32> {
        let window = self.window.as_mut().filter(|window| {
            window.opened == self.threads && window.closed == 0 && at_ns < window.closes_ns
        })?;
        window.closes_ns = at_ns;
        Some(window.id)
    }

    /// Whether all threads have stopped.
    pub fn is_complete(&self) -> bool {
        self.stopped == self.threads
    }

    pub fn reach_mark(&mut self, mark: usize, at_ns: u64, emit: &mut impl FnMut(Event)) {
        self.marks[mark].reached_ns = Some(at_ns);
        self.emit_marks(emit);
    }

    pub fn add(&mut self, segment: &Segment, emit: &mut impl FnMut(Event)) {
        self.totals.add(&segment.figures.counters);
        self.rates.add(&segment.rates);
        self.addresses.add(&segment.figures.addresses);
        self.add_to_marks(segment, emit);
        self.rows.entry(segment.row).or_default().add(segment);
        if let Some(window) = self
            .window
            .as_mut()
            .filter(|window| Some(window.id) == segment.window)
        {
            window.add(segment);
            match segment.cut {
                Cut::WindowCloses(_) | Cut::Stop => window.closes(segment, true),
                Cut::TurnCloses(_) => window.closes(segment, false),
                _ => {}
            }
        }
        match segment.cut {
            Cut::Row(_) => self.emit_rows(false, emit),
            Cut::WindowOpens(id) => self.opened(id, segment, emit),
            Cut::WindowCloses(id) => self.closed(id, segment.to_ns, emit),
            Cut::TurnOpens(id) => {
                if let Some(window) = self.window.as_mut().filter(|window| window.id == id) {
                    window.opens(segment, false);
                }
            }
            Cut::Mark(_) | Cut::TurnCloses(_) | Cut::Rests | Cut::Resumes => {}
            Cut::Stop => {
                self.stopped += 1;
                let edge = &segment.at_edge;
                self.edges.close(edge, &edge.run_user_time, segment.users);
                if self.is_complete() {
                    self.emit_rows(true, emit);
                }
            }
        }
    }

    fn emit_rows(&mut self, last: bool, emit: &mut impl FnMut(Event)) {
        while let Some(entry) = self.rows.first_entry() {
            if entry.get().ended < self.threads && !last {
                return;
            }
            let row = entry.remove();
            if let Some(from_ns) = row.from_ns.filter(|from_ns| row.to_ns > *from_ns) {
                let (started_ns, open) = (self.started_ns, self.open.is_some());
                let row = Interval::new(&row, from_ns, started_ns, open, self.adds_up);
                emit(Event::Interval(row));
            }
        }
    }

    fn add_to_marks(&mut self, segment: &Segment, emit: &mut impl FnMut(Event)) {
        if self.next_mark == self.marks.len() {
            return;
        }
        let (durations, failed) = &mut self.so_far[segment.thread];
        durations.add(&segment.figures.service_time);
        *failed += segment.figures.counters.failed;
        if let Cut::Mark(mark) = segment.cut {
            let up_to = &mut self.marks[mark];
            up_to.service_time.add(durations);
            up_to.failed += *failed;
            up_to.cut += 1;
            self.emit_marks(emit);
        }
    }

    fn emit_marks(&mut self, emit: &mut impl FnMut(Event)) {
        while let Some(mark) = self.marks.get(self.next_mark)
            && let Some(reached_ns) = mark.reached_ns
            && mark.cut == self.threads
        {
            emit(Event::Mark(Mark {
                requests: mark.requests,
                elapsed_ms: ms(reached_ns - self.started_ns),
                mean_ns: mark.service_time.mean_ns(),
                p50_ns: mark.service_time.quantile_ns(0.5),
                p99_ns: mark.service_time.quantile_ns(0.99),
                errors: mark.failed,
            }));
            self.next_mark += 1;
        }
    }

    fn opened(&mut self, id: u32, segment: &Segment, emit: &mut impl FnMut(Event)) {
        let threads = self.threads;
        if let Some(window) = self.window.as_mut().filter(|window| window.id == id) {
            window.opens(segment, true);
            if window.opened == threads {
                emit(Event::WindowOpened(WindowOpened {
                    t_ms: ms(window.opens_ns - self.started_ns),
                    monotonic_ns: window.opens_ns,
                    duration_ms: (window.closes_ns != u64::MAX)
                        .then(|| ms(window.closes_ns - window.opens_ns)),
                }));
            }
        }
    }

    fn closed(&mut self, id: u32, at_ns: u64, emit: &mut impl FnMut(Event)) {
        if let Some(window) = self.window.as_ref().filter(|window| window.id == id)
            && window.closed == self.threads
        {
            emit(Event::WindowClosed(WindowClosed {
                t_ms: ms(at_ns - self.started_ns),
                monotonic_ns: at_ns,
            }));
        }
    }

    /// How often each rate was seen.
    pub fn rates(&self) -> RateCounts {
        self.rates.clone()
    }

    /// The values passed to the end of a script.
    pub fn summary(&self, elapsed_ns: u64) -> Summary {
        let counters = &self.totals;
        let count = |wanted: fn(ErrorKind) -> bool| -> u64 {
            let errors = counters.errors.iter();
            errors
                .filter(|(kind, _)| wanted(**kind))
                .map(|(_, count)| count)
                .sum()
        };
        let statuses = counters.responses.by_status();
        let service_time = self.window.as_ref().map(Measured::service_time);
        let mut latency: BTreeMap<u64, u64> = BTreeMap::new();
        if let Some(histogram) = service_time.and_then(Durations::filled) {
            for step in histogram.iter_recorded() {
                *latency.entry(step.value_iterated_to() / 1_000).or_default() +=
                    step.count_at_value();
            }
        }
        Summary {
            duration_us: elapsed_ns / 1_000,
            requests: counters.completed,
            bytes: counters.connections.bytes_received,
            connect_errors: count(ErrorKind::is_of_connecting),
            read_errors: count(ErrorKind::is_of_reading),
            write_errors: count(|kind| matches!(kind, ErrorKind::Write | ErrorKind::Client)),
            status_errors: statuses
                .iter()
                .filter(|(status, _)| **status > 399)
                .map(|(_, count)| count)
                .sum(),
            timeouts: count(|kind| kind == ErrorKind::Timeout),
            latency: latency.into_iter().collect(),
            rates: self.rates.clone().into_iter().collect(),
        }
    }

    /// The totals and the window. `in_order`: the run ended as planned.
    pub fn finish(
        self,
        stopped_ns: u64,
        in_order: bool,
        ready: &[ThreadReady],
        names: &Names<'_>,
    ) -> (CounterReport, Option<WindowReport>) {
        let mut totals = CounterReport::new(&self.totals, &self.edges);
        totals.by_address(names.addresses, &self.addresses);
        if let Some(open) = self.open {
            totals.open_load(&self.totals, self.edges.overdue, open.walks);
        }
        let (started_ns, adds_up) = (self.started_ns, self.adds_up);
        let window = self
            .window
            .filter(|window| window.opened == self.threads)
            .map(|window| {
                let complete = if window.closes_ns == u64::MAX {
                    in_order
                } else {
                    window.closes_ns <= stopped_ns
                };
                window.report(started_ns, ready, names, (complete, adds_up))
            });
        (totals, window)
    }
}
