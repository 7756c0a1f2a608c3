//! CPU affinity, timer slack and the limit of open files.

use std::io;
use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// Lets the calling thread run on these CPUs only.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Timers of the calling thread fire as exactly as the kernel can, not up to 50 µs later to save
/// wake-ups. A kernel that refuses only wakes later.
pub fn set_exact_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Raises the soft limit of open files to the hard one and returns what it is then.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // None stands for no limit.
    now.unwrap_or(u64::MAX)
}
