//! The thread that measures nothing: it starts the load threads at one instant, forwards commands,
//! writes events and decides when and why the run ends. It sleeps until a message arrives.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Message;
use super::collect::Collector;
use super::input::Input;
use super::output::Output;
use super::prepare::Prepared;
use super::threads::LoadThreads;
use super::window::{Names, Open};
use crate::check::{check_window_ms, ms_to_ns};
use crate::fault::Fault;
use crate::job::Job;
use crate::log::{Log, LogReport, Started};
use crate::measure::schedule::Span;
use crate::net::address::Address;
use crate::net::sys::{monotonic_ns, unix_ns};
use crate::plan::{Command, Start, Window};
use crate::report::{
    Event, Finished, PreparedEvent, Ready, Reason, ScriptReport, ThreadReady, Transport,
};
use crate::script::Script;
use crate::units::ms;
use crate::worker::{WorkerCommand, WorkerMessage};
use prony_common::process::set_affinity;

/// Notice that threads get before an instant all of them must keep.
const NOTICE_NS: u64 = 5_000_000;
/// Notice that the coordinator gives itself before a commanded start: on a busy host it may be woken
/// late.
const START_NOTICE_NS: u64 = 50_000_000;

/// One run, from the start of its threads to its report.
pub struct Coordinator<'a> {
    output: &'a Output,
    prepared: Prepared,
    inbox: Receiver<Message>,
    load_threads: LoadThreads,
    threads: Vec<ThreadReady>,
    collector: Collector,
    window_mode: Window,
    injected_faults: Vec<Fault>,
    windows: u32,
    started_ns: u64,
    /// Why the run is being ended, and the instant.
    ending: Option<(Reason, u64)>,
    finished: Vec<Option<u64>>,
    /// Writes the request log.
    log: Option<JoinHandle<LogReport>>,
}

impl<'a> Coordinator<'a> {
    /// Starts the threads and the load; then it hears what was said before. `None`: it was told to
    /// stop before the load began, and has reported that.
    pub fn new(
        prepared: Prepared,
        early: Vec<Message>,
        output: &'a Output,
        sender: Sender<Message>,
        inbox: Receiver<Message>,
    ) -> Result<Option<Self>, String> {
        let plan = &prepared.plan;
        if plan.threads.pin && !plan.threads.cpus.is_empty() {
            // What little the coordinator does belongs on the load's CPUs, not on the server's.
            // Refused: it stays where it is.
            let _ = set_affinity(&plan.threads.cpus);
        }
        let (load_threads, threads) =
            LoadThreads::start(&prepared.job, &prepared.driver, &plan.threads, &sender)?;
        let mut coordinator = Self {
            output,
            inbox,
            collector: Collector::new(
                0,
                load_threads.len(),
                &prepared.job.marks,
                prepared.job.open.as_ref().map(Open::of),
            ),
            finished: vec![None; load_threads.len()],
            window_mode: plan.window,
            injected_faults: plan.injected_faults.clone(),
            prepared,
            load_threads,
            threads,
            windows: 0,
            started_ns: 0,
            ending: None,
            log: None,
        };
        let mut heard = early;
        heard.extend(coordinator.wait_until_ready()?);
        if coordinator.prepared.plan.start == Start::Commanded {
            output.write(&Event::Prepared(PreparedEvent {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                monotonic_ns: monotonic_ns(),
            }));
        }
        match coordinator.wait_for_start(&mut heard)? {
            Ok(at_ns) => coordinator.start(at_ns)?,
            Err(reason) => {
                let finished = Finished::without_a_load(reason, coordinator.injected_faults);
                output.write(&Event::Finished(Box::new(finished)));
                return Ok(None);
            }
        }
        for message in heard {
            coordinator.hear(message)?;
        }
        Ok(Some(coordinator))
    }

    /// The instant at which the load is to begin, 0 for at once; or why there is to be none. What
    /// else is said meanwhile is added to what was `heard`.
    fn wait_for_start(&self, heard: &mut Vec<Message>) -> Result<Result<u64, Reason>, String> {
        let mut start_ns = match self.prepared.plan.start {
            Start::AtOnce => Some(0),
            Start::Commanded => heard.iter().find_map(Message::starts),
        };
        if let Some(reason) = heard.iter().find_map(Message::stops) {
            return Ok(Err(reason));
        }
        loop {
            let message = match start_ns {
                None => self
                    .inbox
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(at_ns) => {
                    // The threads are told a little before: to them the load is always about to begin.
                    let left_ns = at_ns.saturating_sub(monotonic_ns() + START_NOTICE_NS);
                    if left_ns == 0 {
                        return Ok(Ok(at_ns));
                    }
                    self.inbox.recv_timeout(Duration::from_nanos(left_ns))
                }
            };
            match message {
                Ok(Message::Worker(WorkerMessage::Failed(message))) => return Err(message),
                Ok(message) => {
                    if let Some(reason) = message.stops() {
                        return Ok(Err(reason));
                    }
                    start_ns = start_ns.or_else(|| message.starts());
                    heard.push(message);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("all threads ended before the start".to_owned());
                }
            }
        }
    }

    /// Waits for the threads; returns what else was said meanwhile.
    fn wait_until_ready(&mut self) -> Result<Vec<Message>, String> {
        let mut early = Vec::new();
        let mut ready = 0;
        while ready < self.load_threads.len() {
            match self.inbox.recv() {
                Ok(Message::Worker(WorkerMessage::Ready { thread, waker })) => {
                    self.load_threads.set_waker(thread, waker);
                    ready += 1;
                }
                Ok(Message::Worker(WorkerMessage::Failed(message))) => return Err(message),
                Ok(other) => early.push(other),
                Err(_) => return Err("all threads ended before the start".to_owned()),
            }
        }
        Ok(early)
    }

    /// `at_ns`: where that is not too soon.
    fn start(&mut self, at_ns: u64) -> Result<(), String> {
        let now_ns = monotonic_ns();
        self.started_ns = at_ns.max(now_ns + NOTICE_NS);
        let started_unix_ns = unix_ns() + (self.started_ns - now_ns);
        let job = &self.prepared.job;
        self.collector = Collector::new(
            self.started_ns,
            self.load_threads.len(),
            &job.marks,
            job.open.as_ref().map(Open::of),
        )
        .adding_up(self.prepared.plan.share.is_some());
        self.output.write(&Event::Ready(Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: self.prepared.driver.name.to_owned(),
            driver_reason: self.prepared.driver.reason.clone(),
            pid: std::process::id(),
            addresses: job.addresses.iter().map(ToString::to_string).collect(),
            transport: if job.addresses.iter().any(Address::is_unix) {
                Transport::Unix
            } else {
                Transport::Tcp
            },
            tls: self.prepared.job.tls.as_ref().map(|tls| tls.ready()),
            threads: self.threads.clone(),
            injected_faults: self.injected_faults.clone(),
            started_unix_ns,
            started_monotonic_ns: self.started_ns,
        }));
        self.log = start_log(
            job,
            Started {
                unix_ns: started_unix_ns,
                monotonic_ns: self.started_ns,
            },
        )?;
        let window = match self.window_mode {
            Window::All => Some(self.plan_window(self.started_ns, u64::MAX)),
            Window::Fixed {
                warmup_ms,
                duration_ms,
            } => {
                let opens_ns = self.started_ns + ms_to_ns(warmup_ms);
                Some(self.plan_window(opens_ns, opens_ns + ms_to_ns(duration_ms)))
            }
            Window::Commanded => None,
        };
        self.load_threads.send_all(WorkerCommand::Start {
            at_ns: self.started_ns,
            window,
        });
        Ok(())
    }

    fn plan_window(&mut self, opens_ns: u64, closes_ns: u64) -> Span {
        self.windows += 1;
        let span = Span {
            id: self.windows,
            opens_ns,
            closes_ns,
        };
        self.collector.expect_window(span.id, opens_ns, closes_ns);
        span
    }

    /// Runs until the report is written.
    pub fn run(mut self) -> Result<(), String> {
        while !self.collector.is_complete() {
            match self.inbox.recv() {
                Ok(message) => self.hear(message)?,
                Err(_) => return Err("all threads ended without a report".to_owned()),
            }
        }
        // Without an order the threads stop for one reason only: their own deadline.
        let deadline_ns = self
            .prepared
            .job
            .after_ns
            .map_or(u64::MAX, |after| self.started_ns + after);
        let (reason, stopped_ns) = match self.ending {
            Some((reason, at_ns)) if at_ns < deadline_ns => (reason, at_ns),
            _ => (Reason::Duration, deadline_ns),
        };
        let in_order = !matches!(reason, Reason::Signal | Reason::StdinClosed);
        let names = Names {
            steps: &self.prepared.job.scenarios.figures,
            addresses: &self.prepared.job.addresses,
        };
        let elapsed_ns = stopped_ns.saturating_sub(self.started_ns);
        let rates = self.collector.rates();
        let script = self.prepared.job.script.as_ref().map(|script| {
            script.done(self.collector.summary(elapsed_ns));
            ScriptReport::new(script)
        });
        let (totals, window) = self
            .collector
            .finish(stopped_ns, in_order, &self.threads, &names);
        // Every thread has handed over its rows before its last segment.
        let log = match (&self.prepared.job.log, self.log) {
            (Some(log), Some(writer)) => {
                log.end();
                writer.join().ok()
            }
            _ => None,
        };
        self.output.write(&Event::Finished(Box::new(Finished {
            reason,
            elapsed_ms: ms(elapsed_ns),
            totals,
            window,
            log,
            rates: self.prepared.job.rates.map(|_| rates.into_iter().collect()),
            script,
            values: self.prepared.job.scenarios.reported.values(),
            injected_faults: self.injected_faults,
        })));
        Ok(())
    }

    fn hear(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Worker(message) => return self.hear_worker(message),
            Message::Input(Input::Command(command)) => self.obey(command),
            Message::Input(Input::Unreadable(sentence)) => eprintln!("prony-engine: {sentence}"),
            Message::Input(Input::Closed) => self.end(Reason::StdinClosed),
            // Both came before the coordinator.
            Message::Input(Input::Plan(_)) | Message::Prepared(_) => {}
            Message::Signal => self.end(Reason::Signal),
            Message::OutputClosed => self.end(Reason::Stopped),
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) {
        match command {
            // It was heard before the load, or the load did not wait for it.
            Command::Start { .. } => {}
            Command::Window {
                duration_ms,
                at_monotonic_ns,
            } => self.command_window(duration_ms, soon(at_monotonic_ns)),
            Command::CloseWindow { at_monotonic_ns } => self.close_window(soon(at_monotonic_ns)),
            Command::Stop { at_monotonic_ns } => {
                self.end_at(Reason::Stopped, soon(at_monotonic_ns).max(self.started_ns));
            }
        }
    }

    fn hear_worker(&mut self, message: WorkerMessage) -> Result<(), String> {
        let output = self.output;
        let mut emit = |event: Event| output.write(&event);
        match message {
            WorkerMessage::Ready { .. } => {}
            WorkerMessage::Segment(segment) => self.collector.add(&segment, &mut emit),
            WorkerMessage::MarkReached { mark, at_ns } => {
                self.collector.reach_mark(mark, at_ns, &mut emit)
            }
            WorkerMessage::Finished { thread, at_ns } => {
                self.finished[thread] = Some(at_ns);
                if let Some(last_ns) = self
                    .finished
                    .iter()
                    .copied()
                    .collect::<Option<Vec<_>>>()
                    .and_then(|all| all.into_iter().max())
                {
                    let used_up = self.prepared.job.quota.is_used_up();
                    let script = self.prepared.job.script.as_ref();
                    self.end_at(
                        if script.is_some_and(|script| script.error().is_some()) {
                            Reason::Script
                        } else if script.is_some_and(Script::stopped_itself) {
                            Reason::Stopped
                        } else if used_up {
                            Reason::TotalRequests
                        } else if self.prepared.job.open.is_some() {
                            Reason::Schedule
                        } else {
                            Reason::Iterations
                        },
                        last_ns,
                    );
                }
            }
            WorkerMessage::ScriptFailed => self.end(Reason::Script),
            WorkerMessage::Failed(message) => return Err(message),
        }
        Ok(())
    }

    fn command_window(&mut self, duration_ms: f64, at_ns: u64) {
        if self.window_mode != Window::Commanded {
            eprintln!(
                "prony-engine: a window was commanded, but window.mode of the plan is not commanded: ignored"
            );
        } else if let Err(refusal) = check_window_ms(duration_ms) {
            eprintln!("prony-engine: a window was commanded, but {refusal}: ignored");
        } else if self.goes_on_until(at_ns) {
            let opens_ns = at_ns.max(self.started_ns);
            let span = self.plan_window(opens_ns, opens_ns + ms_to_ns(duration_ms));
            self.load_threads.send_all(WorkerCommand::Window(span));
        }
    }

    fn close_window(&mut self, at_ns: u64) {
        if self.goes_on_until(at_ns)
            && let Some(id) = self.collector.close_window(at_ns)
        {
            self.load_threads
                .send_all(WorkerCommand::CloseWindow { id, at_ns });
        }
    }

    fn goes_on_until(&self, at_ns: u64) -> bool {
        self.ending.is_none_or(|(_, ends_ns)| at_ns < ends_ns)
    }

    /// As soon as can be, also when a later stop was commanded.
    fn end(&mut self, reason: Reason) {
        let at_ns = soon(None).max(self.started_ns);
        if self.goes_on_until(at_ns) {
            self.ending = None;
        }
        self.end_at(reason, at_ns);
    }

    fn end_at(&mut self, reason: Reason, at_ns: u64) {
        if self.ending.is_none() {
            self.ending = Some((reason, at_ns));
            self.load_threads.send_all(WorkerCommand::Stop { at_ns });
        }
    }
}

/// The instant that was asked for, or the first that all threads can still keep.
fn soon(at_ns: Option<u64>) -> u64 {
    at_ns.unwrap_or(0).max(monotonic_ns() + NOTICE_NS)
}

/// The thread that writes the request log, where there is one, on the load's CPUs.
fn start_log(job: &Job, started: Started) -> Result<Option<JoinHandle<LogReport>>, String> {
    let Some(file) = job.log.as_ref().and_then(Log::take_file) else {
        return Ok(None);
    };
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || file.write_all(started))
        .map(Some)
        .map_err(|error| format!("the thread of the request log cannot be started: {error}"))
}
