//! The completion loop of one thread: io_uring with direct descriptors, so that the limit of open files does not bound the
//! connections: a ring has a table of its own, and when it is full there is another ring. What bytes mean is the machine's affair.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::counters::Counters;
use super::listen::next_thread;
use super::machine::{Machine, Step};
use super::ring_connection::RingConnection;
use super::rings::Rings;
use super::shared::Shared;
use super::timers::Deadline;
use super::tls::{self, Unwrapped};
use crate::net::acceptor::Happening;

/// Key of what is not a connection; slots never get that far.
pub const DOOR: u64 = u64::MAX;
/// Received and not to be read yet: beyond this the client has to wait, as the kernel's window makes it.
const UNREAD_BYTES: usize = 64 * 1024;
/// Answers up to this size nearly always fit into the socket's buffer at once.
const QUIET_BYTES: usize = 16 * 1024;
/// Pause after the kernel refused a connection.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
/// Where connections come from: one listening socket for all threads.
#[derive(Debug)]
pub struct Gate {
    pub listener: OwnedFd,
    pub threads: usize,
}

#[derive(Debug, Default)]
struct Buffers {
    plain: Vec<u8>,
    out: Vec<u8>,
    wire: Vec<u8>,
}

/// What became of the output.
enum Flushed {
    Nothing,
    UnderWay,
    Failed,
}

#[derive(Debug)]
pub struct RingLoop {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    gate: Arc<Gate>,
    thread: usize,
    machine: Machine,
    rings: Rings,
    /// The ring that accepts when it is this thread's turn.
    accepting: usize,
    my_turn: bool,
    connections: Vec<RingConnection>,
    buffers: Buffers,
}

impl RingLoop {
    pub fn new(shared: Arc<Shared>, gate: Arc<Gate>, thread: usize) -> io::Result<Self> {
        let rings = Rings::new(shared.mailboxes[thread].fd())?;
        Ok(Self {
            counters: Arc::clone(&shared.counters[thread]),
            machine: Machine::new(Arc::clone(&shared), thread),
            shared,
            gate,
            thread,
            rings,
            accepting: 0,
            my_turn: thread == 0,
            connections: Vec::new(),
            buffers: Buffers::default(),
        })
    }

    /// Serves until the server is stopped.
    pub fn run(&mut self) -> io::Result<()> {
        self.accept();
        while !self.shared.is_stopped() {
            let due_ns = self.machine.timers.next_due_ns();
            let until_ns = due_ns.map(|due_ns| self.shared.clock.absolute_ns(due_ns));
            self.rings.wait(until_ns)?;
            for ring in 0..self.rings.count() {
                while let Some(happening) = self.rings[ring].acceptor.next() {
                    self.hear(ring, happening);
                }
            }
            self.run_due();
            self.run_granted();
        }
        Ok(())
    }

    fn hear(&mut self, ring: usize, happening: Happening) {
        match happening {
            Happening::Accepted(slot) => self.accepted(ring, slot),
            Happening::NotAccepted(code) => self.not_accepted(code),
            Happening::Received(key, buffer, length) => {
                if let Some(slot) = self.slot(ring, key) {
                    self.received(ring, slot, buffer, length);
                }
                self.rings[ring].acceptor.release(buffer);
            }
            Happening::Silent(key, code) => {
                if let Some(slot) = self.slot(ring, key) {
                    self.silent(slot, code);
                }
            }
            Happening::Sent(key, number, result) => self.sent(ring, key, number, result),
            Happening::Mail => {
                for key in self.shared.mailboxes[self.thread].take() {
                    if key == DOOR {
                        self.my_turn = true;
                        self.accept();
                    } else {
                        self.machine.granted.push_back(key);
                    }
                }
            }
        }
    }

    /// Accepts if it is this thread's turn: alone one after the other, among several one, and then it is another's turn.
    fn accept(&mut self) {
        if !self.my_turn {
            return;
        }
        if !self.rings[self.accepting].has_room() {
            match self.rings.with_room() {
                Some(ring) => self.accepting = ring,
                None => return self.pause_accepting(),
            }
        }
        let ring = &mut self.rings[self.accepting];
        let many = self.gate.threads == 1 && ring.has_much_room();
        ring.acceptor.accept(self.gate.listener.as_fd(), many);
    }

    fn pause_accepting(&mut self) {
        self.counters.accept_errors.add(1);
        let due_ns = self.shared.clock.now_ns() + ACCEPT_PAUSE_NS;
        self.machine.timers.arm(Deadline {
            due_ns,
            key: DOOR,
            ticket: 0,
        });
    }

    fn accepted(&mut self, ring: usize, slot: u32) {
        let index = self.rings[ring].base + slot;
        self.rings[ring].open += 1;
        if index as usize >= self.connections.len() {
            self.connections
                .resize_with(index as usize + 1, RingConnection::vacant);
        }
        self.counters.connections.add(1);
        self.counters.connections_open.add(1);
        let begun = self.connections[index as usize].begin(self.shared.tls.as_ref());
        if begun {
            self.receive(index as usize);
        } else {
            self.close(index as usize);
        }
        if self.gate.threads > 1 {
            let next = next_thread(&self.shared.counters, self.thread);
            if next != self.thread {
                self.my_turn = false;
                self.shared.mailboxes[next].post(DOOR);
            }
        }
        let ring = &mut self.rings[ring];
        if !ring.acceptor.is_accepting() {
            self.accept();
        } else if !ring.has_much_room() {
            // It says when it has stopped, and goes on one by one.
            ring.acceptor.stop_accepting();
        }
    }

    fn not_accepted(&mut self, code: i32) {
        match code {
            // Told to stop because the table was nearly full, or the client had gone again.
            libc::ECANCELED | libc::ECONNABORTED | libc::EINTR | libc::EAGAIN => self.accept(),
            _ => self.pause_accepting(),
        }
    }

    /// The connection that is still the one meant by a ring's key.
    fn slot(&self, ring: usize, key: u64) -> Option<usize> {
        let index = self.rings[ring].base as usize + (key & u64::from(u32::MAX)) as usize;
        let connection = self.connections.get(index)?;
        let same = u64::from(connection.epoch & 0x0fff_ffff) == key >> 32;
        (connection.open && same).then_some(index)
    }

    /// The connection that is still the one meant by the machine's key.
    fn meant(&self, key: u64) -> Option<usize> {
        let index = (key & u64::from(u32::MAX)) as usize;
        let connection = self.connections.get(index)?;
        (connection.open && u64::from(connection.epoch) == key >> 32).then_some(index)
    }

    /// For the machine.
    fn key(&self, index: usize) -> u64 {
        u64::from(self.connections[index].epoch) << 32 | index as u64
    }

    /// For the ring.
    fn ring_key(&self, ring: usize, index: usize) -> u64 {
        let slot = index as u64 - u64::from(self.rings[ring].base);
        u64::from(self.connections[index].epoch) << 32 | slot
    }

    fn receive(&mut self, index: usize) {
        let ring = self.rings.of(index);
        let key = self.ring_key(ring, index);
        let connection = &mut self.connections[index];
        connection.receiving = true;
        connection.paused = false;
        self.rings[ring].acceptor.receive(key);
    }

    fn received(&mut self, ring: usize, index: usize, buffer: u16, length: u32) {
        self.counters.bytes_received.add(length.into());
        let key = self.key(index);
        let Self {
            rings,
            connections,
            buffers,
            ..
        } = self;
        let connection = &mut connections[index];
        let bytes = rings[ring].acceptor.bytes(buffer, length);
        if !connection.reads() {
            if connection.keep(bytes) >= UNREAD_BYTES && !connection.paused {
                connection.paused = true;
                let ring_key = self.ring_key(ring, index);
                self.rings[ring].acceptor.stop_receiving(ring_key);
            }
            return;
        }
        let (machine, shared, counters) = (&mut self.machine, &self.shared, &self.counters);
        let step = read(connection, key, bytes, buffers, machine, shared, counters);
        match step {
            Some(step) => self.drive(index, step),
            None => self.close(index),
        }
    }

    /// The ring receives nothing more from a connection.
    fn silent(&mut self, index: usize, code: i32) {
        let connection = &mut self.connections[index];
        connection.receiving = false;
        match code {
            0 => {
                connection.ended = true;
                if connection.reads() {
                    self.close(index);
                }
            }
            // The ring was out of buffers for a moment, or only stopped repeating itself.
            libc::ENOBUFS | libc::EAGAIN | libc::EINTR if !connection.paused => {
                self.receive(index);
            }
            libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::ECANCELED if connection.paused => {
                if connection.reads() {
                    self.receive(index);
                }
            }
            _ => self.close(index),
        }
    }

    fn sent(&mut self, ring: usize, key: u64, number: u32, result: i32) {
        let index = self
            .slot(ring, key)
            .filter(|index| self.connections[*index].sending == Some(number));
        let taken = u32::try_from(result).unwrap_or(0);
        self.counters.bytes_sent.add(taken.into());
        let acceptor = &mut self.rings[ring].acceptor;
        let Some(index) = index else {
            return acceptor.finish_send(number);
        };
        // Nothing taken although there is something to take: the connection is of no more use.
        if taken > 0 && !acceptor.go_on_sending(number, taken) {
            return;
        }
        acceptor.finish_send(number);
        let connection = &mut self.connections[index];
        connection.sending = None;
        if taken == 0 {
            return self.close(index);
        }
        if let Some(mut backlog) = connection.take_backlog() {
            connection.sending = Some(acceptor.send(key, &mut backlog, false));
            return;
        }
        let step = connection.step;
        self.drive(index, step);
    }

    fn run_due(&mut self) {
        while let Some(next_ns) = self.machine.timers.next_due_ns() {
            let now_ns = self.shared.clock.now_ns();
            if next_ns > now_ns {
                break;
            }
            // Everything that is due at this moment; what falls due meanwhile is looked at in the next round.
            while let Some(deadline) = self.machine.timers.pop_due(now_ns) {
                if deadline.key == DOOR {
                    self.accept();
                } else if let Some(index) = self.meant(deadline.key) {
                    let connection = &mut self.connections[index];
                    let congested = connection.sending.is_some();
                    let (exchange, out) = (&mut connection.exchange, &mut self.buffers.out);
                    if let Some(step) = self.machine.due(exchange, deadline, congested, out) {
                        self.drive(index, step);
                    }
                }
            }
        }
    }

    /// Goes on with the connections that were given a worker; what they finish may hand workers to others.
    fn run_granted(&mut self) {
        while let Some(key) = self.machine.granted.pop_front() {
            match self.meant(key) {
                Some(index) => {
                    let exchange = &mut self.connections[index].exchange;
                    let step = self.machine.grant(exchange, key, &mut self.buffers.out);
                    self.drive(index, step);
                }
                // Its client went away while it stood in the queue.
                None => self.machine.pass_worker_on(),
            }
        }
    }

    /// Sends what was made, does what the machine says, and so on until there is nothing to do now.
    fn drive(&mut self, index: usize, first: Step) {
        let mut step = first;
        loop {
            self.connections[index].step = step;
            match self.flush(index) {
                // It goes on when the bytes are sent.
                Flushed::UnderWay => return,
                Flushed::Nothing => {}
                Flushed::Failed => return self.close(index),
            }
            let key = self.key(index);
            let connection = &mut self.connections[index];
            match step {
                Step::Hold => return,
                Step::Read | Step::Ignore => match connection.take_unread() {
                    Some(bytes) => {
                        let Self {
                            machine,
                            shared,
                            counters,
                            buffers,
                            ..
                        } = self;
                        match read(connection, key, &bytes, buffers, machine, shared, counters) {
                            Some(next) => step = next,
                            None => return self.close(index),
                        }
                    }
                    None if connection.ended => return self.close(index),
                    None => {
                        if !connection.receiving {
                            self.receive(index);
                        }
                        return;
                    }
                },
                Step::Drain => {
                    let exchange = &mut connection.exchange;
                    step = self.machine.drained(exchange, key, &mut self.buffers.out);
                }
                // Once the farewell of TLS is sent, it is the socket's turn.
                Step::Close if connection.announce_end() => {}
                Step::Close => {
                    self.machine.linger(&mut connection.exchange, key);
                    let ring = self.rings.of(index);
                    let ring_key = self.ring_key(ring, index);
                    self.rings[ring].acceptor.shut_down(ring_key);
                    step = Step::Ignore;
                }
                Step::Drop => return self.close(index),
                Step::Reset => {
                    let ring = self.rings.of(index);
                    let ring_key = self.ring_key(ring, index);
                    self.rings[ring].acceptor.arm_reset(ring_key);
                    return self.close(index);
                }
            }
        }
    }

    /// Hands the output to the ring, or keeps it while an earlier send is under way.
    fn flush(&mut self, index: usize) -> Flushed {
        let connection = &self.connections[index];
        let nothing_new = self.buffers.out.is_empty() && !connection.has_more_to_send();
        if nothing_new {
            return match connection.sending {
                Some(_) => Flushed::UnderWay,
                None => Flushed::Nothing,
            };
        }
        let ring = self.rings.of(index);
        let ring_key = self.ring_key(ring, index);
        let Buffers { out, wire, .. } = &mut self.buffers;
        let connection = &mut self.connections[index];
        if !connection.seal(out, wire) {
            wire.clear();
            return Flushed::Failed;
        }
        if connection.sending.is_some() {
            connection.queue(wire);
        } else if wire.is_empty() {
            return Flushed::Nothing;
        } else {
            let acceptor = &mut self.rings[ring].acceptor;
            // Nothing is to be done when it is sent, but to read what comes then.
            let quiet = wire.len() <= QUIET_BYTES && connection.only_reads_on();
            connection.sending = Some(acceptor.send(ring_key, wire, quiet));
        }
        Flushed::UnderWay
    }

    fn close(&mut self, index: usize) {
        self.buffers.out.clear();
        if !self.connections[index].open {
            return;
        }
        let ring = self.rings.of(index);
        let ring_key = self.ring_key(ring, index);
        let connection = &mut self.connections[index];
        let (receiving, sending) = (connection.receiving, connection.sending);
        self.rings[ring]
            .acceptor
            .close(ring_key, receiving, sending);
        self.rings[ring].open -= 1;
        connection.end();
        self.machine.closed(&mut connection.exchange);
        self.counters.connections_open.subtract(1);
    }
}

/// Lets TLS and the machine take bytes; `None` when the connection is to be closed.
fn read(
    connection: &mut RingConnection,
    key: u64,
    bytes: &[u8],
    buffers: &mut Buffers,
    machine: &mut Machine,
    shared: &Shared,
    counters: &Counters,
) -> Option<Step> {
    let Buffers { plain, out, .. } = buffers;
    let bytes = match tls::unwrap(connection.session(), bytes, plain, out, counters) {
        Unwrapped::NoTls => bytes,
        Unwrapped::Plain => plain.as_slice(),
        Unwrapped::Handshake => return Some(connection.step),
        Unwrapped::Broken => return Some(Step::Close),
        Unwrapped::Gone => return None,
    };
    if let Some(recorder) = &shared.recorder {
        recorder.write(bytes);
    }
    Some(machine.received(&mut connection.exchange, key, bytes, out))
}
