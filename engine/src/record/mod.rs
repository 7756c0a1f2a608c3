//! What a thread keeps of its requests: counters and histograms in segments, the parts of their
//! times, their rows in the log, and the marks that they reach. It must not know of connections,
//! nor of what a user does next.

mod parts;
mod rows;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::check::ms_to_ns;
use crate::job::Job;
use crate::log::Outcome;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::edges::AtEdge;
use crate::measure::rates::Rates;
use crate::measure::recorder::Recorder;
use crate::measure::segment::{Cut, Segment};
use crate::measure::slowest::Slowest;
use crate::measure::steps::RequestTimes;
use crate::pace::arrivals::Spacing;
use crate::pace::rate::Rate;
use crate::pace::share::Share;
use parts::Parts;
use rows::LogRows;

/// What the coordinator must know.
#[derive(Debug)]
pub enum Notice {
    Segment(Box<Segment>),
    /// The completed request that this mark waits for ended in this thread.
    MarkReached {
        mark: usize,
        at_ns: u64,
    },
    /// The script made an error, which it keeps.
    ScriptFailed,
    /// A request failed that ends the run.
    RequestFailed,
}

/// A request that ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub index: u32,
    /// Of its user among those of all threads.
    pub number: u32,
    pub step: u16,
    /// When it was sent; of one that found no connection, when the attempt began.
    pub start_ns: u64,
    /// When it was to be sent: in a closed load, when it was.
    pub intended_ns: u64,
    /// When its user began to connect for it; `None` of one that went out on an open connection, and
    /// in an open load, where the latency says it.
    pub connecting_ns: Option<u64>,
    /// Users alive in this thread.
    pub users: u32,
    /// Of a parallel block, where there is a log.
    pub branch: Option<u32>,
}

impl Ended {
    fn times(&self, now_ns: u64) -> RequestTimes {
        let since = |from_ns: u64| now_ns.saturating_sub(from_ns);
        RequestTimes {
            service_ns: Some(since(self.start_ns)),
            response_ns: self.connecting_ns.map(since),
        }
    }
}

/// A whole response.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    pub status: u16,
    pub body_bytes: u64,
}

/// The gaps between the first sends of a thread's arrivals, where those are not evenly spaced.
struct Gaps {
    rate: Arc<Rate>,
    /// Arrivals of all threads for one of this thread's.
    one_in: f64,
    start_ns: u64,
    /// When the last one was sent, after the start.
    last_ns: Option<u64>,
}

/// The record of one thread.
pub struct Record {
    pub recorder: Recorder,
    job: Arc<Job>,
    /// `None` unless the plan asks for the parts of its requests' times.
    parts: Option<Box<Parts>>,
    /// `None` unless the plan asks for a log of its requests.
    rows: Option<Box<LogRows>>,
    /// `None` where gaps between arrivals are not tested.
    gaps: Option<Gaps>,
    next_mark: usize,
    /// What has come up since they were taken, in its order.
    pub notices: Vec<Notice>,
}

impl Record {
    pub fn new(job: &Arc<Job>, place: &Share, users: usize, start_ns: u64) -> Self {
        let mut recorder = Recorder::new(place.thread, start_ns)
            .with_steps(job.scenarios.figures.len())
            .with_addresses(job.addresses.len());
        recorder.rates = job.rates.map(|rates| {
            let groups = place.of(rates.groups);
            Rates::new(groups, ms_to_ns(rates.every_ms), start_ns)
        });
        recorder.slowest = job.slowest.map(|asked| Box::new(Slowest::new(asked.most)));
        let rows = || Box::new(LogRows::new(users, place.thread, job.script.is_some()));
        Self {
            recorder,
            parts: job.parts.then(|| Box::new(Parts::new(users))),
            rows: job.log.is_some().then(rows),
            gaps: job.open.as_ref().and_then(|open| {
                // With blocks the first step may come again and again, or after a pause.
                let tested = open.spacing != Spacing::Constant && !job.scenarios.decides;
                tested.then(|| Gaps {
                    rate: Arc::clone(&open.rate),
                    one_in: place.one_in(),
                    start_ns,
                    last_ns: None,
                })
            }),
            next_mark: 0,
            notices: Vec::new(),
            job: Arc::clone(job),
        }
    }

    #[inline]
    pub fn counters(&mut self) -> &mut Counters {
        &mut self.recorder.figures.counters
    }

    /// The first request of an arrival was sent, or its connection begun where none was ready.
    #[inline]
    pub fn arrival_sent(&mut self, at_ns: u64) {
        if let Some(gaps) = &mut self.gaps {
            let sent_ns = at_ns.saturating_sub(gaps.start_ns);
            if let Some(last_ns) = gaps.last_ns.replace(sent_ns) {
                let expected = gaps.rate.expected(sent_ns) - gaps.rate.expected(last_ns);
                self.recorder.gaps.record_gap(expected / gaps.one_in);
            }
        }
    }

    /// An arrival is not sent, or later than it was due: the gap around it says nothing.
    pub fn arrival_held(&mut self) {
        if let Some(gaps) = &mut self.gaps {
            gaps.last_ns = None;
        }
    }

    pub fn script_failed(&mut self) {
        self.notices.push(Notice::ScriptFailed);
    }

    /// Ends the present segment.
    pub fn cut(&mut self, cut: Cut, at_ns: u64, at_edge: AtEdge) {
        if let (Some(rows), Some(log)) = (&mut self.rows, &self.job.log) {
            rows.submit(log);
        }
        let segment = self.recorder.cut(cut, at_ns, at_edge);
        self.notices.push(Notice::Segment(Box::new(segment)));
    }

    fn cut_at_mark(&mut self, now_ns: u64) {
        let mark = Cut::Mark(self.next_mark);
        self.cut(mark, now_ns, AtEdge::default());
        self.next_mark += 1;
    }

    /// Takes a completed request's number among those of all threads, before it is recorded: the first number
    /// past a mark ends the segment that belongs to the mark. The mark that it reaches.
    #[inline]
    fn number_completed(&mut self, now_ns: u64) -> Option<usize> {
        if self.next_mark >= self.job.marks.len() {
            return None;
        }
        let number = self.job.completed.fetch_add(1, Ordering::Relaxed) + 1;
        while let Some(mark) = self.job.marks.get(self.next_mark)
            && number > *mark
        {
            self.cut_at_mark(now_ns);
        }
        let reached = self.job.marks.get(self.next_mark) == Some(&number);
        reached.then_some(self.next_mark)
    }

    /// Cuts for marks that other threads reached while this one completed nothing.
    pub fn cut_passed_marks(&mut self, now_ns: u64) {
        while let Some(mark) = self.job.marks.get(self.next_mark)
            && self.job.completed.load(Ordering::Relaxed) >= *mark
        {
            self.cut_at_mark(now_ns);
        }
    }

    /// Whether connections, and bytes on them, are counted where users share them.
    #[inline]
    fn shares(&self) -> bool {
        self.job.http2.is_some()
    }

    /// Bytes have come on a connection.
    #[inline]
    pub fn came(&mut self, bytes: usize) {
        if !self.shares() {
            self.counters().connections.bytes_received += bytes as u64;
        }
    }

    /// A connection is attempted.
    pub fn connecting(&mut self, index: u32, address: u16) {
        if !self.shares() {
            self.counters().connections.attempts += 1;
        }
        if let Some(figures) = self.recorder.address(address) {
            figures.connect_attempts += 1;
        }
        if let Some(rows) = &mut self.rows {
            rows.connecting(index);
        }
    }

    pub fn connected(&mut self, index: u32, address: u16, took_ns: u64) {
        self.counters().connect_time.record(took_ns);
        if !self.shares() {
            self.counters().connections.opened += 1;
            self.recorder.connections_open += 1;
        }
        if let Some(figures) = self.recorder.address(address) {
            figures.connections_opened += 1;
        }
        if let Some(rows) = &mut self.rows {
            rows.connected(index, took_ns);
        }
    }

    /// A connection that was open is not any more.
    pub fn closed_connection(&mut self, by_client: bool) {
        if self.shares() {
            return;
        }
        self.recorder.connections_open -= 1;
        let counters = self.counters();
        if by_client {
            counters.connections.closed_by_client += 1;
        } else {
            counters.connections.closed_by_server += 1;
        }
    }

    /// The server's end of an open connection has come.
    pub fn server_closed_first(&mut self) {
        if !self.shares() {
            self.counters().connections.closed_first_by_server += 1;
        }
    }

    /// The TLS handshake ended well.
    pub fn secured(&mut self, index: u32, took_ns: u64) {
        if let Some(rows) = &mut self.rows {
            rows.secured(index, took_ns);
        }
    }

    /// A request was written, or the rest of it, with so many bytes; `written`: for this send, and
    /// not once for all.
    #[inline]
    pub fn writes(&mut self, index: u32, bytes: u64, written: Option<&[u8]>) {
        if !self.shares() {
            self.counters().connections.bytes_sent += bytes;
        }
        if let Some(rows) = &mut self.rows {
            rows.sends(index, bytes, written);
        }
    }

    /// The same for a request that goes out behind others.
    pub fn writes_behind(&mut self, index: u32, bytes: u64, written: Option<&[u8]>) {
        self.counters().connections.bytes_sent += bytes;
        if let Some(rows) = &mut self.rows {
            rows.sends_behind(index, bytes, written);
        }
    }

    /// So many requests were handed over together.
    #[inline]
    pub fn sent(&mut self, index: u32, address: u16, count: u32, at_ns: u64) {
        for _ in 0..count {
            self.recorder.sent(at_ns);
        }
        if let Some(figures) = self.recorder.address(address) {
            figures.sent += u64::from(count);
        }
        self.begin_parts(index);
    }

    /// No byte of the response that comes next has come.
    #[inline]
    pub fn begin_parts(&mut self, index: u32) {
        if let Some(parts) = &mut self.parts {
            parts.begin(index);
        }
    }

    #[inline]
    pub fn times_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Bytes have come that belong to the response to a request sent at that time.
    pub fn first_byte(&mut self, index: u32, sent_ns: u64, accepted_ns: Option<u64>, now_ns: u64) {
        if let Some(parts) = &mut self.parts {
            parts.first_byte(index, sent_ns, accepted_ns, now_ns);
        }
    }

    /// So many bytes of a response have come.
    #[inline]
    pub fn received(&mut self, index: u32, bytes: usize, now_ns: u64) {
        if let Some(rows) = &mut self.rows {
            rows.received(index, bytes, now_ns);
        }
    }

    /// A whole response came; the mark that it reaches, to be handed to [`Self::judged`].
    #[inline]
    pub fn answered(&mut self, ended: &Ended, response: Answered, now_ns: u64) -> Option<usize> {
        let mark = self.number_completed(now_ns);
        self.recorder
            .completed(now_ns, ended.start_ns, response.status, response.body_bytes);
        self.opened(ended, now_ns);
        if let Some(rates) = &mut self.recorder.rates {
            rates.count(ended.index);
        }
        if let Some(parts) = &self.parts {
            parts.end(
                ended.index,
                ended.start_ns,
                now_ns,
                &mut self.recorder.figures.parts,
            );
        }
        self.latency(ended, now_ns);
        mark
    }

    /// What is wrong with the response that was recorded last.
    #[inline]
    pub fn judged(
        &mut self,
        ended: &Ended,
        response: Answered,
        failed: Option<ErrorKind>,
        mark: Option<usize>,
        now_ns: u64,
    ) {
        if let Some(kind) = failed {
            self.counters().fail(kind);
            self.failed(ended);
        }
        if self.recorder.counts_steps() {
            let figure = self.job.scenarios.steps[usize::from(ended.step)].figure;
            let times = ended.times(now_ns);
            self.recorder
                .step_completed(figure, times, response.status, failed.is_some());
        }
        if self.rows.is_some() {
            let outcome = Outcome {
                status: Some(response.status),
                error: failed,
                body_bytes: response.body_bytes,
            };
            self.row(ended, outcome, now_ns);
        }
        if let Some(mark) = mark {
            self.cut_at_mark(now_ns);
            self.notices.push(Notice::MarkReached {
                mark,
                at_ns: now_ns,
            });
        }
    }

    /// A request in flight ended without a response; a timeout keeps the time that it had.
    pub fn lost(&mut self, ended: &Ended, kind: ErrorKind, now_ns: u64) {
        let times = if kind == ErrorKind::Timeout {
            self.recorder.timed_out(now_ns, ended.start_ns);
            self.opened(ended, now_ns);
            self.latency(ended, now_ns);
            ended.times(now_ns)
        } else {
            self.recorder.lost(now_ns, ended.start_ns, kind);
            RequestTimes::default()
        };
        let figure = self.job.scenarios.steps[usize::from(ended.step)].figure;
        self.recorder.step_failed(figure, times);
        self.failure_row(ended, kind, now_ns);
    }

    /// A request found no connection.
    pub fn unconnected(&mut self, ended: &Ended, kind: ErrorKind, now_ns: u64) {
        self.counters().fail(kind);
        let mut times = RequestTimes::default();
        if matches!(kind, ErrorKind::Timeout | ErrorKind::ConnectTimeout) {
            self.latency(ended, now_ns);
            times.response_ns = ended.times(now_ns).response_ns;
        }
        if let Some(response_ns) = times.response_ns {
            self.recorder.figures.opened.record(response_ns, None);
        }
        let figure = self.job.scenarios.steps[usize::from(ended.step)].figure;
        self.recorder.step_failed(figure, times);
        self.failure_row(ended, kind, now_ns);
    }

    /// A request whose service time was recorded had a connection opened for it.
    #[inline]
    fn opened(&mut self, ended: &Ended, now_ns: u64) {
        let times = ended.times(now_ns);
        if let Some(response_ns) = times.response_ns {
            self.recorder
                .figures
                .opened
                .record(response_ns, times.service_ns);
        }
    }

    /// A request of an open load ended with a time that counts.
    #[inline]
    fn latency(&mut self, ended: &Ended, now_ns: u64) {
        if self.job.open.is_some() {
            let latency_ns = now_ns.saturating_sub(ended.intended_ns);
            self.recorder.figures.open_load.latency.record(latency_ns);
        }
    }

    /// Whatever was wrong.
    fn failed(&mut self, ended: &Ended) {
        if self.job.steps[usize::from(ended.step)].ends_run_on_error {
            self.notices.push(Notice::RequestFailed);
        }
    }

    fn failure_row(&mut self, ended: &Ended, kind: ErrorKind, now_ns: u64) {
        self.failed(ended);
        let outcome = Outcome {
            error: Some(kind),
            ..Outcome::default()
        };
        self.row(ended, outcome, now_ns);
    }

    /// A note of a user: its number among those of its scenario, and its text. `ended`: any request of
    /// the scenario.
    pub fn note(&mut self, ended: &Ended, (number, text): (usize, Vec<u8>), now_ns: u64) {
        if let (Some(rows), Some(log)) = (&mut self.rows, &self.job.log) {
            let text = String::from_utf8_lossy(&text).into_owned();
            rows.note(ended, (number, text), now_ns, log);
        }
    }

    fn row(&mut self, ended: &Ended, outcome: Outcome, now_ns: u64) {
        if let (Some(rows), Some(log)) = (&mut self.rows, &self.job.log) {
            rows.end(ended, outcome, now_ns, log);
        }
    }
}
