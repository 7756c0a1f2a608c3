//! Before the load: reads, checks and resolves the plan in a thread of its own, so that a signal,
//! `stop` or a closed stdin ends the engine even while a resolver, a file or a script's `setup`
//! blocks. Starts no load.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::Message;
use super::input::Input;
use super::threads::{ChosenDriver, choose_driver};
use crate::check::{PlanError, read_plan};
use crate::fault::Fault;
use crate::job::Job;
use crate::plan::Plan;
use crate::report::Reason;
use crate::script::Language;

/// A run that is to end before it began waits so long for its preparation: as a rule it is through
/// by then, and a plan that cannot be run is refused even where stdin was closed behind it.
const GRACE: Duration = Duration::from_millis(500);

/// As much as the main thread has: scripts run here.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// A plan with all that it needs.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    pub job: Arc<Job>,
    pub driver: ChosenDriver,
}

/// How the preparation ended.
pub enum Preparation {
    /// With the messages that came meanwhile.
    Prepared(Box<Prepared>, Vec<Message>),
    Refused(PlanError),
    /// Stopped by a command before the load, with the faults of the plan where it was read.
    Stopped(Reason, Vec<Fault>),
    Failed(String),
}

/// Waits for the plan and prepares it.
pub fn prepare(
    sender: &Sender<Message>,
    inbox: &Receiver<Message>,
    language: Language,
) -> Preparation {
    let mut early = Vec::new();
    let faults = Arc::<OnceLock<Vec<Fault>>>::default();
    let stopped = |reason| Preparation::Stopped(reason, faults.get().cloned().unwrap_or_default());
    let mut stop: Option<(Reason, Instant)> = None;
    loop {
        let message = match stop {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((_, at)) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match (message, stop) {
            (Ok(Message::Input(Input::Plan(Ok(line)))), _) => {
                if let Err(error) = begin(line, sender.clone(), language, &faults) {
                    return Preparation::Failed(format!("a thread cannot be started: {error}"));
                }
            }
            (Ok(Message::Input(Input::Plan(Err(reason)))), _) => {
                let sentence = format!("the plan cannot be read from stdin: {reason}");
                return Preparation::Refused(PlanError(sentence));
            }
            (Ok(Message::Prepared(Some(Ok(prepared)))), None) => {
                return Preparation::Prepared(prepared, early);
            }
            (Ok(Message::Prepared(Some(Ok(_)))), Some((reason, _))) => return stopped(reason),
            (Ok(Message::Prepared(Some(Err(refusal)))), _) => return Preparation::Refused(refusal),
            (Ok(Message::Prepared(None)), _) => {
                return Preparation::Failed(
                    "preparing the plan panicked; this is a defect of the engine".to_owned(),
                );
            }
            (Ok(message), _) => {
                let reason = message.stops();
                stop = stop.or(reason.map(|reason| (reason, Instant::now() + GRACE)));
                early.push(message);
            }
            (Err(_), Some((reason, _))) => return stopped(reason),
            (Err(_), None) => return Preparation::Failed("stdin is no longer read".to_owned()),
        }
    }
}

fn begin(
    line: String,
    sender: Sender<Message>,
    language: Language,
    faults: &Arc<OnceLock<Vec<Fault>>>,
) -> std::io::Result<()> {
    let faults = Arc::clone(faults);
    std::thread::Builder::new()
        .name("prepare".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let prepared = catch_unwind(AssertUnwindSafe(|| all(&line, &language, &faults))).ok();
            // Nobody waits any more when a command stopped the engine.
            let _ = sender.send(Message::Prepared(prepared));
        })
        .map(drop)
}

fn all(
    line: &str,
    language: &Language,
    faults: &OnceLock<Vec<Fault>>,
) -> Result<Box<Prepared>, PlanError> {
    let plan = read_plan(line)?;
    // There is one plan, so this is the first time.
    let _ = faults.set(plan.injected_faults.clone());
    let threads = plan.threads.cpus.len().max(1);
    let driver = if plan.injected_faults.is_empty() {
        choose_driver(plan.driver)?
    } else {
        ChosenDriver::for_faults()
    };
    let job = Arc::new(Job::new(&plan, threads, language)?);
    Ok(Box::new(Prepared { plan, job, driver }))
}
