//! What the request log needs to know of each user's request until it ends, and the making of its row. Only for plans that ask for
//! a log.

use std::collections::{HashMap, VecDeque};

use super::Worker;
use crate::log::{Log, Row, Rows, target_of};
use crate::measure::counters::ErrorKind;
use crate::net::Driver;

/// The request that a user has before it, and the connection it goes out on.
#[derive(Debug, Clone, Default)]
struct Noted {
    connect_ns: Option<u64>,
    tls_ns: Option<u64>,
    first_ns: Option<u64>,
    path: Option<Box<str>>,
    bytes_out: u64,
    bytes_in: u64,
}

/// See the module.
pub(super) struct Logging {
    users: Vec<Noted>,
    /// By user: the requests that went out together with the one above, in their order.
    behind: HashMap<u32, VecDeque<Noted>>,
    rows: Rows,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct End {
    pub status: Option<u16>,
    pub error: Option<ErrorKind>,
    pub body_bytes: u64,
}

impl Logging {
    pub(super) fn new(users: usize, thread: usize) -> Self {
        Self {
            users: vec![Noted::default(); users],
            behind: HashMap::new(),
            rows: Rows::of_thread(thread),
        }
    }

    pub(super) fn connecting(&mut self, index: u32) {
        let noted = &mut self.users[index as usize];
        (noted.connect_ns, noted.tls_ns) = (None, None);
    }

    pub(super) fn connected(&mut self, index: u32, took_ns: u64) {
        self.users[index as usize].connect_ns = Some(took_ns);
    }

    pub(super) fn secured(&mut self, index: u32, took_ns: u64) {
        self.users[index as usize].tls_ns = Some(took_ns);
    }

    /// A request, or a part of it, goes out. Where it was written for this send, its target is kept.
    pub(super) fn sends(&mut self, index: u32, bytes: u64, written: Option<&[u8]>) {
        let noted = &mut self.users[index as usize];
        noted.bytes_out += bytes;
        // What came before only asked for the rest.
        noted.first_ns = None;
        if let Some(written) = written {
            noted.path = target_of(written);
        }
    }

    /// One of several requests that go out together; `place`: how many of them are before it.
    pub(super) fn sends_together(&mut self, index: u32, place: u32, bytes: &[u8], written: bool) {
        let (count, written) = (bytes.len() as u64, written.then_some(bytes));
        if place == 0 {
            self.sends(index, count, written);
            return;
        }
        let noted = Noted {
            path: written.and_then(target_of),
            bytes_out: count,
            ..Noted::default()
        };
        self.behind.entry(index).or_default().push_back(noted);
    }

    /// The request of this user, whose place the next of those that went out with it takes.
    fn take(&mut self, index: u32) -> Noted {
        let queue = self.behind.get_mut(&index);
        let next = queue.and_then(VecDeque::pop_front).unwrap_or_default();
        std::mem::replace(&mut self.users[index as usize], next)
    }

    pub(super) fn received(&mut self, index: u32, bytes: usize, now_ns: u64) {
        let noted = &mut self.users[index as usize];
        noted.bytes_in += bytes as u64;
        noted.first_ns.get_or_insert(now_ns);
    }

    pub(super) fn hand_over(&mut self, log: &Log) {
        self.rows.hand_over(log);
    }
}

impl<D: Driver> Worker<'_, D> {
    /// The request of this user, begun at that instant, ends now.
    pub(super) fn log_end(&mut self, index: u32, start_ns: u64, end: End) {
        let (Some(logging), Some(log)) = (&mut self.logging, &self.job.log) else {
            return;
        };
        let noted = logging.take(index);
        let service_ns = self.now_ns.saturating_sub(start_ns);
        let latency_ns = self.open.as_ref().map_or(service_ns, |open| {
            self.now_ns.saturating_sub(open.intended_ns(index))
        });
        let row = Row {
            start_ns,
            latency_ns,
            service_ns,
            connect_ns: noted.connect_ns,
            tls_ns: noted.tls_ns,
            first_byte_ns: noted.first_ns.map(|first| first.saturating_sub(start_ns)),
            step: self.users[index as usize].step,
            path: noted.path,
            user: index * self.post.threads as u32 + self.post.thread as u32,
            status: end.status,
            error: end.error,
            bytes_out: noted.bytes_out,
            bytes_in: noted.bytes_in,
            body_bytes: end.body_bytes,
            users: self.alive as u32,
        };
        logging.rows.push(row, log);
    }

    /// The same for a request without an answer.
    pub(super) fn log_failure(&mut self, index: u32, start_ns: u64, kind: ErrorKind) {
        if self.logging.is_some() {
            let end = End {
                error: Some(kind),
                ..End::default()
            };
            self.log_end(index, start_ns, end);
        }
    }
}
