//! The few calls to the operating system that the standard library does not offer: clocks, CPU affinity, signals, sockets,
//! waking another thread. Thin and without policy.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use super::address::Address;

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing; the clocks used here always exist on Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock, the only one durations are taken from.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Lets timed waits of the calling thread end when they should: unless asked, the kernel may add 50 µs to each, to wake less often.
/// A kernel that refuses only wakes later.
pub fn ask_for_exact_timers() {
    // SAFETY: no pointers are involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// The wall clock, for the record only.
pub fn unix_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// Turns the -1 of a call into the error.
pub(super) fn checked(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Lets the calling thread run on these CPUs only.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain data for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let capacity = 8 * size_of::<libc::cpu_set_t>();
    for cpu in cpus {
        if *cpu >= capacity {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the index is within the set.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: `set` is valid and its size is given; 0 is the calling thread.
    checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })
        .map(drop)
}

/// Timers of the calling thread fire as exactly as the kernel can, not up to 50 us later to save wake-ups.
pub fn set_exact_timers() {
    // SAFETY: changes one number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Raises the soft limit of open files to the hard limit and returns it.
pub fn raise_file_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 1024;
    }
    let before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is valid for reading.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
        limit.rlim_cur
    } else {
        before
    }
}

/// The signals that end a run, blocked in every thread so that one thread can wait for them.
pub struct StopSignals(libc::sigset_t);

impl StopSignals {
    /// Blocks SIGINT and SIGTERM in the calling thread and in all it starts later.
    pub fn block() -> Self {
        // SAFETY: sigset_t is plain data, made a valid set by sigemptyset before it is used.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is valid for all three calls and the signals exist.
        unsafe {
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        }
        Self(set)
    }

    /// Waits until one of them arrives.
    pub fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both pointers are valid for the call.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {}
    }
}

/// Wakes the thread that waits in a driver.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are involved.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Self(Arc::new(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight valid bytes; the only possible failure is a full counter, and then the thread is awake anyway.
        unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
    }

    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Takes the wake-ups so far.
    pub(super) fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight valid bytes; an empty counter is no failure that matters.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

/// A socket for this address that does not block and sends small requests at once; from this source, if there is one.
pub(super) fn stream_socket(address: &Address, source: Option<&Address>) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are involved.
    let fd = checked(unsafe { libc::socket(address.family(), kind, 0) })?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let on: i32 = 1;
    if !address.is_unix() {
        // SAFETY: the option's value is a valid i32 whose size is given.
        unsafe {
            libc::setsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_NODELAY,
                (&raw const on).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
    }
    if let Some(source) = source {
        bind(&socket, source)?;
    }
    Ok(socket)
}

/// Binds to an address and leaves the port to the moment of connecting: chosen now, it would be taken for all targets.
fn bind(socket: &OwnedFd, source: &Address) -> io::Result<()> {
    let on: i32 = 1;
    // SAFETY: the option's value is a valid i32 whose size is given. A kernel without it only has fewer ports.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    // SAFETY: the address is valid for its length.
    checked(unsafe { libc::bind(socket.as_raw_fd(), source.as_ptr(), source.length()) }).map(drop)
}

/// Whether connections can come from this address: it must be one of this host.
pub fn check_source(source: &Address) -> io::Result<()> {
    stream_socket(source, Some(source)).map(drop)
}

/// How long until a monotonic time; zero when it is past.
pub(super) fn until(until_ns: u64) -> Duration {
    Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()))
}
