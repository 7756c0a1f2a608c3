//! What a measuring thread has taken of its CPU, read whenever a segment is sent.

use crate::measure::scheduled::Scheduled;
use crate::measure::segment::Costs;
use crate::net::sys::{SchedulerStatistics, thread_cpu_ns};

/// The clocks of this thread, as they stood when the last segment was sent.
pub(super) struct Clocks {
    cpu_ns: u64,
    wall_ns: u64,
    scheduler: SchedulerStatistics,
    scheduled: Option<Scheduled>,
}

impl Clocks {
    /// `wall_ns`: the clock of the driver now.
    pub(super) fn new(wall_ns: u64) -> Self {
        let scheduler = SchedulerStatistics::of_this_thread();
        Self {
            cpu_ns: thread_cpu_ns(),
            wall_ns,
            scheduled: scheduler.read(),
            scheduler,
        }
    }

    /// What was taken since the last time.
    pub(super) fn take(&mut self, wall_ns: u64) -> Costs {
        let scheduled = self.scheduler.read();
        let before = std::mem::replace(&mut self.scheduled, scheduled);
        let (cpu_before_ns, cpu_ns) = (self.cpu_ns, thread_cpu_ns());
        let wall_before_ns = self.wall_ns;
        self.cpu_ns = cpu_ns;
        self.wall_ns = wall_ns.max(wall_before_ns);
        Costs {
            cpu_ns: cpu_ns - cpu_before_ns,
            wall_ns: wall_ns.saturating_sub(wall_before_ns),
            scheduled: scheduled.zip(before).map(|(now, before)| now - before),
        }
    }
}
