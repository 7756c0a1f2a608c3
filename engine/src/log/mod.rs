//! The request log: one row per completed or failed request, and per note, in a CSV file. Load threads collect
//! rows and pass them on in batches; a separate thread formats them, so that the cost to the load is
//! small and bounded. It knows nothing of users or connections.

mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

pub use writer::{LogFile, LogReport, Started};

use crate::measure::counters::ErrorKind;
use crate::net::sys::monotonic_ns;
use crate::plan::Plan;
use crate::refusal::PlanError;
use crate::scenario::request;

/// The first line of the file.
pub const COLUMNS: [&str; 22] = [
    "start_unix_ms",
    "start_ns",
    "latency_ns",
    "service_ns",
    "connect_ns",
    "tls_ns",
    "first_byte_ns",
    "scenario",
    "step",
    "step_index",
    "method",
    "path",
    "user",
    "thread",
    "status",
    "error",
    "bytes_out",
    "bytes_in",
    "body_bytes",
    "users",
    "branch",
    "note",
];

/// A thread hands its rows over in batches of this size, and at every instant at which segments are cut.
const BATCH_ROWS: usize = 512;
/// So many batches may wait for the writer; then threads wait for it. Nothing is dropped.
const BATCHES_WAITING: usize = 64;

/// One request that ended, or a note, in the clock of the run.
#[derive(Debug, Default)]
pub struct Row {
    /// The actual send; of a request that found no connection, the begin of the attempt.
    pub start_ns: u64,
    /// From the intended send to the end.
    pub latency_ns: u64,
    /// From the actual send to the end.
    pub service_ns: u64,
    pub noted: Noted,
    pub outcome: Outcome,
    pub step: u16,
    pub user: u32,
    /// Of this thread, when the request ended.
    pub users: u32,
    /// In a parallel block: which of its branches sent it, from 0.
    pub branch: Option<u32>,
    /// Of a row that is no request: its number among the notes of its scenario, and its text.
    pub note: Option<(usize, String)>,
}

/// What is known of a request before it ends, and of the connection it goes out on.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// Of a connection that was opened and had no request before.
    pub connect_ns: Option<u64>,
    pub tls_ns: Option<u64>,
    /// When the first byte of its response came.
    pub first_ns: Option<u64>,
    /// Where it is not the same for every request of the step.
    pub method: Option<Box<str>>,
    pub path: Option<Box<str>>,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

/// With what a request ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// `None` without a response.
    pub status: Option<u16>,
    pub error: Option<ErrorKind>,
    pub body_bytes: u64,
}

#[derive(Debug)]
enum LogMessage {
    /// Rows of a thread.
    Rows(usize, Vec<Row>),
    End,
}

/// What the log costs, as far as it is known outside of the writer.
#[derive(Debug, Default)]
struct Costs {
    waited_ns: AtomicU64,
    lost: AtomicU64,
}

/// The way of all threads to the writer.
#[derive(Debug)]
pub struct Log {
    batches: SyncSender<LogMessage>,
    costs: Arc<Costs>,
    /// Until the writer takes it.
    file: Mutex<Option<LogFile>>,
}

impl Log {
    /// Creates the file. `fixed`: per step the bytes of every request, where they are the same.
    pub fn create(plan: &Plan, fixed: &[Option<&[u8]>]) -> Result<Option<Self>, PlanError> {
        let Some(path) = &plan.log else {
            return Ok(None);
        };
        let (batches, inbox) = sync_channel(BATCHES_WAITING);
        let costs = Arc::new(Costs::default());
        let file = LogFile::create(path, plan, fixed, inbox, Arc::clone(&costs))?;
        Ok(Some(Self {
            batches,
            costs,
            file: Mutex::new(Some(file)),
        }))
    }

    /// The file, once, for the thread that writes.
    pub fn take_file(&self) -> Option<LogFile> {
        self.file.lock().ok()?.take()
    }

    /// The rows of a thread; waits while the writer has too many.
    fn submit(&self, thread: usize, rows: Vec<Row>) {
        let message = match self.batches.try_send(LogMessage::Rows(thread, rows)) {
            Ok(()) => return,
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => message,
        };
        let from_ns = monotonic_ns();
        if let Err(unsent) = self.batches.send(message)
            && let LogMessage::Rows(_, rows) = unsent.0
        {
            let rows = rows.len() as u64;
            self.costs.lost.fetch_add(rows, Ordering::Relaxed);
        }
        let waited_ns = monotonic_ns() - from_ns;
        self.costs.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
    }

    /// Nothing more is coming.
    pub fn end(&self) {
        // Without a writer there is nobody to notify.
        let _ = self.batches.send(LogMessage::End);
    }
}

/// The rows of a thread that were not handed over yet.
#[derive(Debug)]
pub struct Rows {
    thread: usize,
    rows: Vec<Row>,
}

impl Rows {
    pub fn of_thread(thread: usize) -> Self {
        Self {
            thread,
            rows: Vec::with_capacity(BATCH_ROWS),
        }
    }

    #[inline]
    pub fn push(&mut self, row: Row, log: &Log) {
        self.rows.push(row);
        if self.rows.len() >= BATCH_ROWS {
            self.submit(log);
        }
    }

    pub fn submit(&mut self, log: &Log) {
        if !self.rows.is_empty() {
            let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(BATCH_ROWS));
            log.submit(self.thread, rows);
        }
    }
}

/// The method in the first line of a request.
pub fn method_of(request: &[u8]) -> Option<Box<str>> {
    let method = request.split(|byte| *byte == b' ').next()?;
    Some(String::from_utf8_lossy(method).into())
}

/// The target in the first line of a request.
pub fn target_of(request: &[u8]) -> Option<Box<str>> {
    request::target_of(request).map(|target| String::from_utf8_lossy(target).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_second_word() {
        assert_eq!(
            target_of(b"GET /a?b=c HTTP/1.1\r\nHost: d\r\n\r\n").as_deref(),
            Some("/a?b=c")
        );
        assert_eq!(target_of(b"GET"), None);
    }
}
