//! The io_uring driver: one ring per thread (single issuer, deferred task run), connections as direct descriptors, one multishot
//! receive per connection into shared buffers, and one call to the kernel per batch.

mod completions;
mod sends;
mod set_up;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use self::sends::Owned;
use super::accepted::{Accepted, Told};
use super::address::Address;
use super::buffers::BufferRing;
use super::sys::{Waker, monotonic_ns, stream_socket, until};
use super::tags::*;
use super::{Config, ConnId, Driver, Event, Payload, Received, source};

const QUEUE: u32 = 1024;
const BUFFER_GROUP: u16 = 0;
/// IORING_ENTER_GETEVENTS: with deferred task run nothing is posted without it.
const GET_EVENTS: u32 = 1;
const EXTENDED_ARGUMENT: u32 = 1 << 3;
/// The time of a wait is one of the clock. As a span it would begin only after everything was handed over, and sends take a while.
const ABSOLUTE_TIMER: u32 = 1 << 5;

/// What a wait is told (`struct io_uring_getevents_arg`).
#[repr(C)]
struct WaitArgument {
    signal_mask: u64,
    signal_mask_bytes: u32,
    least_wait_us: u32,
    timespec: u64,
}

/// Requests up to this size go out in one piece whatever the socket's buffer: their success needs no event.
const SURELY_TAKEN_BYTES: usize = 16 * 1024;
/// The kernel's limit of direct descriptors per ring.
const MAX_DIRECT: usize = 1 << 20;

#[derive(Debug, Clone, Copy, Default)]
struct Conn {
    /// Tells events of this connection from those of the one before at the same index; 28 bits are carried along.
    generation: u32,
    open: bool,
    connecting: bool,
    receiving: bool,
    /// A send whose success is reported is under way.
    sending: bool,
}

/// See the module.
pub struct Uring {
    // The order matters when dropped: the ring goes before the memory that the kernel may use through it.
    ring: IoUring,
    buffers: BufferRing,
    wake_buffer: Box<[u8; 8]>,
    addresses: Arc<[Address]>,
    sources: Arc<[Address]>,
    fixed: Arc<[Vec<u8>]>,
    /// Owned payloads under way: they stay in their place until the kernel says that it is done with them.
    owned: Vec<Option<Owned>>,
    free: Vec<u32>,
    spare: Vec<u8>,
    waker: Waker,
    /// Rung by other rings that this one waits for.
    bell: Option<Waker>,
    conns: Vec<Conn>,
    direct: usize,
    completions: Vec<cqueue::Entry>,
    at: usize,
    /// Until a kernel (before Linux 6.12) says that it does not know how.
    waits_by_clock: bool,
    /// Whether buffers were added for this batch.
    grew: bool,
    /// Failures that needed no kernel.
    local: VecDeque<(ConnId, u32, i32)>,
    accepted: Accepted,
    told: Told,
}

impl Uring {
    fn push(&mut self, entry: Entry) {
        // SAFETY: what the entry refers to (request bytes, addresses, the wake buffer) is owned by this value and dropped after
        // the ring; received bytes go to the registered buffers.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            if self.submit().is_err() {
                // Only a ring that is broken for good refuses: the next wait reports it.
                return;
            }
        }
    }

    /// By when the completion that is being told had happened.
    fn happened_ns(&self) -> u64 {
        self.told.happened_ns(self.completions.len() - self.at)
    }

    fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn tag(&self, operation: u64, conn: ConnId) -> u64 {
        tag(operation, self.conns[conn as usize].generation, conn)
    }

    fn try_connect(&mut self, conn: ConnId, address: usize) -> io::Result<()> {
        if conn as usize >= self.direct {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let address = self
            .addresses
            .get(address)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let socket = stream_socket(address, source(&self.sources, conn))?;
        let (pointer, length) = (address.as_ptr(), address.length());
        // The ring holds the socket from here on; the descriptor itself is closed again when `socket` is dropped.
        self.ring
            .submitter()
            .register_files_update(conn, &[socket.as_raw_fd()])?;
        let slot = &mut self.conns[conn as usize];
        slot.open = true;
        slot.connecting = true;
        let entry = opcode::Connect::new(Fixed(conn), pointer, length)
            .build()
            .user_data(self.tag(CONNECT, conn));
        self.push(entry);
        Ok(())
    }

    /// Hands everything over and lets the kernel post what has happened, without a timer and without sleeping.
    fn look(&mut self) -> io::Result<usize> {
        let submission = self.ring.submission();
        let prepared = submission.len() as u32;
        drop(submission);
        // SAFETY: no argument is passed. The count of entries is that of the ring, synchronised when `submission` was dropped.
        unsafe {
            self.ring
                .submitter()
                .enter::<()>(prepared, 0, GET_EVENTS, None)
        }
    }

    /// Hands everything over and waits for something to happen, until a monotonic time at the latest.
    fn wait_until(&mut self, until_ns: u64) -> io::Result<usize> {
        let left = until(until_ns);
        if left.is_zero() {
            return self.look();
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
            least_wait_us: 0,
            timespec: (&raw const spec) as u64,
        };
        let flags = GET_EVENTS | EXTENDED_ARGUMENT | ABSOLUTE_TIMER;
        // SAFETY: the argument has the kernel's layout, and it and the time it refers to outlive the call. The count of entries is
        // that of the ring, synchronised when `submission` was dropped.
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

    fn cancel(&mut self, operation: u64, conn: ConnId) {
        let entry = opcode::AsyncCancel::new(self.tag(operation, conn))
            .build()
            .user_data(CANCEL << 60)
            .flags(Flags::SKIP_SUCCESS);
        self.push(entry);
    }

    fn arm_waker(&mut self) {
        let pointer = self.wake_buffer.as_mut_ptr();
        let entry = opcode::Read::new(Fd(self.waker.fd()), pointer, 8)
            .build()
            .user_data(WAKE << 60);
        self.push(entry);
    }

    fn arm_bell(&mut self) {
        if let Some(bell) = &self.bell {
            let entry = opcode::PollAdd::new(Fd(bell.fd()), libc::POLLIN as u32)
                .multi(true)
                .build()
                .user_data(BELL << 60);
            self.push(entry);
        }
    }
}

impl Driver for Uring {
    const NAME: &'static str = "io_uring";
    const SEND_GROUP: usize = 64;
    const FETCHES_LATE: bool = false;

    fn new(config: Config) -> io::Result<Self> {
        Self::set_up(config, false)
    }

    fn connect(&mut self, conn: ConnId, address: usize) {
        if let Err(error) = self.try_connect(conn, address) {
            let code = error.raw_os_error().unwrap_or(libc::EIO);
            self.local
                .push_back((conn, self.conns[conn as usize].generation, code));
        }
    }

    #[inline]
    fn send(&mut self, conn: ConnId, payload: Payload) {
        self.accepted.clear(conn);
        let fixed = match payload {
            Payload::Fixed(fixed) => fixed,
            Payload::Owned(outgoing) => return self.send_owned(conn, outgoing),
        };
        let bytes = &self.fixed[fixed as usize];
        let (pointer, length) = (bytes.as_ptr(), bytes.len());
        let entry = opcode::Send::new(Fixed(conn), pointer, length as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(self.tag(SEND, conn));
        let quiet = length <= SURELY_TAKEN_BYTES && !self.accepted.is_kept();
        self.conns[conn as usize].sending = !quiet;
        self.push(if quiet {
            entry.flags(Flags::SKIP_SUCCESS)
        } else {
            entry
        });
    }

    fn spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.submit()?;
        if self.accepted.is_kept() {
            // A send that the kernel takes at once has completed by now.
            self.told.see(self.ring.completion().len());
        }
        Ok(())
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        self.accepted.get(conn)
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.conns[conn as usize].sending
    }

    fn close(&mut self, conn: ConnId) {
        let slot = self.conns[conn as usize];
        if slot.open {
            if slot.receiving {
                self.cancel(RECEIVE, conn);
            }
            if slot.connecting {
                self.cancel(CONNECT, conn);
            }
            if slot.sending {
                self.cancel(SEND, conn);
                self.cancel_owned(conn, slot.generation);
            }
            // Takes effect at once; operations under way keep the socket until they end, by the cancellations above. The only
            // failure would be an index out of range, which try_connect has excluded.
            let _ = self.ring.submitter().register_files_update(conn, &[-1]);
        }
        self.conns[conn as usize] = Conn {
            generation: slot.generation.wrapping_add(1),
            ..Conn::default()
        };
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.buffers.publish();
        self.grew = false;
        self.completions.clear();
        self.at = 0;
        let until_ns = if self.local.is_empty() {
            until_ns
        } else {
            Some(monotonic_ns())
        };
        let result = match until_ns {
            None => self.ring.submit_and_wait(1),
            Some(until_ns) => self.wait_until(until_ns),
        };
        if let Err(error) = result {
            // EBUSY: more events are there than fit, so there is something to deal with first.
            let harmless = [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN];
            if !error
                .raw_os_error()
                .is_some_and(|code| harmless.contains(&code))
            {
                return Err(error);
            }
        }
        self.completions.extend(self.ring.completion());
        if self.accepted.is_kept() {
            self.told.fetch(self.completions.len());
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<Event> {
        while let Some(entry) = self.completions.get(self.at) {
            let entry = entry.clone();
            self.at += 1;
            let event = self.event(&entry);
            if event.is_some() {
                return event;
            }
        }
        while let Some((conn, generation, code)) = self.local.pop_front() {
            if self.conns[conn as usize].generation == generation {
                return Some(Event::ConnectFailed(conn, code));
            }
        }
        None
    }

    #[inline]
    fn bytes(&self, received: &Received) -> &[u8] {
        self.buffers.bytes(received.buffer, received.length)
    }

    #[inline]
    fn release(&mut self, received: Received) {
        self.buffers.put(received.buffer);
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}
