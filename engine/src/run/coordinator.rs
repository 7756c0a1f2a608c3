//! The thread that measures nothing: it starts the load threads at one instant, forwards commands,
//! writes events and decides when and why the run ends. It sleeps until a message arrives.

mod report;
mod start;

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use super::Message;
use super::collect::Collector;
use super::input::Input;
use super::output::Output;
use super::prepare::Prepared;
use super::threads::LoadThreads;
use crate::check::{check_turns, check_window_ms, ms_to_ns};
use crate::fault::Fault;
use crate::log::LogReport;
use crate::measure::schedule::{Span, Turn};
use crate::net::sys::monotonic_ns;
use crate::plan::{Command, Window};
use crate::record::Notice;
use crate::report::{Event, Reason, ThreadReady};
use crate::worker::{WorkerCommand, WorkerMessage};

/// Notice that threads get before an instant all of them must keep.
const NOTICE_NS: u64 = 5_000_000;

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
    /// The window consists of turns.
    in_turns: bool,
    started_ns: u64,
    /// Why the run is being ended, and the instant.
    ending: Option<(Reason, u64)>,
    finished: Vec<Option<u64>>,
    /// Writes the request log.
    log: Option<JoinHandle<LogReport>>,
}

impl Coordinator<'_> {
    /// Runs until the report is written.
    pub fn run(mut self) -> Result<(), String> {
        while !self.collector.is_complete() {
            match self.inbox.recv() {
                Ok(message) => self.handle(message)?,
                Err(_) => return Err("all threads ended without a report".to_owned()),
            }
        }
        self.report();
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

    fn handle(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Worker(message) => return self.handle_worker(message),
            Message::Input(Input::Command(command)) => self.execute(command),
            Message::Input(Input::Unreadable(sentence)) => eprintln!("prony-engine: {sentence}"),
            Message::Input(Input::Closed) => self.end(Reason::StdinClosed),
            // Both came before the coordinator.
            Message::Input(Input::Plan(_)) | Message::Prepared(_) => {}
            Message::Signal => self.end(Reason::Signal),
            Message::OutputClosed => self.end(Reason::Stopped),
        }
        Ok(())
    }

    fn execute(&mut self, command: Command) {
        match command {
            // It was handled before the load, or the load did not wait for it.
            Command::Start { .. } => {}
            Command::Window {
                duration_ms,
                at_monotonic_ns,
            } => self.command_window(duration_ms, soon(at_monotonic_ns)),
            Command::CloseWindow { at_monotonic_ns } => self.close_window(soon(at_monotonic_ns)),
            Command::Rest { at_monotonic_ns } => self.command_rest(soon(at_monotonic_ns)),
            Command::Turns {
                turns,
                at_monotonic_ns,
            } => self.command_turns(&turns, soon(at_monotonic_ns)),
            Command::Stop { at_monotonic_ns } => {
                self.end_at(Reason::Stopped, soon(at_monotonic_ns).max(self.started_ns));
            }
        }
    }

    fn handle_worker(&mut self, message: WorkerMessage) -> Result<(), String> {
        let output = self.output;
        let mut emit = |event: Event| output.write(&event);
        match message {
            WorkerMessage::Ready { .. } => {}
            WorkerMessage::Notice(Notice::Segment(segment)) => {
                self.collector.add(&segment, &mut emit);
            }
            WorkerMessage::Notice(Notice::MarkReached { mark, at_ns }) => {
                self.collector.reach_mark(mark, at_ns, &mut emit);
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
                    self.end_at(self.own_reason(), last_ns);
                }
            }
            WorkerMessage::Notice(Notice::ScriptFailed) => self.end(Reason::Script),
            WorkerMessage::Notice(Notice::RequestFailed) => self.end(Reason::RequestFailed),
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
            self.in_turns = false;
            self.load_threads.send_all(&WorkerCommand::Window(span));
        }
    }

    fn command_rest(&mut self, at_ns: u64) {
        if self.prepared.job.open.is_some() {
            eprintln!("prony-engine: a rest was commanded, but the load is an open one: ignored");
        } else {
            self.load_threads.send_all(&WorkerCommand::Rest { at_ns });
        }
    }

    fn command_turns(&mut self, turns: &[[f64; 3]], at_ns: u64) {
        let at_ns = at_ns.max(self.started_ns);
        let turns: Arc<[Turn]> = match check_turns(turns) {
            _ if self.window_mode != Window::Commanded || self.prepared.job.open.is_some() => {
                eprintln!(
                    "prony-engine: turns were commanded, but the load is an open one, or window.mode of the plan is not commanded: ignored"
                );
                return;
            }
            Err(refusal) => {
                eprintln!("prony-engine: turns were commanded, but {refusal}: ignored");
                return;
            }
            Ok(()) => {
                let instants = turns.iter().map(|ms| ms.map(|ms| at_ns + ms_to_ns(ms)));
                let turn = |[begins_ns, opens_ns, ends_ns]: [u64; 3]| Turn {
                    begins_ns,
                    opens_ns,
                    ends_ns,
                };
                instants.map(turn).collect()
            }
        };
        let mut measured = turns.iter().filter(|turn| turn.is_measured());
        let (first, last) = (
            measured.next(),
            turns.iter().rfind(|turn| turn.is_measured()),
        );
        if let (Some(first), Some(last)) = (first, last)
            && self.goes_on_until(last.ends_ns)
        {
            let Span { id, .. } = self.plan_window(first.opens_ns, last.ends_ns);
            self.in_turns = true;
            self.load_threads
                .send_all(&WorkerCommand::Turns { id, turns });
        }
    }

    fn close_window(&mut self, at_ns: u64) {
        if self.in_turns {
            eprintln!("prony-engine: a window of turns ends with the last one: ignored");
        } else if self.goes_on_until(at_ns)
            && let Some(id) = self.collector.close_window(at_ns)
        {
            self.load_threads
                .send_all(&WorkerCommand::CloseWindow { id, at_ns });
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
            self.load_threads.send_all(&WorkerCommand::Stop { at_ns });
        }
    }
}

/// The instant that was asked for, or the first that all threads can still keep.
fn soon(at_ns: Option<u64>) -> u64 {
    at_ns.unwrap_or(0).max(monotonic_ns() + NOTICE_NS)
}
