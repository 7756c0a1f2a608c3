//! What one thread did between two cuts, and why it was cut there. Nothing is recorded here.

use super::addresses::AddressFigures;
use super::counters::Counters;
use super::edges::AtEdge;
use super::gaps::Quiet;
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

/// What only an open load is measured by; without one it takes no memory.
#[derive(Debug, Clone, Default)]
pub struct OpenLoad {
    /// From the intended send to the last byte, or to the timeout.
    pub latency: Durations,
    /// From the intended send to the actual one, or to the attempt to connect where no connection was ready.
    pub send_lag: Durations,
    /// From the intended arrival of a user to the end of its last response; of those who walked to the end.
    pub session_time: Durations,
}

impl OpenLoad {
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.send_lag.add(&other.send_lag);
        self.session_time.add(&other.session_time);
    }
}

/// The parts of the service times of answered requests: together they are the service time.
#[derive(Debug, Clone, Default)]
pub struct PartTimes {
    /// From the send to the moment when the kernel had taken the last byte of the request.
    pub send: Durations,
    /// From there to the first byte of the response.
    pub wait: Durations,
    /// From there to the last byte.
    pub receive: Durations,
}

impl PartTimes {
    pub fn add(&mut self, other: &Self) {
        self.send.add(&other.send);
        self.wait.add(&other.wait);
        self.receive.add(&other.receive);
    }
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
    pub counters: Counters,
    pub service_time: Durations,
    pub opened: Opened,
    /// By step; empty with a single one.
    pub steps: Vec<StepFigures>,
    /// By address of the target; empty with a single one.
    pub addresses: Vec<AddressFigures>,
    pub loop_lag: Durations<2>,
    pub receive_delay: ReceiveDelay,
    pub loops: u64,
    /// CPU and wall time, both read at the moment the cut was made, which may be a little later than `to_ns`.
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// How long the thread was runnable and did not run, and how often it was put on a CPU; `None`
    /// where that cannot be read.
    pub scheduled: Option<Scheduled>,
    /// Time that was spent on looking for something to do and finding nothing.
    pub polled_ns: u64,
    pub quiet: Vec<Quiet>,
    /// Only at the edges of a window and at the end of the run.
    pub at_edge: AtEdge,
    pub open_load: OpenLoad,
    pub parts: PartTimes,
    /// The slowest requests since the window opened, where they are asked for; only in the last
    /// segment of a window.
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
