//! The epoll driver: edge triggered, one read or write per call. The cross-check of io_uring.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use super::arrival::{self, Control};
use super::read_ahead::Refill;
use super::send_times::SendTimes;
use super::sys::{Waker, monotonic_ns, receive_with_control, until};
use super::{Config, ConnId, Direction, Driver, NetEvent, Payload, Received};
use crate::fault::Faults;
use crate::payload::Outgoing;
use prony_common::process::raise_file_limit;

/// Ready connections taken at a time: with more, the last would wait too long for their turn.
const BATCH: usize = 512;
const BUFFER_BYTES: usize = 64 * 1024;
const WAKE: u64 = u64::MAX;
/// In place of a fixed byte string: the bytes are among the owned ones.
const OWNED: u32 = u32::MAX;

const _: () = assert!(size_of::<epoll::Event>() == size_of::<libc::epoll_event>());

#[derive(Debug, Default)]
struct Conn {
    /// `None`: closed.
    socket: Option<OwnedFd>,
    /// Distinguishes events of this connection from those of the one before at the same index.
    generation: u32,
    connecting: bool,
    /// The kernel says when it took in what is read.
    stamped: bool,
    /// What the kernel did not take: which byte string, and from where.
    unsent: Option<(u32, u32)>,
}

/// One epoll set with its connections; its thread carries injected faults, or none.
pub struct Epoll<const FAULTS: bool = false> {
    config: Config,
    /// Owned payloads that the kernel did not take completely.
    owned: HashMap<ConnId, Outgoing>,
    /// Connections whose next piece follows in the next turn, so that others come between.
    behind: Vec<ConnId>,
    spare: Vec<u8>,
    epoll: OwnedFd,
    waker: Waker,
    conns: Vec<Conn>,
    ready: Vec<epoll::Event>,
    /// The next of `ready` to look at.
    at: usize,
    /// Events that needed no kernel.
    local: VecDeque<(ConnId, u32, i32)>,
    buffer: Box<[u8]>,
    /// Of the last read of a connection that is stamped, and how much of it the kernel wrote.
    control: (Control, usize),
    has_pwait2: bool,
    accepted: SendTimes,
}

impl<const FAULTS: bool> Epoll<FAULTS> {
    fn try_connect(&mut self, conn: ConnId, address: usize) -> io::Result<()> {
        let socket = self.config.socket(conn, &self.config.addresses[address])?;
        let stamped = arrival::ask(&self.config, conn, address, &socket);
        let address = &self.config.addresses[address];
        let generation = self.conns[conn as usize].generation;
        let data = u64::from(generation) << 32 | u64::from(conn);
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if let Err(error) = rustix::net::connect(&socket, address.any())
            && error != Errno::INPROGRESS
        {
            return Err(error.into());
        }
        epoll::add(&self.epoll, &socket, EventData::new_u64(data), interest)?;
        let slot = &mut self.conns[conn as usize];
        slot.socket = Some(socket);
        slot.connecting = true;
        slot.stamped = stamped;
        Ok(())
    }

    /// Writes from `from` on; keeps what the kernel does not take.
    fn write(&mut self, conn: ConnId, fixed: u32, from: u32) {
        let config = &self.config;
        let bytes = &config.fixed[fixed as usize];
        let slot = &mut self.conns[conn as usize];
        match write_some(slot.socket.as_ref(), bytes, from as usize) {
            Ok(to) => {
                slot.unsent = (to < bytes.len()).then_some((fixed, to as u32));
                if to == bytes.len() {
                    self.accepted.set_now(conn);
                }
            }
            Err(code) => {
                slot.unsent = None;
                self.local.push_back((conn, slot.generation, code));
            }
        }
    }

    /// The same for a payload of this send alone, and what follows it.
    fn write_owned(&mut self, conn: ConnId, mut outgoing: Outgoing, from: u32) {
        let slot = &mut self.conns[conn as usize];
        slot.unsent = None;
        let length = outgoing.bytes().len();
        let unsent = match write_some(slot.socket.as_ref(), outgoing.bytes(), from as usize) {
            Ok(to) if to < length => Ok(Some(to)),
            Ok(_) => {
                let refill = self.config.read_ahead.refill(&mut outgoing, &self.waker);
                if matches!(refill, Ok(Refill::Piece | Refill::Later))
                    && !self.behind.contains(&conn)
                {
                    self.behind.push(conn);
                }
                refill.map(|refill| match refill {
                    Refill::Piece => Some(0),
                    Refill::Later => Some(length),
                    Refill::Nothing => None,
                })
            }
            Err(code) => Err(code),
        };
        match unsent {
            Ok(Some(from)) => {
                slot.unsent = Some((OWNED, from as u32));
                self.owned.insert(conn, outgoing);
            }
            Ok(None) => {
                self.spare = outgoing.into_spare();
                self.accepted.set_now(conn);
            }
            Err(code) => self.local.push_back((conn, slot.generation, code)),
        }
    }

    /// Writes what did not go out before, and a piece at most of what is behind it.
    fn write_on(&mut self, conn: ConnId) {
        let Some((fixed, from)) = self.conns[conn as usize].unsent else {
            return;
        };
        match self.owned.remove(&conn) {
            Some(outgoing) if fixed == OWNED => self.write_owned(conn, outgoing, from),
            _ => self.write(conn, fixed, from),
        }
    }

    /// Whether one of them has a piece that is not written yet.
    fn write_behind(&mut self) -> bool {
        for conn in std::mem::take(&mut self.behind) {
            self.write_on(conn);
        }
        let has_piece = |conn: &ConnId| {
            let unsent = self.conns[*conn as usize].unsent;
            unsent.is_some_and(|(_, from)| from == 0)
        };
        self.behind.iter().any(has_piece)
    }

    fn wait_for_events(&mut self, until_ns: Option<u64>) -> Result<(), Errno> {
        let timeout = until_ns.map(until).map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        if self.has_pwait2 {
            match self.wait_exactly(timeout.as_ref()) {
                Err(Errno::NOSYS) => self.has_pwait2 = false,
                result => return result,
            }
        }
        // Before Linux 5.11: whole milliseconds, rounded up so that the loop does not spin.
        let buffer = spare_capacity(&mut self.ready);
        epoll::wait(&self.epoll, buffer, timeout.as_ref()).map(drop)
    }

    /// Waits to the nanosecond; rustix would round the timeout up to milliseconds.
    fn wait_exactly(&mut self, timeout: Option<&Timespec>) -> Result<(), Errno> {
        let timeout = timeout.map_or(std::ptr::null(), std::ptr::from_ref);
        let no_mask = std::ptr::null::<libc::sigset_t>();
        // SAFETY: the vector has room for `BATCH` events, whose layout is the kernel's; the timeout
        // is valid or null; there is no signal mask. The kernel wrote as many events as it returns.
        unsafe {
            let count = libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.ready.as_mut_ptr(),
                BATCH as i32,
                timeout,
                no_mask,
                0usize,
            );
            if count < 0 {
                let code = io::Error::last_os_error().raw_os_error();
                return Err(Errno::from_raw_os_error(code.unwrap_or(libc::EIO)));
            }
            self.ready.set_len(count as usize);
        }
        Ok(())
    }

    /// The first event of a connection that was connecting.
    fn finish_connect(&mut self, conn: ConnId) -> NetEvent {
        let slot = &mut self.conns[conn as usize];
        let error = match slot.socket.as_ref().map(sockopt::socket_error) {
            Some(Ok(Ok(()))) => {
                slot.connecting = false;
                return NetEvent::Connected(conn);
            }
            Some(Ok(Err(error)) | Err(error)) => error,
            None => Errno::BADF,
        };
        NetEvent::ConnectFailed(conn, error.raw_os_error())
    }

    /// Reads once. `None`: there was nothing.
    fn receive(&mut self, conn: ConnId) -> Option<NetEvent> {
        let slot = &self.conns[conn as usize];
        let (socket, stamped) = (slot.socket.as_ref()?, slot.stamped);
        loop {
            let read = if stamped {
                let (control, filled) = &mut self.control;
                receive_with_control(socket.as_fd(), &mut self.buffer, &mut control.0).map(
                    |(length, control_length)| {
                        *filled = control_length;
                        length
                    },
                )
            } else {
                rustix::net::recv(socket, &mut *self.buffer, RecvFlags::empty())
                    .map(|(length, _)| length)
            };
            match read {
                Ok(0) => return Some(NetEvent::Closed(conn)),
                Ok(length) => {
                    return Some(NetEvent::Received(Received::new(conn, length, stamped)));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(error) => {
                    return Some(NetEvent::Broken(
                        conn,
                        Direction::Read,
                        error.raw_os_error(),
                    ));
                }
            }
        }
    }

    fn next_local(&mut self) -> Option<NetEvent> {
        while let Some((conn, generation, code)) = self.local.pop_front() {
            let slot = &self.conns[conn as usize];
            if slot.generation == generation {
                return Some(if slot.socket.is_none() {
                    NetEvent::ConnectFailed(conn, code)
                } else {
                    NetEvent::Broken(conn, Direction::Write, code)
                });
            }
        }
        None
    }
}

/// Writes from `from` on until the kernel takes no more: up to where, or the `errno`.
#[inline]
fn write_some(socket: Option<&OwnedFd>, bytes: &[u8], mut from: usize) -> Result<usize, i32> {
    let socket = socket.ok_or(libc::EBADF)?;
    while from < bytes.len() {
        match rustix::net::send(socket, &bytes[from..], SendFlags::NOSIGNAL) {
            Ok(sent) => from += sent,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.raw_os_error()),
        }
    }
    Ok(from)
}

impl<const FAULTS: bool> Driver for Epoll<FAULTS> {
    const NAME: &'static str = "epoll";
    const SEND_GROUP: usize = 1;
    const STAMPS_EACH_READ: bool = true;

    fn new(config: Config) -> io::Result<Self> {
        raise_file_limit();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        epoll::add(
            &epoll,
            waker.as_fd(),
            EventData::new_u64(WAKE),
            EventFlags::IN,
        )?;
        Ok(Self {
            conns: (0..config.connections).map(|_| Conn::default()).collect(),
            accepted: SendTimes::new(&config),
            config,
            owned: HashMap::new(),
            behind: Vec::new(),
            spare: Vec::new(),
            epoll,
            waker,
            ready: Vec::with_capacity(BATCH),
            at: 0,
            local: VecDeque::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            control: (Control::default(), 0),
            has_pwait2: true,
        })
    }

    #[inline(always)]
    fn faults(&self) -> Faults {
        if FAULTS {
            self.config.faults
        } else {
            Faults::NONE
        }
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
        match payload {
            Payload::Fixed(fixed) => self.write(conn, fixed, 0),
            Payload::Owned(mut outgoing) => {
                self.config.read_ahead.begin(&mut outgoing, &self.waker);
                self.write_owned(conn, outgoing, 0);
            }
        }
    }

    fn spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.conns[conn as usize].unsent.is_some()
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        self.accepted.get(conn)
    }

    fn close(&mut self, conn: ConnId) {
        let slot = &mut self.conns[conn as usize];
        slot.generation = slot.generation.wrapping_add(1);
        if let Some((OWNED, _)) = slot.unsent.take() {
            self.owned.remove(&conn);
        }
        slot.connecting = false;
        // Closing also takes it out of the epoll set.
        slot.socket = None;
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.at = 0;
        self.ready.clear();
        let until_ns = if self.write_behind() || !self.local.is_empty() {
            Some(monotonic_ns())
        } else {
            until_ns
        };
        match self.wait_for_events(until_ns) {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn next(&mut self) -> Option<NetEvent> {
        loop {
            let Some(event) = self.ready.get(self.at) else {
                return self.next_local();
            };
            let (events, data) = (event.flags, event.data.u64());
            if data == WAKE {
                self.at += 1;
                self.waker.clear();
                return Some(NetEvent::Woken);
            }
            let conn = data as u32;
            let slot = &self.conns[conn as usize];
            if slot.generation != (data >> 32) as u32 || slot.socket.is_none() {
                self.at += 1;
                continue;
            }
            if slot.connecting {
                // Looked at again: bytes may have come with it.
                return Some(self.finish_connect(conn));
            }
            if slot.unsent.is_some()
                && events.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
            {
                self.ready[self.at].flags = events.difference(EventFlags::OUT);
                self.write_on(conn);
            }
            let ended = events.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            if !ended && !events.contains(EventFlags::IN) {
                self.at += 1;
                continue;
            }
            let event = self.receive(conn);
            // A short read emptied the socket; the next bytes make a new edge. The end has no bytes
            // to show: read until it.
            let emptied = !matches!(&event, Some(NetEvent::Received(received))
                if received.length as usize == self.buffer.len() || ended);
            if emptied {
                self.at += 1;
            }
            if event.is_some() {
                return event;
            }
        }
    }

    #[inline]
    fn bytes(&self, received: &Received) -> &[u8] {
        &self.buffer[..received.length as usize]
    }

    #[inline]
    fn arrived_ns(&self, received: &Received) -> Option<u64> {
        let (control, filled) = &self.control;
        received
            .stamped
            .then(|| arrival::arrived_ns(&control.0[..*filled]))
            .flatten()
    }

    #[inline]
    fn release(&mut self, _received: Received) {}

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}
