//! Submits operations to the kernel. One policy for sends, cancellations and waits when the kernel refuses:
//!
//! - EBUSY (the completion queue is full) and EAGAIN (no memory for a request) are transient.
//!   Completions are drained, to be handled with the next batch, and the submission is retried a
//!   bounded number of times; [`Driver::take_put_off`] counts the refusals. Whatever is still in
//!   the submission queue stays there for the next attempt; a wait that is refused again and again
//!   pauses, so that it does not spin.
//! - An operation that does not fit into the queue fails its connection ([`NetEvent::Refused`]);
//!   one that no connection waits for goes to a backlog. Nothing is dropped.
//! - Any other error ends the run.
//!
//! [`Driver::take_put_off`]: crate::net::Driver::take_put_off
//! [`NetEvent::Refused`]: crate::net::NetEvent::Refused

use std::io;
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::types::{SubmitArgs, Timespec};

use super::{Local, Uring};
use crate::net::ConnId;
use crate::net::sys::until;

/// IORING_ENTER_GETEVENTS: with deferred task run nothing is posted without it.
const GET_EVENTS: u32 = 1;
const EXTENDED_ARGUMENT: u32 = 1 << 3;
/// The time of a wait is one of the clock. As a span it would begin only after everything was
/// handed over, and sends take a while.
const ABSOLUTE_TIMER: u32 = 1 << 5;

/// Argument of a wait (`struct io_uring_getevents_arg`).
#[repr(C)]
struct WaitArgument {
    signal_mask: u64,
    signal_mask_bytes: u32,
    min_wait_us: u32,
    timespec: u64,
}

/// How often the kernel is asked in a row to take what it did not take.
const ATTEMPTS: u32 = 16;

/// After so many waits refused in a row there is a pause behind each.
const REFUSED_WAITS: u32 = 4;
const PAUSE: Duration = Duration::from_micros(100);

/// Whether this error says that the kernel takes nothing for the moment.
fn passes(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN))
}

impl Uring {
    /// Queues an operation, handing others over when there is no room; an error where that fails.
    #[inline]
    pub(super) fn push(&mut self, entry: &Entry) -> Result<(), i32> {
        // SAFETY: what the entry refers to (request bytes, addresses, the wake buffer) is owned by
        // this value, which gives it back only when the kernel is done with it (`Drop`); received
        // bytes go to the registered buffers.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            match self.submit() {
                Ok(true) => {}
                Ok(false) => return Err(libc::EBUSY),
                Err(error) => return Err(error.raw_os_error().unwrap_or(libc::EIO)),
            }
        }
        Ok(())
    }

    /// Queues an operation of a connection, which hears `Refused` where that fails.
    #[inline]
    pub(super) fn push_for(&mut self, conn: ConnId, entry: Entry) -> bool {
        let result = self.push(&entry);
        if let Err(code) = result {
            self.push_local(conn, Local::Refused(code));
        }
        result.is_ok()
    }

    /// Queues an operation that must not be lost, at the latest with the next wait.
    pub(super) fn push_or_keep(&mut self, entry: Entry) {
        if self.push(&entry).is_err() {
            self.backlog.push_back(entry);
        }
    }

    /// Queues what was kept, as far as there is room.
    fn push_backlog(&mut self) {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// Hands everything to the kernel; false where it takes nothing for the moment.
    pub(super) fn submit(&mut self) -> io::Result<bool> {
        let mut attempt = 0;
        loop {
            let result = match attempt {
                0 => self.refused().and_then(|()| self.ring.submit()),
                // Only then are completions posted that were kept back.
                _ => self.poll(),
            };
            match result {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if passes(&error) => {
                    self.put_off += 1;
                    self.drained.extend(self.ring.completion());
                    attempt += 1;
                    if attempt == ATTEMPTS {
                        return Ok(false);
                    }
                    std::thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, and waits for something to happen, until a monotonic time at the latest.
    pub(super) fn submit_and_wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.push_backlog();
        let result = self.enter_and_wait(until_ns);
        let refused_waits = std::mem::take(&mut self.refused_waits);
        match result {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(error) if passes(&error) => {
                // The batch that is fetched now makes room, and the next wait asks again.
                self.put_off += 1;
                self.refused_waits = refused_waits.saturating_add(1);
                if self.refused_waits > REFUSED_WAITS {
                    std::thread::sleep(until_ns.map_or(PAUSE, until).min(PAUSE));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// What a test has the kernel say.
    #[inline(always)]
    fn refused(&mut self) -> io::Result<()> {
        #[cfg(test)]
        if let Some(code) = self.refusals.pop_front() {
            return Err(io::Error::from_raw_os_error(code));
        }
        Ok(())
    }

    fn enter_and_wait(&mut self, until_ns: Option<u64>) -> io::Result<usize> {
        self.refused()?;
        match until_ns {
            None => self.ring.submit_and_wait(1),
            Some(until_ns) => self.wait_until(until_ns),
        }
    }

    /// Hands everything over and lets the kernel post what has happened, without sleeping.
    fn poll(&mut self) -> io::Result<usize> {
        self.refused()?;
        let submission = self.ring.submission();
        let prepared = submission.len() as u32;
        drop(submission);
        // SAFETY: no argument is passed. The count of entries is that of the ring, synchronised
        // when `submission` was dropped.
        unsafe {
            self.ring
                .submitter()
                .enter::<()>(prepared, 0, GET_EVENTS, None)
        }
    }

    /// Hands everything over and waits for something to happen, until a monotonic time.
    fn wait_until(&mut self, until_ns: u64) -> io::Result<usize> {
        let left = until(until_ns);
        if left.is_zero() {
            return self.poll();
        }
        if !self.waits_by_clock {
            let spec = Timespec::from(left);
            let args = SubmitArgs::new().timespec(&spec);
            return self.ring.submitter().submit_with_args(1, &args);
        }
        let submission = self.ring.submission();
        let prepared = submission.len() as u32;
        drop(submission);
        let spec = Timespec::from(Duration::from_nanos(until_ns));
        let argument = WaitArgument {
            signal_mask: 0,
            signal_mask_bytes: 0,
            min_wait_us: 0,
            timespec: (&raw const spec) as u64,
        };
        let flags = GET_EVENTS | EXTENDED_ARGUMENT | ABSOLUTE_TIMER;
        // SAFETY: the argument has the kernel's layout, and it and the time it refers to outlive the call.
        // The count of entries is that of the ring, synchronised when `submission` was dropped.
        let result = unsafe {
            self.ring
                .submitter()
                .enter(prepared, 1, flags, Some(&argument))
        };
        if let Err(error) = &result
            && error.raw_os_error() == Some(libc::EINVAL)
        {
            self.waits_by_clock = false;
            return self.wait_until(until_ns);
        }
        result
    }
}
