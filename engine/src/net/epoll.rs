//! The driver that always exists: epoll, edge triggered, one read or write per call. It is also the cross-check of io_uring.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use super::accepted::Accepted;
use super::sys::{Waker, checked, monotonic_ns, raise_file_limit, stream_socket, until};
use super::{Config, ConnId, Direction, Driver, Event, Payload, Received};
use crate::payload::Outgoing;

/// Ready connections taken from the kernel at a time: with more, the last would wait too long for their turn.
const BATCH: usize = 512;
const BUFFER_BYTES: usize = 64 * 1024;
const WAKE: u64 = u64::MAX;
const NO_FD: RawFd = -1;
/// In place of a fixed byte string: the bytes are among the owned ones.
const OWNED: u32 = u32::MAX;

#[derive(Debug)]
struct Conn {
    fd: RawFd,
    /// Tells events of this connection from those of the one before at the same index.
    generation: u32,
    connecting: bool,
    /// What the kernel did not take: which byte string, and from where.
    unsent: Option<(u32, u32)>,
}

/// See the module.
pub struct Epoll {
    config: Config,
    /// Owned payloads that the kernel did not take completely.
    owned: HashMap<ConnId, Outgoing>,
    spare: Vec<u8>,
    epoll: OwnedFd,
    waker: Waker,
    conns: Vec<Conn>,
    ready: Vec<libc::epoll_event>,
    /// The next of `ready` to look at.
    at: usize,
    /// Events that needed no kernel.
    local: VecDeque<(ConnId, u32, i32)>,
    buffer: Box<[u8]>,
    has_pwait2: bool,
    accepted: Accepted,
}

impl Epoll {
    fn control(&self, operation: i32, fd: RawFd, events: u32, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: the event is valid for the call.
        checked(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &raw mut event) })
            .map(drop)
    }

    fn try_connect(&mut self, conn: ConnId, address: usize) -> io::Result<()> {
        let address = &self.config.addresses[address];
        let socket = stream_socket(address, self.config.source(conn))?;
        let generation = self.conns[conn as usize].generation;
        let data = u64::from(generation) << 32 | u64::from(conn);
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        // SAFETY: the address is valid for its length.
        let result = checked(unsafe {
            libc::connect(socket.as_raw_fd(), address.as_ptr(), address.length())
        });
        if let Err(error) = result
            && error.raw_os_error() != Some(libc::EINPROGRESS)
        {
            return Err(error);
        }
        self.control(
            libc::EPOLL_CTL_ADD,
            socket.as_raw_fd(),
            interest as u32,
            data,
        )?;
        let slot = &mut self.conns[conn as usize];
        slot.fd = socket.into_raw_fd();
        slot.connecting = true;
        Ok(())
    }

    /// Writes from `from` on; keeps what the kernel does not take.
    fn write(&mut self, conn: ConnId, fixed: u32, from: u32) {
        let config = &self.config;
        let bytes = &config.fixed[fixed as usize];
        let slot = &mut self.conns[conn as usize];
        match write_some(slot.fd, bytes, from as usize) {
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
        let mut from = from as usize;
        let code = loop {
            match write_some(slot.fd, outgoing.bytes(), from) {
                Ok(to) if to < outgoing.bytes().len() => {
                    slot.unsent = Some((OWNED, to as u32));
                    self.owned.insert(conn, outgoing);
                    return;
                }
                Ok(_) => {}
                Err(code) => break code,
            }
            from = 0;
            match outgoing.refill() {
                Ok(true) => {}
                Ok(false) => {
                    self.spare = outgoing.into_spare();
                    self.accepted.set_now(conn);
                    return;
                }
                Err(error) => break error.raw_os_error().unwrap_or(libc::EIO),
            }
        };
        self.local.push_back((conn, slot.generation, code));
    }

    fn wait_for_events(&mut self, until_ns: Option<u64>) -> i32 {
        let timeout = until_ns.map(until);
        let epoll = self.epoll.as_raw_fd();
        let events = self.ready.as_mut_ptr();
        let capacity = BATCH as i32;
        if self.has_pwait2 {
            let spec = timeout.map(|timeout| libc::timespec {
                tv_sec: timeout.as_secs() as libc::time_t,
                tv_nsec: timeout.subsec_nanos().into(),
            });
            let spec = spec
                .as_ref()
                .map_or(std::ptr::null(), |spec| spec as *const libc::timespec);
            let no_mask = std::ptr::null::<libc::sigset_t>();
            // SAFETY: the buffer holds `capacity` events; the time is valid or null; there is no signal mask.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    epoll,
                    events,
                    capacity,
                    spec,
                    no_mask,
                    0usize,
                )
            };
            if result >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
                return result as i32;
            }
            self.has_pwait2 = false;
        }
        // Before Linux 5.11: whole milliseconds, rounded up so that the loop does not spin before the time.
        let ms = timeout.map_or(-1, |timeout| {
            timeout.as_nanos().div_ceil(1_000_000).min(60_000) as i32
        });
        // SAFETY: the buffer holds `capacity` events.
        unsafe { libc::epoll_wait(epoll, events, capacity, ms) }
    }

    /// The first event of a connection that was connecting.
    fn finish_connect(&mut self, conn: ConnId) -> Event {
        let mut code: i32 = 0;
        let mut length = size_of::<i32>() as libc::socklen_t;
        let fd = self.conns[conn as usize].fd;
        // SAFETY: both pointers are valid and the length is that of the value.
        let result = unsafe {
            libc::getsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut code).cast(),
                &raw mut length,
            )
        };
        if result == 0 && code == 0 {
            self.conns[conn as usize].connecting = false;
            Event::Connected(conn)
        } else {
            Event::ConnectFailed(conn, if code == 0 { libc::EIO } else { code })
        }
    }

    /// Reads once. `None`: there was nothing.
    fn receive(&mut self, conn: ConnId) -> Option<Event> {
        let fd = self.conns[conn as usize].fd;
        loop {
            // SAFETY: the buffer is valid for its length.
            let result =
                unsafe { libc::recv(fd, self.buffer.as_mut_ptr().cast(), self.buffer.len(), 0) };
            if result > 0 {
                return Some(Event::Received(Received {
                    conn,
                    buffer: 0,
                    length: result as u32,
                }));
            }
            if result == 0 {
                return Some(Event::Closed(conn));
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => return None,
                code => {
                    return Some(Event::Broken(
                        conn,
                        Direction::Read,
                        code.unwrap_or(libc::EIO),
                    ));
                }
            }
        }
    }

    fn next_local(&mut self) -> Option<Event> {
        while let Some((conn, generation, code)) = self.local.pop_front() {
            let slot = &self.conns[conn as usize];
            if slot.generation == generation {
                return Some(if slot.fd == NO_FD {
                    Event::ConnectFailed(conn, code)
                } else {
                    Event::Broken(conn, Direction::Write, code)
                });
            }
        }
        None
    }
}

/// Writes from `from` on until the kernel takes no more: up to where, or the `errno`.
#[inline]
fn write_some(fd: RawFd, bytes: &[u8], mut from: usize) -> Result<usize, i32> {
    while from < bytes.len() {
        let rest = &bytes[from..];
        // SAFETY: the slice is valid for its length.
        let result =
            unsafe { libc::send(fd, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        if result >= 0 {
            from += result as usize;
            continue;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN) => break,
            code => return Err(code.unwrap_or(libc::EIO)),
        }
    }
    Ok(from)
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";
    const SEND_GROUP: usize = 1;
    const FETCHES_LATE: bool = true;

    fn new(config: Config) -> io::Result<Self> {
        raise_file_limit();
        // SAFETY: no pointers are involved.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let closed = |_| Conn {
            fd: NO_FD,
            generation: 0,
            connecting: false,
            unsent: None,
        };
        let driver = Self {
            conns: (0..config.connections).map(closed).collect(),
            accepted: Accepted::new(&config),
            config,
            owned: HashMap::new(),
            spare: Vec::new(),
            epoll,
            waker: Waker::new()?,
            ready: Vec::with_capacity(BATCH),
            at: 0,
            local: VecDeque::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            has_pwait2: true,
        };
        driver.control(
            libc::EPOLL_CTL_ADD,
            driver.waker.fd(),
            libc::EPOLLIN as u32,
            WAKE,
        )?;
        Ok(driver)
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
            Payload::Owned(outgoing) => self.write_owned(conn, outgoing, 0),
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
        if slot.fd != NO_FD {
            // SAFETY: the descriptor belongs to this slot alone. Closing also takes it out of the epoll set.
            unsafe { libc::close(slot.fd) };
            slot.fd = NO_FD;
        }
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.at = 0;
        self.ready.clear();
        let until_ns = if self.local.is_empty() {
            until_ns
        } else {
            Some(monotonic_ns())
        };
        let count = self.wait_for_events(until_ns);
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(())
            } else {
                Err(error)
            };
        }
        // SAFETY: the kernel wrote `count` events into the capacity.
        unsafe { self.ready.set_len(count as usize) };
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            let Some(event) = self.ready.get(self.at) else {
                return self.next_local();
            };
            let (events, data) = (event.events, event.u64);
            if data == WAKE {
                self.at += 1;
                self.waker.clear();
                return Some(Event::Woken);
            }
            let conn = data as u32;
            let slot = &self.conns[conn as usize];
            if slot.generation != (data >> 32) as u32 || slot.fd == NO_FD {
                self.at += 1;
                continue;
            }
            if slot.connecting {
                // Looked at again: bytes may have come with it.
                return Some(self.finish_connect(conn));
            }
            if let Some((fixed, from)) = slot.unsent
                && events & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
            {
                self.ready[self.at].events &= !(libc::EPOLLOUT as u32);
                match self.owned.remove(&conn) {
                    Some(outgoing) if fixed == OWNED => self.write_owned(conn, outgoing, from),
                    _ => self.write(conn, fixed, from),
                }
            }
            let ended = events & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
            if !ended && events & libc::EPOLLIN as u32 == 0 {
                self.at += 1;
                continue;
            }
            let event = self.receive(conn);
            // A short read emptied the socket; the next bytes make a new edge. The end has no bytes to show: read until it.
            let emptied = !matches!(&event, Some(Event::Received(received))
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
    fn release(&mut self, _received: Received) {}

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        for conn in 0..self.conns.len() {
            self.close(conn as ConnId);
        }
    }
}
