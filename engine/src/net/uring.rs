//! The io_uring driver: one ring per thread (single issuer, deferred task run), connections as
//! direct descriptors, one multishot receive per connection into shared buffers, and one call to
//! the kernel per batch.

mod completions;
mod receive;
mod sends;
mod set_up;
mod sockets;
mod submission;
mod tags;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, Fixed};
use io_uring::{IoUring, cqueue, opcode};

use self::receive::{LEAD_BYTES, StampedRead};
use self::sends::Reported;
use self::tags::*;
use super::buffers::BufferRing;
use super::send_times::{CompletionTimes, SendTimes};
use super::sys::{Waker, monotonic_ns};
use super::{Config, ConnId, Direction, Driver, NetEvent, Payload, Received};

const QUEUE: u32 = 1024;
const BUFFER_GROUP: u16 = 0;
/// Requests up to this size go out in one piece whatever the socket's buffer: their success needs no event.
const SURELY_TAKEN_BYTES: usize = 16 * 1024;
/// The kernel's limit of direct descriptors per ring.
const MAX_DIRECT: usize = 1 << 20;

#[derive(Debug, Clone, Copy, Default)]
struct Conn {
    /// Distinguishes events of this connection from those of the one before at the same index; 28 bits are
    /// carried along.
    generation: u32,
    open: bool,
    connecting: bool,
    receiving: bool,
    /// The kernel says when it took in what is read: reads are messages with control data.
    stamped: bool,
    /// So many sends whose success is reported are under way.
    sending: u8,
}

/// What happened to a connection without the kernel having said so by a completion.
#[derive(Debug, Clone, Copy)]
enum Local {
    ConnectFailed(i32),
    Refused(i32),
    /// A file could not be read.
    Broken(i32),
}

/// One ring with its connections.
pub struct Uring {
    ring: IoUring,
    buffers: BufferRing,
    wake_buffer: Box<[u8; 8]>,
    stamped_read: StampedRead,
    config: Config,
    /// Sends whose end is reported: they stay in their place until the kernel says that it is done with them.
    reported: Vec<Option<Reported>>,
    free: Vec<u32>,
    /// Places, and their connections, whose next piece is being read.
    unread: Vec<(u32, ConnId)>,
    spare: Vec<u8>,
    waker: Waker,
    /// Signalled by other rings that this one waits for.
    eventfd: Option<Waker>,
    conns: Vec<Conn>,
    /// By connection, on kernels before 6.13 ([`set_up::ends_late`]); else empty.
    sockets: Vec<Option<OwnedFd>>,
    direct: usize,
    completions: Vec<cqueue::Entry>,
    at: usize,
    /// Completions that had to make room in the middle of a batch: reported with the next one.
    drained: Vec<cqueue::Entry>,
    /// Operations that no request waits for and that must not be lost: they go out when there is room.
    backlog: VecDeque<Entry>,
    /// How often the kernel took nothing for the moment.
    put_off: u64,
    /// Waits in a row that the kernel refused.
    refused_waits: u32,
    /// What the kernel is made to say to the next attempts to hand something over.
    #[cfg(test)]
    refusals: VecDeque<i32>,
    /// Until a kernel (before Linux 6.12) says that it does not know how.
    waits_by_clock: bool,
    /// Whether buffers were added for this batch.
    grew: bool,
    /// Failures that no completion reports, each with the generation of its connection.
    local: VecDeque<(ConnId, u32, Local)>,
    accepted: SendTimes,
    completion_times: CompletionTimes,
}

impl Uring {
    /// By when the completion that is being reported had happened.
    fn happened_ns(&self) -> u64 {
        self.completion_times
            .happened_ns(self.completions.len() - self.at)
    }

    fn tag(&self, operation: u64, conn: ConnId) -> u64 {
        tag(operation, self.conns[conn as usize].generation, conn)
    }

    fn cancel(&mut self, operation: u64, conn: ConnId) {
        let entry = opcode::AsyncCancel::new(self.tag(operation, conn))
            .build()
            .user_data(CANCEL << 60)
            .flags(Flags::SKIP_SUCCESS);
        self.push_or_keep(entry);
    }

    fn arm_waker(&mut self) {
        let pointer = self.wake_buffer.as_mut_ptr();
        let entry = opcode::Read::new(Fd(self.waker.fd()), pointer, 8)
            .build()
            .user_data(WAKE << 60);
        self.push_or_keep(entry);
    }

    fn arm_eventfd(&mut self) {
        if let Some(eventfd) = &self.eventfd {
            let entry = opcode::PollAdd::new(Fd(eventfd.fd()), libc::POLLIN as u32)
                .multi(true)
                .build()
                .user_data(EVENTFD << 60);
            self.push_or_keep(entry);
        }
    }

    /// Returns this for the connection with the next events, unless it is closed before.
    fn push_local(&mut self, conn: ConnId, what: Local) {
        let generation = self.conns[conn as usize].generation;
        self.local.push_back((conn, generation, what));
    }
}

impl Drop for Uring {
    /// The kernel must be done with the memory of this value before that is given back, and the end of
    /// a ring is not waited for: everything is cancelled first. Where the kernel cannot say that it is
    /// (before Linux 6.0), the memory is left to it.
    fn drop(&mut self) {
        let canceled = self
            .ring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
        let done = match canceled {
            Ok(()) => true,
            Err(error) => error.raw_os_error() == Some(libc::ENOENT),
        };
        if !done {
            self.buffers.leak();
            let reported = std::mem::take(&mut self.reported);
            let wake_buffer = std::mem::take(&mut self.wake_buffer);
            let stamped_read = std::mem::replace(&mut self.stamped_read, StampedRead::new());
            std::mem::forget((reported, wake_buffer, stamped_read, self.config.clone()));
        }
    }
}

impl Driver for Uring {
    const NAME: &'static str = "io_uring";
    const SEND_GROUP: usize = 64;
    const STAMPS_EACH_READ: bool = false;

    fn new(config: Config) -> io::Result<Self> {
        Self::set_up(config, false)
    }

    fn connect(&mut self, conn: ConnId, address: usize) {
        if let Err(error) = self.try_connect(conn, address) {
            let code = error.raw_os_error().unwrap_or(libc::EIO);
            self.push_local(conn, Local::ConnectFailed(code));
        }
    }

    #[inline]
    fn send(&mut self, conn: ConnId, payload: Payload) {
        self.accepted.clear(conn);
        let fixed = match payload {
            Payload::Fixed(fixed) => fixed,
            owned @ Payload::Owned(_) => return self.send_reported(conn, owned),
        };
        let bytes = &self.config.fixed[fixed as usize];
        let (pointer, length) = (bytes.as_ptr(), bytes.len());
        if length > SURELY_TAKEN_BYTES || self.accepted.is_kept() {
            return self.send_reported(conn, Payload::Fixed(fixed));
        }
        let entry = opcode::Send::new(Fixed(conn), pointer, length as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .flags(Flags::SKIP_SUCCESS)
            .user_data(self.tag(SEND, conn));
        self.push_for(conn, entry);
    }

    fn spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.submit()?;
        if self.accepted.is_kept() {
            // A send that the kernel takes at once has completed by now.
            let waiting = self.drained.len() + self.ring.completion().len();
            self.completion_times.see(waiting);
        }
        Ok(())
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        self.accepted.get(conn)
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.conns[conn as usize].sending > 0
    }

    fn take_put_off(&mut self) -> u64 {
        std::mem::take(&mut self.put_off)
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
            if slot.sending > 0 {
                self.cancel_reported(conn, slot.generation);
            }
            self.close_socket(conn);
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
        let until_ns = if self.has_kept() {
            Some(monotonic_ns())
        } else {
            until_ns
        };
        self.submit_and_wait(until_ns)?;
        self.completions.append(&mut self.drained);
        self.completions.extend(self.ring.completion());
        if self.accepted.is_kept() {
            self.completion_times.fetch(self.completions.len());
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<NetEvent> {
        while let Some(entry) = self.completions.get(self.at) {
            let entry = entry.clone();
            self.at += 1;
            let event = self.event(&entry);
            if event.is_some() {
                return event;
            }
        }
        while let Some((conn, generation, what)) = self.local.pop_front() {
            if self.conns[conn as usize].generation == generation {
                return Some(match what {
                    Local::ConnectFailed(code) => NetEvent::ConnectFailed(conn, code),
                    Local::Refused(code) => NetEvent::Refused(conn, code),
                    Local::Broken(code) => NetEvent::Broken(conn, Direction::Write, code),
                });
            }
        }
        None
    }

    #[inline]
    fn bytes(&self, received: &Received) -> &[u8] {
        let from = if received.stamped { LEAD_BYTES } else { 0 };
        let buffer = received.buffer.as_ref();
        buffer.map_or(&[], |buffer| {
            self.buffers.bytes(buffer, from, received.length)
        })
    }

    #[inline]
    fn arrived_ns(&self, received: &Received) -> Option<u64> {
        received.stamped.then(|| self.stamp_of(received)).flatten()
    }

    #[inline]
    fn release(&mut self, received: Received) {
        if let Some(buffer) = received.buffer {
            self.buffers.put(buffer);
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}
