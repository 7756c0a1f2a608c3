//! The epoll loop of one thread: readiness, timer, accepting. It knows nothing of HTTP; the state
//! machine says what to do next, and the connection moves the bytes.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use prony_h2::frame::PREFACE;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::connection::{Buffers, Connection, Received, Sent};
use super::counters::Counters;
use super::http2::{Http2, Speaks, Thread, spoken};
use super::listen::{Listener, next_thread};
use super::machine::{Action, Machine, slot_of};
use super::shared::Shared;
use super::streams::Streams;
use super::timers::Deadline;

/// epoll keys that are not connections; slots never get that far.
pub const LISTENER: u64 = u64::MAX;
const MAIL: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;

const EVENTS: usize = 512;
/// Reads from one connection, or pieces of bodies for it, before the others get their turn: a client
/// that is as fast as the server never lets the socket fill up.
const TURNS_IN_A_ROW: u32 = 16;
const ACCEPTS_IN_A_ROW: u32 = 64;
/// Pause after the kernel refused a connection (no descriptors left).
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

#[derive(Debug)]
pub struct EventLoop {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    listener: Arc<Listener>,
    thread: usize,
    machine: Machine,
    streams: Streams,
    connections: Vec<Connection>,
    free: Vec<u32>,
    timer: OwnedFd,
    armed_ns: Option<u64>,
    buffers: Buffers,
    /// Connections with more to read that have to wait for the others.
    again: Vec<u64>,
}

impl EventLoop {
    pub fn new(shared: Arc<Shared>, listener: Arc<Listener>, thread: usize) -> Result<Self, Errno> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        let epoll = listener.epoll(thread);
        // Edge-triggered, so that the timer need never be read.
        epoll::add(
            epoll,
            &timer,
            EventData::new_u64(TIMER),
            EventFlags::IN | EventFlags::ET,
        )?;
        epoll::add(
            epoll,
            shared.mailboxes[thread].fd(),
            EventData::new_u64(MAIL),
            EventFlags::IN,
        )?;
        Ok(Self {
            counters: Arc::clone(&shared.counters[thread]),
            machine: Machine::new(Arc::clone(&shared), thread),
            shared,
            listener,
            thread,
            streams: Streams::default(),
            connections: Vec::new(),
            free: Vec::new(),
            timer,
            armed_ns: None,
            buffers: Buffers::new(),
            again: Vec::new(),
        })
    }

    /// Serves until the server is stopped.
    pub fn run(&mut self) -> Result<(), Errno> {
        let mut buffer = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        while !self.shared.is_stopped() {
            self.arm_timer()?;
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let patience = if self.again.is_empty() {
                None
            } else {
                Some(&at_once)
            };
            let (events, _) =
                match epoll::wait(self.listener.epoll(self.thread), &mut buffer, patience) {
                    Ok(events) => events,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error),
                };
            for event in events.iter() {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    MAIL => self
                        .machine
                        .granted
                        .extend(self.shared.mailboxes[self.thread].take()),
                    TIMER => {}
                    key => self.ready(key, event.flags),
                }
            }
            for key in std::mem::take(&mut self.again) {
                if let Some(slot) = self.slot(key) {
                    self.connections[slot].goes_on = false;
                }
                self.ready(key, EventFlags::empty());
            }
            self.run_due()?;
            self.run_granted();
        }
        Ok(())
    }

    /// Sets the kernel's timer to the earliest deadline. A timer descriptor, because the time-out
    /// of `epoll_wait` is counted in milliseconds and stretched by the thread's timer slack.
    fn arm_timer(&mut self) -> Result<(), Errno> {
        let Some(due_ns) = self.machine.timers.next_due_ns() else {
            return Ok(());
        };
        if self.armed_ns == Some(due_ns) {
            return Ok(());
        }
        let absolute_ns = self.shared.clock.absolute_ns(due_ns);
        let value = Timespec {
            tv_sec: i64::try_from(absolute_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (absolute_ns % 1_000_000_000) as _,
        };
        let interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = Itimerspec {
            it_interval: interval,
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.armed_ns = Some(due_ns);
        Ok(())
    }

    fn run_due(&mut self) -> Result<(), Errno> {
        while let Some(next_ns) = self.machine.timers.next_due_ns() {
            let now_ns = self.shared.clock.now_ns();
            if next_ns > now_ns {
                break;
            }
            // Everything due now; what falls due meanwhile is for the next round.
            while let Some(deadline) = self.machine.timers.pop_due(now_ns) {
                if deadline.key == LISTENER {
                    self.listener.arm(self.thread, LISTENER)?;
                } else if Streams::is_key(deadline.key) {
                    self.on_stream(deadline.key, |http2, thread, congested, out| {
                        http2.due(thread, deadline, congested, out)
                    });
                } else if let Some(slot) = self.slot(deadline.key) {
                    let connection = &mut self.connections[slot];
                    let congested = connection.has_backlog();
                    let (http, out) = (&mut connection.http, &mut self.buffers.out);
                    if let Some(action) = self.machine.due(http, deadline, congested, out) {
                        self.drive(slot, action);
                    }
                }
            }
        }
        Ok(())
    }

    /// Serves the connections that were given a worker; ending them may give workers to others.
    fn run_granted(&mut self) {
        while let Some(key) = self.machine.granted.pop_front() {
            if Streams::is_key(key) {
                let found = self.on_stream(key, |http2, thread, congested, out| {
                    http2.grant(thread, key, congested, out)
                });
                if !found {
                    self.machine.pass_worker_on();
                }
                continue;
            }
            match self.slot(key) {
                Some(slot) => {
                    let http = &mut self.connections[slot].http;
                    let action = self.machine.grant(http, key, &mut self.buffers.out);
                    self.drive(slot, action);
                }
                // Its client left while it was in the queue.
                None => self.machine.pass_worker_on(),
            }
        }
    }

    fn accept(&mut self) -> Result<(), Errno> {
        let rounds = if self.listener.is_shared() {
            1
        } else {
            ACCEPTS_IN_A_ROW
        };
        for _ in 0..rounds {
            match accept_with(
                self.listener.listener(),
                SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            ) {
                Ok(socket) => self.welcome(socket),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    self.counters.accept_errors.add(1);
                    self.listener.disarm(self.thread, LISTENER)?;
                    let due_ns = self.shared.clock.now_ns() + ACCEPT_PAUSE_NS;
                    self.machine.timers.arm(Deadline {
                        due_ns,
                        key: LISTENER,
                        ticket: 0,
                    });
                    return Ok(());
                }
            }
        }
        if self.listener.is_shared() {
            self.listener
                .arm(next_thread(&self.shared.counters, self.thread), LISTENER)?;
        }
        Ok(())
    }

    fn welcome(&mut self, socket: OwnedFd) {
        let slot = match self.free.pop() {
            Some(slot) => slot as usize,
            None => {
                self.connections.push(Connection::vacant());
                self.connections.len() - 1
            }
        };
        let key = self.key(slot);
        let connection = &mut self.connections[slot];
        connection.http.place = slot as u32;
        connection.preface_seen = self.shared.http2.map(|_| 0);
        self.counters.connections.add(1);
        self.counters.connections_open.add(1);
        let data = EventData::new_u64(key);
        let added = epoll::add(
            self.listener.epoll(self.thread),
            &socket,
            data,
            watched(false),
        );
        if !self.connections[slot].begin(socket, self.shared.tls.as_ref()) || added.is_err() {
            self.close(slot);
        }
    }

    /// The slot of a connection that is still the one meant by `key`.
    fn slot(&self, key: u64) -> Option<usize> {
        let slot = slot_of(key) as usize;
        let connection = self.connections.get(slot)?;
        (connection.socket().is_some() && u64::from(connection.epoch) == key >> 32).then_some(slot)
    }

    fn key(&self, slot: usize) -> u64 {
        u64::from(self.connections[slot].epoch) << 32 | slot as u64
    }

    /// The kernel reports a connection as ready.
    fn ready(&mut self, key: u64, flags: EventFlags) {
        let Some(slot) = self.slot(key) else { return };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            self.close(slot);
            return;
        }
        let connection = &mut self.connections[slot];
        connection.readable |= flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        connection.ended |= flags.contains(EventFlags::RDHUP);
        let action = connection.action;
        let writable = flags.contains(EventFlags::OUT) && connection.has_backlog();
        if writable || (connection.wants_turn() && !connection.has_backlog()) {
            self.drive(slot, action);
        }
    }

    /// Sends the output and takes the next action, until there is nothing to do now.
    fn drive(&mut self, slot: usize, first: Action) {
        let mut action = first;
        let mut turns = 0;
        loop {
            let connection = &mut self.connections[slot];
            connection.action = action;
            if !self.buffers.out.is_empty() || connection.has_more_to_send() {
                match self.flush(slot) {
                    Sent::All => {}
                    Sent::Blocked => return,
                    Sent::Failed => return self.close(slot),
                }
            }
            let key = self.key(slot);
            let connection = &mut self.connections[slot];
            if connection.wants_turn() {
                if turns == TURNS_IN_A_ROW {
                    self.go_on_later(slot);
                    return;
                }
                turns += 1;
            }
            match action {
                Action::Hold => return,
                Action::Read | Action::Ignore if !connection.readable => return,
                Action::Read | Action::Ignore => match self.read(slot) {
                    Some(next) => action = next,
                    None => return,
                },
                // Bodies of other streams do not keep what the client says from being read.
                Action::Drain if connection.http2.is_some() && connection.readable => {
                    match self.read(slot) {
                        Some(next) => action = next,
                        None if self.connections[slot].socket().is_some() => {}
                        None => return,
                    }
                }
                Action::Drain if connection.http2.is_some() => action = self.pump(slot),
                Action::Drain => {
                    let http = &mut connection.http;
                    action = self.machine.drained(http, key, &mut self.buffers.out);
                }
                // The socket is closed once TLS's `close_notify` is sent.
                Action::Close if connection.announce_end() => {}
                Action::Close => {
                    if !connection.end_sending() {
                        return self.close(slot);
                    }
                    self.machine.linger(&mut connection.http, key);
                    action = Action::Ignore;
                }
                Action::Drop => return self.close(slot),
                Action::Reset => {
                    connection.arm_reset();
                    return self.close(slot);
                }
            }
        }
    }

    /// A connection that has had its turns goes on after the others.
    fn go_on_later(&mut self, slot: usize) {
        let key = self.key(slot);
        if !std::mem::replace(&mut self.connections[slot].goes_on, true) {
            self.again.push(key);
        }
    }

    /// Reads once; `None` when there is nothing now, or when the connection is gone.
    fn read(&mut self, slot: usize) -> Option<Action> {
        let key = self.key(slot);
        let connection = &mut self.connections[slot];
        let received = connection.receive(&mut self.buffers, &self.counters);
        let Buffers {
            raw,
            plain,
            out,
            made,
            ..
        } = &mut self.buffers;
        let bytes = match received {
            Received::Raw(length) => &raw[..length],
            Received::Plain => plain.as_slice(),
            Received::Handshake => return Some(connection.action),
            Received::Broken => return Some(Action::Close),
            Received::Dry => return None,
            Received::Gone => {
                self.close(slot);
                return None;
            }
        };
        if let Some(recorder) = &self.shared.recorder {
            recorder.write(bytes);
        }
        let http = &mut connection.http;
        let mut bytes = bytes;
        if let (Some(seen), Some(limits)) = (connection.preface_seen, self.shared.http2) {
            match spoken(seen, bytes) {
                Speaks::Open(seen) => {
                    connection.preface_seen = Some(seen);
                    return Some(Action::Read);
                }
                Speaks::Http1(before) => {
                    connection.preface_seen = None;
                    if !before.is_empty() {
                        let action = self.machine.received(http, key, before, out);
                        if action != Action::Read {
                            return Some(action);
                        }
                    }
                }
                Speaks::Http2 => {
                    connection.preface_seen = None;
                    bytes = &bytes[PREFACE.len() - usize::from(seen)..];
                    self.counters.http2_connections.add(1);
                    connection.http2 = Some(Box::new(Http2::new(limits, slot as u32, out)));
                }
            }
        }
        let Some(http2) = &mut connection.http2 else {
            return Some(self.machine.received(http, key, bytes, out));
        };
        let mut thread = Thread {
            machine: &mut self.machine,
            streams: &mut self.streams,
            made,
        };
        let action = http2.received(&mut thread, bytes, out);
        self.end_http2_on(slot, action);
        Some(action)
    }

    /// Does something with a stream and drives its connection; false when the stream is gone.
    fn on_stream(
        &mut self,
        key: u64,
        work: impl FnOnce(&mut Http2, &mut Thread<'_>, bool, &mut Vec<u8>) -> Action,
    ) -> bool {
        let Some(stream) = self.streams.find(key) else {
            return false;
        };
        let slot = stream.connection as usize;
        let connection = &mut self.connections[slot];
        let congested = connection.has_backlog();
        let Some(http2) = &mut connection.http2 else {
            return false;
        };
        let Buffers { out, made, .. } = &mut self.buffers;
        let mut thread = Thread {
            machine: &mut self.machine,
            streams: &mut self.streams,
            made,
        };
        let action = work(http2, &mut thread, congested, out);
        self.end_http2_on(slot, action);
        self.drive(slot, action);
        true
    }

    /// More of the bodies of a connection's streams.
    fn pump(&mut self, slot: usize) -> Action {
        let Some(http2) = &mut self.connections[slot].http2 else {
            return Action::Read;
        };
        let Buffers { out, made, .. } = &mut self.buffers;
        let mut thread = Thread {
            machine: &mut self.machine,
            streams: &mut self.streams,
            made,
        };
        let action = http2.pump(&mut thread, out);
        self.end_http2_on(slot, action);
        action
    }

    /// A connection that is to be closed has no more streams.
    fn end_http2_on(&mut self, slot: usize, action: Action) {
        if action == Action::Close {
            self.end_http2(slot);
        }
    }

    fn end_http2(&mut self, slot: usize) {
        if let Some(mut http2) = self.connections[slot].http2.take() {
            http2.end(&mut self.streams, &mut self.machine);
        }
    }

    /// Sends, and lets the kernel say when it takes more if it did not take all.
    fn flush(&mut self, slot: usize) -> Sent {
        let key = self.key(slot);
        let connection = &mut self.connections[slot];
        let sent = connection.send(&mut self.buffers, &self.counters);
        let blocked = sent == Sent::Blocked;
        if sent == Sent::Failed || connection.waits_to_write == blocked {
            return sent;
        }
        connection.waits_to_write = blocked;
        let Some(socket) = connection.socket() else {
            return Sent::Failed;
        };
        let epoll = self.listener.epoll(self.thread);
        match epoll::modify(epoll, socket, EventData::new_u64(key), watched(blocked)) {
            Ok(()) => sent,
            Err(_) => Sent::Failed,
        }
    }

    fn close(&mut self, slot: usize) {
        self.buffers.out.clear();
        self.end_http2(slot);
        let connection = &mut self.connections[slot];
        if !connection.end() {
            return;
        }
        connection.epoch = connection.epoch.wrapping_add(1);
        self.machine.closed(&mut connection.http);
        self.counters.connections_open.subtract(1);
        // A slot number always fits: there are fewer descriptors than that.
        if let Ok(slot) = u32::try_from(slot) {
            self.free.push(slot);
        }
    }
}

/// What the kernel is to tell of a connection; writability only while output waits for it.
fn watched(waits_to_write: bool) -> EventFlags {
    let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    flags.set(EventFlags::OUT, waits_to_write);
    flags
}
