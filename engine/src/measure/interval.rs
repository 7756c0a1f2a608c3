//! One interval row of all threads, from their segments.

use super::Sum;
use super::counters::Counters;
use super::histogram::Durations;
use super::segment::{Cut, Segment};

/// One interval row of all threads.
#[derive(Default)]
pub struct IntervalRow {
    pub from_ns: Option<u64>,
    pub to_ns: u64,
    pub ended: usize,
    pub outside_window: bool,
    pub counters: Counters,
    pub service_time: Durations,
    pub latency: Durations,
    pub send_lag: Durations,
    pub loop_lag: Durations<2>,
    pub cpu_ns: u64,
    pub wall_ns: u64,
    pub in_flight: u64,
    pub users: u64,
    pub connections_open: u64,
}

impl IntervalRow {
    pub fn add(&mut self, segment: &Segment) {
        self.from_ns = self.from_ns.into_iter().chain([segment.from_ns]).min();
        self.to_ns = self.to_ns.max(segment.to_ns);
        self.outside_window |= segment.window.is_none() && segment.from_ns != segment.to_ns;
        self.counters.add(&segment.figures.counters);
        self.service_time.add(&segment.figures.service_time);
        self.latency.add(&segment.figures.open_load.latency);
        self.send_lag.add(&segment.figures.open_load.send_lag);
        self.loop_lag.add(&segment.work.loop_lag);
        self.cpu_ns += segment.costs.cpu_ns;
        self.wall_ns += segment.costs.wall_ns;
        if matches!(segment.cut, Cut::Row(_) | Cut::Stop) {
            self.ended += 1;
            self.in_flight += segment.in_flight;
            self.users += segment.users;
            self.connections_open += segment.connections_open;
        }
    }
}
