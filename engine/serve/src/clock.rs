//! Monotonic time since the start, CPU time, and using up CPU time.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::time::{ClockId, clock_gettime};

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // These clocks never go below zero.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// CPU time of the whole process.
pub fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// Monotonic time, with the moment from which it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            origin_ns: read_ns(ClockId::Monotonic),
        }
    }

    /// Time since the start.
    pub fn now_ns(&self) -> u64 {
        read_ns(ClockId::Monotonic) - self.origin_ns
    }

    /// The same moment on the system's monotonic clock.
    pub fn absolute_ns(&self, now_ns: u64) -> u64 {
        self.origin_ns + now_ns
    }
}

/// Uses up `ns` of this thread's CPU time, or less when `stop` is set. Time in which the thread was
/// preempted does not count, as with real work.
pub fn burn(ns: u64, stop: &AtomicBool) {
    let begin = thread_cpu_ns();
    let mut value = begin | 1;
    while thread_cpu_ns() - begin < ns && !stop.load(Ordering::Relaxed) {
        // About a microsecond of arithmetic that the compiler cannot drop, so that little of the
        // time is spent reading the clock.
        for _ in 0..512 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .rotate_left(17)
                ^ ns;
        }
        std::hint::black_box(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burning_takes_at_least_the_cpu_time_asked_for() {
        let before = thread_cpu_ns();
        burn(3_000_000, &AtomicBool::new(false));
        assert!(thread_cpu_ns() - before >= 3_000_000);
        burn(u64::MAX, &AtomicBool::new(true));
    }

    #[test]
    fn time_does_not_run_backwards() {
        let clock = Clock::start();
        let first = clock.now_ns();
        assert!(clock.now_ns() >= first);
        assert_eq!(clock.absolute_ns(5) - clock.absolute_ns(0), 5);
    }
}
