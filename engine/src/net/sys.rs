//! System calls that the standard library does not offer. No policy.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};
use rustix::time::{ClockId, clock_gettime};

use super::address::Address;
use crate::measure::scheduled::Scheduled;

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock, the only one durations are taken from.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// The CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Reads [`Scheduled`] of the thread that opened it: 0.3 µs per reading.
#[derive(Debug)]
pub struct SchedulerStatistics(Option<File>);

impl SchedulerStatistics {
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// `None` where the kernel does not count it, or does not show it.
    pub fn read(&self) -> Option<Scheduled> {
        let mut text = [0u8; 96];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        scheduled(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// `time on a CPU, time runnable, timeslices`, in ns; three zeros where nothing is counted.
fn scheduled(text: &str) -> Option<Scheduled> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (_ran_ns, run_delay_ns, timeslices) = (next()?, next()?, next()?);
    (timeslices > 0).then_some(Scheduled {
        run_delay_ns,
        timeslices,
    })
}

/// The calling thread goes before every ordinary thread of its CPU (`SCHED_FIFO`); false where that
/// is not allowed (`CAP_SYS_NICE`, `RLIMIT_RTPRIO`). Not asked for where the kernel lets real-time
/// threads have a whole CPU: a load that fills it would lock everything else out. Threads that this
/// one starts, those of the kernel's rings too, are ordinary ones.
pub fn set_realtime() -> bool {
    if !std::fs::read_to_string(REALTIME_RUNTIME).is_ok_and(|text| leaves_time(&text)) {
        return false;
    }
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call, which reads them only; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) == 0 }
}

/// What real-time threads may have of each period, in us; -1: all of it.
const REALTIME_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

fn leaves_time(runtime: &str) -> bool {
    runtime.trim().parse::<i64>().is_ok_and(|us| us >= 0)
}

/// Major and minor version of the kernel.
pub(super) fn kernel_version() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release
        .split(['.', '-'])
        .map(|number| number.trim().parse());
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The wall clock, for the record only.
pub fn unix_ns() -> u64 {
    clock_ns(ClockId::Realtime)
}

/// Wakes the thread that waits in a driver: an eventfd.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self(Arc::new(fd)))
    }

    pub fn wake(&self) {
        // The only possible failure is a full counter, and then the thread is awake anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes the wake-ups so far.
    pub(super) fn clear(&self) {
        // An empty counter is no failure that matters.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

/// A socket that does not block and sends small requests at once; from this source, if any.
pub(super) fn stream_socket(address: &Address, source: Option<&Address>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(address.family(), SocketType::STREAM, flags, None)?;
    if !address.is_unix() {
        sockopt::set_tcp_nodelay(&socket, true)?;
    }
    if let Some(source) = source {
        bind(&socket, source)?;
    }
    Ok(socket)
}

/// Binds to an address; the port is chosen when it connects, for that target alone.
fn bind(socket: &OwnedFd, source: &Address) -> io::Result<()> {
    // A kernel without it only has fewer ports.
    let _ = switch_on(
        socket.as_fd(),
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
    );
    Ok(rustix::net::bind(socket, source.any())?)
}

/// An option that rustix does not know.
fn switch_on(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<()> {
    let on: i32 = 1;
    // SAFETY: the option's value is a valid i32 whose size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets the kernel say of each packet that this socket reads when it took it in.
pub(super) fn stamp_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)
}

/// Reads without blocking, with the control data that rustix does not know: the lengths of both.
pub(super) fn receive_with_control(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut [u8],
) -> Result<(usize, usize), Errno> {
    let mut piece = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a plain C structure of integers and pointers, for which all zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control.len() as _;
    // SAFETY: the message refers to two byte slices that are borrowed for writing for the length of
    // the call, with their lengths.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let filled: usize = message.msg_controllen as _;
    usize::try_from(length)
        .map(|length| (length, filled))
        .map_err(|_| {
            let code = io::Error::last_os_error().raw_os_error();
            Errno::from_raw_os_error(code.unwrap_or(libc::EIO))
        })
}

/// Whether connections can come from this address: it must be one of this host.
pub fn check_source(source: &Address) -> io::Result<()> {
    stream_socket(source, Some(source)).map(drop)
}

/// How long until a monotonic time; zero when it is past.
pub(super) fn until(until_ns: u64) -> Duration {
    Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_counts_nothing_is_not_read_as_no_delay() {
        let counted = Scheduled {
            run_delay_ns: 64_842_769,
            timeslices: 58,
        };
        assert_eq!(scheduled("993670196 64842769 58\n"), Some(counted));
        for text in ["0 0 0\n", "", "12 34\n", "a b c\n", "1 -2 3\n"] {
            assert_eq!(scheduled(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_whole_cpu_is_not_taken_where_the_kernel_would_give_it() {
        assert!(leaves_time("950000\n"));
        assert!(!leaves_time("-1\n"));
        assert!(!leaves_time(""));
    }

    #[test]
    fn a_thread_that_sleeps_and_wakes_gets_more_timeslices() {
        let statistics = SchedulerStatistics::of_this_thread();
        let Some(before) = statistics.read() else {
            eprintln!("skipped: this kernel shows no schedstat");
            return;
        };
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let after = statistics.read().unwrap();
        assert!(after.timeslices >= before.timeslices + 5);
        assert!(after.run_delay_ns >= before.run_delay_ns);
    }
}
