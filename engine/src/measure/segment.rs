//! What one thread did between two cuts, and why it was cut there. Nothing is recorded here.

use super::Sum;
use super::addresses::AddressFigures;
use super::counters::Counters;
use super::edges::AtEdge;
use super::gaps::{Gaps, Quiet};
use super::histogram::Durations;
use super::opened::Opened;
use super::rates::RateCounts;
use super::receive_delay::ReceiveDelay;
use super::scheduled::Scheduled;
use super::slowest::Slow;
use super::steps::StepFigures;
use super::uniformity::Uniformity;

/// Why a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The end of the interval row of this number.
    Row(u64),
    WindowOpens(u32),
    WindowCloses(u32),
    /// The window goes on: with the next of its turns ...
    TurnOpens(u32),
    /// ... and has a break after one.
    TurnCloses(u32),
    /// Users come to rest after their responses.
    Rests,
    /// They go on.
    Resumes,
    /// This mark was reached: the cut is not at the same instant in all threads.
    Mark(usize),
    Stop,
}

sums! {
    /// What only an open load is measured by; without one it takes no memory.
    OpenLoad {
        /// From the intended send to the last byte, or to the timeout.
        latency: Durations,
        /// From the intended send to the actual one, or to the attempt to connect.
        send_lag: Durations,
        /// From a user's intended arrival to its last response; of those who walked to the end.
        session_time: Durations,
    }
}

sums! {
    /// The parts of the service times of answered requests: together they are the service time.
    PartTimes {
        /// From the send to the moment when the kernel had taken the last byte of the request.
        send: Durations,
        /// From there to the first byte of the response.
        wait: Durations,
        /// From there to the last byte.
        receive: Durations,
    }
}

sums! {
    /// What came of the requests, of one thread or of all.
    Figures {
        counters: Counters,
        service_time: Durations,
        opened: Opened,
        /// By step; empty with a single one.
        steps: Vec<StepFigures>,
        /// By address of the target; empty with a single one.
        addresses: Vec<AddressFigures>,
        open_load: OpenLoad,
        parts: PartTimes,
    }
}

sums! {
    /// What a thread did for it.
    ThreadWork {
        loop_lag: Durations<2>,
        receive_delay: ReceiveDelay,
        loops: u64,
        /// Time that was spent on looking for something to do and finding nothing.
        polled_ns: u64,
    }
}

/// What a thread took between two cuts, by clocks that are read a little after them.
#[derive(Debug, Default)]
pub struct Costs {
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// What the scheduler counted of the thread; `None` where that cannot be read.
    pub scheduled: Option<Scheduled>,
}

/// What one thread did between two cuts.
#[derive(Debug)]
pub struct Segment {
    pub thread: usize,
    pub cut: Cut,
    /// Number of the interval row that it belongs to.
    pub row: u64,
    /// The measured window that it belongs to.
    pub window: Option<u32>,
    pub from_ns: u64,
    pub to_ns: u64,
    pub figures: Figures,
    pub work: ThreadWork,
    /// Not known here: the sender of the segment adds it.
    pub costs: Costs,
    pub quiet: Vec<Quiet>,
    /// Only at the edges of a window and at the end of the run.
    pub at_edge: AtEdge,
    /// The slowest requests since the window opened; only in its last segment.
    pub slowest: Vec<Slow>,
    /// Rates that were seen.
    pub rates: RateCounts,
    /// Gaps of Poisson arrivals; only in the last segment of a window.
    pub gaps: Uniformity,
    /// At the end of the segment.
    pub in_flight: u64,
    pub users: u64,
    pub connections_open: u64,
}

/// What one thread did in a window.
#[derive(Default)]
pub struct ThreadSum {
    pub span_ns: u64,
    pub work: ThreadWork,
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// `None` from the first segment on for which it could not be read.
    pub scheduled: Option<Scheduled>,
    /// Spans in which this thread completed nothing although it had requests in flight.
    pub gaps: Gaps,
}

impl ThreadSum {
    pub fn add(&mut self, segment: &Segment) {
        self.span_ns += segment.to_ns - segment.from_ns;
        self.work.add(&segment.work);
        self.cpu_ns += segment.costs.cpu_ns;
        self.wall_ns += segment.costs.wall_ns;
        match (&mut self.scheduled, segment.costs.scheduled) {
            (Some(sum), Some(more)) => *sum += more,
            (known, _) => *known = None,
        }
        self.gaps.add(0, &segment.quiet, segment.to_ns);
    }
}
