//! The beginning of a run: threads that get ready, the instant at which the load begins.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use prony_common::process::set_affinity;

use super::{Coordinator, NOTICE_NS};
use crate::check::ms_to_ns;
use crate::job::Job;
use crate::log::{Log, LogReport, Started};
use crate::net::address::Address;
use crate::net::sys::{monotonic_ns, unix_ns};
use crate::plan::{Start, Window};
use crate::report::{Event, Finished, PreparedEvent, Ready, Reason, Transport};
use crate::run::Message;
use crate::run::collect::Collector;
use crate::run::output::Output;
use crate::run::prepare::Prepared;
use crate::run::threads::LoadThreads;
use crate::run::window::Open;
use crate::worker::{WorkerCommand, WorkerMessage};

/// Notice before a commanded start: on a busy host the coordinator may be woken late.
const START_NOTICE_NS: u64 = 50_000_000;

impl<'a> Coordinator<'a> {
    /// Starts the threads and the load; then it handles the messages that came before. `None`: a
    /// command stopped it before the load began, and that is reported.
    pub fn new(
        prepared: Prepared,
        mut early: Vec<Message>,
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
            collector: Collector::default(),
            finished: vec![None; load_threads.len()],
            window_mode: plan.window,
            injected_faults: plan.injected_faults.clone(),
            prepared,
            load_threads,
            threads,
            windows: 0,
            in_turns: false,
            started_ns: 0,
            ending: None,
            log: None,
        };
        early.extend(coordinator.wait_until_ready()?);
        if coordinator.prepared.plan.start == Start::Commanded {
            output.write(&Event::Prepared(PreparedEvent {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                monotonic_ns: monotonic_ns(),
            }));
        }
        match coordinator.wait_for_start(&mut early)? {
            Ok(at_ns) => coordinator.start(at_ns)?,
            Err(reason) => {
                let finished = Finished::without_a_load(reason, coordinator.injected_faults);
                output.write(&Event::Finished(Box::new(finished)));
                return Ok(None);
            }
        }
        for message in early {
            coordinator.handle(message)?;
        }
        Ok(Some(coordinator))
    }

    /// The instant at which the load is to begin, 0 for at once; or why there is to be none. Other
    /// messages that come meanwhile are added to `early`.
    fn wait_for_start(&self, early: &mut Vec<Message>) -> Result<Result<u64, Reason>, String> {
        let mut start_ns = match self.prepared.plan.start {
            Start::AtOnce => Some(0),
            Start::Commanded => early.iter().find_map(Message::starts),
        };
        if let Some(reason) = early.iter().find_map(Message::stops) {
            return Ok(Err(reason));
        }
        loop {
            let message = match start_ns {
                None => self
                    .inbox
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(at_ns) => {
                    // The threads are notified a little before: to them the load is always about to begin.
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
                    early.push(message);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    refuse! { "all threads ended before the start" }
                }
            }
        }
    }

    /// Waits for the threads; returns the other messages that came meanwhile.
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

    fn start(&mut self, at_ns: u64) -> Result<(), String> {
        let now_ns = monotonic_ns();
        self.started_ns = start_ns(at_ns, now_ns);
        let started_unix_ns = unix_ns() + (self.started_ns - now_ns);
        let job = &self.prepared.job;
        let open = job.open.as_ref().map(Open::of);
        let threads = self.load_threads.len();
        self.collector = Collector::new(self.started_ns, threads, &job.marks, open);
        self.collector.slowest = job.slowest;
        self.collector.adds_up = self.prepared.plan.share.is_some();
        self.output.write(&Event::Ready(Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: self.prepared.driver.name.to_owned(),
            driver_reason: self.prepared.driver.reason.clone(),
            pid: std::process::id(),
            addresses: job.addresses.iter().map(ToString::to_string).collect(),
            unanswered: job.unanswered.iter().map(ToString::to_string).collect(),
            transport: if job.addresses.iter().any(Address::is_unix) {
                Transport::Unix
            } else {
                Transport::Tcp
            },
            tls: self.prepared.job.tls.as_ref().map(|tls| tls.ready()),
            threads: self.threads.clone(),
            injected_faults: self.injected_faults.clone(),
            emulated: prony_common::emulation::emulated(),
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
        self.load_threads.send_all(&WorkerCommand::Start {
            at_ns: self.started_ns,
            window,
        });
        Ok(())
    }
}

/// The commanded instant, or the first that all threads can still keep.
fn start_ns(at_ns: u64, now_ns: u64) -> u64 {
    at_ns.max(now_ns + NOTICE_NS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_begins_at_the_commanded_instant_unless_the_coordinator_wakes_too_late() {
        let at_ns = 1_000_000_000;
        for now_ns in [0, at_ns - START_NOTICE_NS, at_ns - NOTICE_NS] {
            assert_eq!(start_ns(at_ns, now_ns), at_ns);
        }
        let late_ns = at_ns + 68_000_000;
        assert_eq!(start_ns(at_ns, late_ns), late_ns + NOTICE_NS);
        assert_eq!(start_ns(0, late_ns), late_ns + NOTICE_NS);
    }
}
