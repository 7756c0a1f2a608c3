//! What the request log needs to know of each user's requests until they end, and the making of
//! their rows. Only for plans that ask for a log.

use std::collections::{HashMap, VecDeque};

use super::Ended;
use crate::log::{Log, Noted, Outcome, Row, Rows, method_of, target_of};

/// The requests of a thread that have a row to come.
#[derive(Debug)]
pub(super) struct LogRows {
    /// By user: the request that is answered next.
    users: Vec<Noted>,
    /// By user: the requests behind that one, in their order.
    behind: HashMap<u32, VecDeque<Noted>>,
    rows: Rows,
    /// Requests of a step may differ in their method.
    keeps_methods: bool,
}

impl LogRows {
    pub(super) fn new(users: usize, thread: usize, keeps_methods: bool) -> Self {
        Self {
            users: vec![Noted::default(); users],
            behind: HashMap::new(),
            rows: Rows::of_thread(thread),
            keeps_methods,
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

    /// The request that is answered next goes out, or a part of it. Where it was written for this
    /// send, its target is kept.
    pub(super) fn sends(&mut self, index: u32, bytes: u64, written: Option<&[u8]>) {
        let noted = &mut self.users[index as usize];
        noted.bytes_out += bytes;
        // What came before only asked for the rest.
        noted.first_ns = None;
        if let Some(written) = written {
            noted.path = target_of(written);
            noted.method = method_of(written).filter(|_| self.keeps_methods);
        }
    }

    /// A request goes out behind others.
    pub(super) fn sends_behind(&mut self, index: u32, bytes: u64, written: Option<&[u8]>) {
        let noted = Noted {
            path: written.and_then(target_of),
            method: written.and_then(method_of).filter(|_| self.keeps_methods),
            bytes_out: bytes,
            ..Noted::default()
        };
        self.behind.entry(index).or_default().push_back(noted);
    }

    pub(super) fn received(&mut self, index: u32, bytes: usize, now_ns: u64) {
        let noted = &mut self.users[index as usize];
        noted.bytes_in += bytes as u64;
        noted.first_ns.get_or_insert(now_ns);
    }

    /// The request of this user that is answered next ends now; the one behind it takes its place.
    pub(super) fn end(&mut self, ended: &Ended, outcome: Outcome, now_ns: u64, log: &Log) {
        let queue = self.behind.get_mut(&ended.index);
        let next = queue.and_then(VecDeque::pop_front).unwrap_or_default();
        let noted = std::mem::replace(&mut self.users[ended.index as usize], next);
        let row = Row {
            start_ns: ended.start_ns,
            latency_ns: now_ns.saturating_sub(ended.intended_ns),
            service_ns: now_ns.saturating_sub(ended.start_ns),
            noted,
            outcome,
            ..Self::row(ended)
        };
        self.rows.push(row, log);
    }

    fn row(ended: &Ended) -> Row {
        Row {
            step: ended.step,
            user: ended.number,
            users: ended.users,
            branch: ended.branch,
            ..Row::default()
        }
    }

    /// A row that is no request.
    pub(super) fn note(&mut self, ended: &Ended, note: (usize, String), now_ns: u64, log: &Log) {
        let row = Row {
            start_ns: now_ns,
            note: Some(note),
            ..Self::row(ended)
        };
        self.rows.push(row, log);
    }

    pub(super) fn submit(&mut self, log: &Log) {
        self.rows.submit(log);
    }
}
