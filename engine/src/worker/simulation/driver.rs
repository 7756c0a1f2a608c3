//! The virtual clock, and the server and kernel behind the driver of a simulated thread. A simulated
//! server is a plain function of the time; tests set it before they start the thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::mpsc::Sender;

use crate::net::{Config, ConnId, Driver, NetEvent, Received, sys::Waker};
use crate::payload::Payload;
use crate::worker::WorkerCommand;

pub(super) const MS: u64 = 1_000_000;
pub(super) const START_NS: u64 = 1_000 * MS;
pub(super) const CONNECT_NS: u64 = MS;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// When the response to a request sent at this time (after the start) comes.
pub(super) type Service = fn(u64) -> u64;

/// What the kernel says to an attempt to connect at this time (after the start); `None`: it lets it begin.
pub(super) type Refusal = fn(u64) -> Option<i32>;

std::thread_local! {
    /// When an attempt to connect at this time (after the start) succeeds.
    pub(super) static CONNECT: std::cell::Cell<Service> = const { std::cell::Cell::new(|at_ns| at_ns + CONNECT_NS) };
    pub(super) static SERVICE: std::cell::Cell<Service> = const { std::cell::Cell::new(|sent_ns| sent_ns) };
    pub(super) static REFUSAL: std::cell::Cell<Refusal> = const { std::cell::Cell::new(|_| None) };
    /// The same for a send.
    pub(super) static SEND_REFUSAL: std::cell::Cell<Refusal> = const { std::cell::Cell::new(|_| None) };
    /// When requests were sent, after the start.
    pub(super) static SENDS: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
    /// The time that each send takes the client.
    pub(super) static SEND_NS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    /// A command of the coordinator, and when it reaches the thread (after the start).
    pub(super) static COMMAND: std::cell::RefCell<Option<(u64, WorkerCommand)>> = const { std::cell::RefCell::new(None) };
    pub(super) static COORDINATOR: std::cell::RefCell<Option<Sender<WorkerCommand>>> = const { std::cell::RefCell::new(None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Connected(ConnId),
    Answered(ConnId),
    Refused(ConnId, i32),
    NotSent(ConnId, i32),
}

/// A server that takes a millisecond to connect and answers on demand; time passes only in waits
/// and, where asked for, in sends.
pub(super) struct Simulated {
    now_ns: u64,
    /// Waits in a row that did not have to wait.
    looks: u32,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    batch: VecDeque<NetEvent>,
    /// When the response of each connection came.
    arrived_ns: HashMap<ConnId, u64>,
    service: Service,
    refusal: Refusal,
}

impl Driver for Simulated {
    const NAME: &'static str = "simulated";
    const SEND_GROUP: usize = 16;
    const STAMPS_EACH_READ: bool = false;

    fn new(_config: Config) -> io::Result<Self> {
        Ok(Self {
            now_ns: START_NS,
            looks: 0,
            due: BinaryHeap::new(),
            batch: VecDeque::new(),
            arrived_ns: HashMap::new(),
            service: SERVICE.get(),
            refusal: REFUSAL.get(),
        })
    }

    fn connect(&mut self, conn: ConnId, _address: usize) {
        if let Some(code) = (self.refusal)(self.now_ns - START_NS) {
            self.due
                .push(Reverse((self.now_ns, Due::Refused(conn, code))));
            return;
        }
        let at_ns = START_NS + CONNECT.get()(self.now_ns - START_NS);
        self.due.push(Reverse((at_ns, Due::Connected(conn))));
    }

    fn send(&mut self, conn: ConnId, _payload: Payload) {
        if let Some(code) = SEND_REFUSAL.get()(self.now_ns - START_NS) {
            self.due
                .push(Reverse((self.now_ns, Due::NotSent(conn, code))));
            return;
        }
        SENDS.with_borrow_mut(|sends| sends.push(self.now_ns - START_NS));
        let at_ns = START_NS + (self.service)(self.now_ns - START_NS);
        self.due.push(Reverse((at_ns, Due::Answered(conn))));
        self.now_ns += SEND_NS.get();
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_sending(&self, _conn: ConnId) -> bool {
        false
    }

    fn close(&mut self, conn: ConnId) {
        let of = |due: &Due| match due {
            Due::Connected(of) | Due::Answered(of) | Due::Refused(of, _) | Due::NotSent(of, _) => {
                *of
            }
        };
        self.due.retain(|Reverse((_, due))| of(due) != conn);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let first_ns = self.due.peek().map_or(u64::MAX, |due| due.0.0);
        let next_ns = first_ns.min(until_ns.unwrap_or(u64::MAX));
        // Looking again and again takes time: that is how it passes for one who polls.
        self.looks = if next_ns > self.now_ns {
            0
        } else {
            self.looks + 1
        };
        self.now_ns = next_ns.max(self.now_ns + if self.looks > 2 { 100 } else { 0 });
        let reached = COMMAND.with_borrow_mut(|command| {
            command.take_if(|(reaches_ns, _)| self.now_ns >= START_NS + *reaches_ns)
        });
        if let Some((_, command)) = reached {
            COORDINATOR.with_borrow(|commands| commands.as_ref().unwrap().send(command).unwrap());
            self.batch.push_back(NetEvent::Woken);
        }
        while let Some(Reverse((at_ns, due))) = self.due.peek().copied()
            && at_ns <= self.now_ns
        {
            self.due.pop();
            self.batch.push_back(match due {
                Due::Connected(conn) => NetEvent::Connected(conn),
                Due::Refused(conn, code) => NetEvent::ConnectFailed(conn, code),
                Due::NotSent(conn, code) => NetEvent::Refused(conn, code),
                Due::Answered(conn) => {
                    self.arrived_ns.insert(conn, at_ns);
                    NetEvent::Received(Received::new(conn, RESPONSE.len(), false))
                }
            });
        }
        Ok(())
    }

    fn next(&mut self) -> Option<NetEvent> {
        self.batch.pop_front()
    }

    fn bytes(&self, _received: &Received) -> &[u8] {
        RESPONSE
    }

    fn arrived_ns(&self, received: &Received) -> Option<u64> {
        self.arrived_ns.get(&received.conn).copied()
    }

    fn release(&mut self, _received: Received) {}

    fn waker(&self) -> Waker {
        Waker::new().unwrap()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}
