//! `prony-engine run`: reads a plan, starts the threads, adds up what they record, writes events.

mod collect;
mod coordinator;
mod input;
mod output;
mod prepare;
mod threads;
mod window;

use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::check::PlanError;
use crate::plan::Command;
use crate::report::{ErrorEvent, Event, Finished, Reason};
use crate::script::Language;
use crate::worker::WorkerMessage;
use coordinator::Coordinator;
use output::Output;
use prepare::{Preparation, Prepared, prepare};

/// Options of `prony-engine run`: all that matters comes in the plan on stdin.
#[derive(Debug, clap::Args)]
pub struct Args {}

const EXIT_PLAN: u8 = 2;
const EXIT_INTERNAL: u8 = 4;

/// What the coordinator hears from others.
#[derive(Debug)]
enum Message {
    Worker(WorkerMessage),
    Input(input::Input),
    Signal,
    /// The plan is ready to run, or refused; `None`: preparing it panicked.
    Prepared(Option<Result<Box<Prepared>, PlanError>>),
    /// Nobody reads stdout any more.
    OutputClosed,
}

impl Message {
    /// When the load is to begin, where this says so; 0 for at once.
    fn starts(&self) -> Option<u64> {
        match self {
            Self::Input(input::Input::Command(Command::Start { at_monotonic_ns })) => {
                Some(at_monotonic_ns.unwrap_or(0))
            }
            _ => None,
        }
    }

    /// Why the run is to end, where this says so before the load begins.
    fn stops(&self) -> Option<Reason> {
        match self {
            Self::Signal => Some(Reason::Signal),
            Self::Input(input::Input::Closed) => Some(Reason::StdinClosed),
            Self::Input(input::Input::Command(Command::Stop { .. })) => Some(Reason::Stopped),
            _ => None,
        }
    }
}

/// Runs one plan.
pub fn command(_args: Args, open_script: prony_script::OpenScript) -> ExitCode {
    let language = Language {
        open: open_script,
        on_hang: give_up,
    };
    let (sender, inbox) = channel();
    let output = Output::start(sender.clone());
    if let Err(error) = forward_signals(sender.clone()) {
        eprintln!("prony-engine: signals cannot be received: {error}");
        return ExitCode::from(EXIT_INTERNAL);
    }
    input::start(sender.clone());
    let done = match prepare(&sender, &inbox, language) {
        Preparation::Prepared(prepared, early) => {
            Coordinator::new(*prepared, early, &output, sender, inbox)
                .and_then(|coordinator| coordinator.map_or(Ok(()), Coordinator::run))
        }
        Preparation::Refused(refusal) => return refuse(&output, &refusal),
        Preparation::Stopped(reason, faults) => {
            let finished = Finished::without_a_load(reason, faults);
            output.write(&Event::Finished(Box::new(finished)));
            Ok(())
        }
        Preparation::Failed(message) => Err(message),
    };
    match done {
        Ok(()) if output.finish() => ExitCode::SUCCESS,
        Ok(()) => {
            eprintln!(
                "prony-engine: stdout was closed before the report was written; the run was ended"
            );
            ExitCode::from(EXIT_INTERNAL)
        }
        Err(message) => {
            eprintln!("prony-engine: {message}");
            output.write(&Event::Error(ErrorEvent {
                kind: "internal".to_owned(),
                message,
            }));
            output.finish();
            ExitCode::from(EXIT_INTERNAL)
        }
    }
}

fn refuse(output: &Output, refusal: &PlanError) -> ExitCode {
    eprintln!("prony-engine: {refusal}");
    output.write(&Event::Error(ErrorEvent {
        kind: "plan".to_owned(),
        message: refusal.to_string(),
    }));
    output.finish();
    ExitCode::from(EXIT_PLAN)
}

/// A thread that hangs in a script cannot be waited for: the run ends without a report.
fn give_up(message: &str) {
    eprintln!("prony-engine: {message}");
    std::process::exit(EXIT_INTERNAL.into())
}

fn forward_signals(sender: Sender<Message>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(Message::Signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}
