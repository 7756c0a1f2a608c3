//! `prony-engine run`: reads a plan, starts the threads, adds up what they record, writes events, and ends in order.

mod collect;
mod coordinator;
mod input;
mod output;
mod team;
mod window;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use crate::check::{PlanError, check, read_plan};
use crate::job::Job;
use crate::net::sys::StopSignals;
use crate::plan::Plan;
use crate::report::{ErrorEvent, Event};
use crate::worker::News;
use coordinator::Coordinator;
use output::Output;

/// Options of `prony-engine run`: all that matters comes in the plan on stdin.
#[derive(Debug, clap::Args)]
pub struct Args {}

const EXIT_PLAN: u8 = 2;
pub const EXIT_INTERNAL: u8 = 4;

/// What the coordinator hears from others.
#[derive(Debug)]
enum Message {
    News(News),
    Input(input::Input),
    Signal,
    /// Nobody reads stdout any more.
    OutputClosed,
}

/// Runs one plan.
pub fn command(_args: Args) -> ExitCode {
    let signals = StopSignals::block();
    let (sender, inbox) = channel();
    let output = Output::start(sender.clone());
    let plan = match input::first_line().and_then(|line| read_plan(&line)) {
        Ok(plan) => plan,
        Err(refusal) => return refuse(&output, &refusal),
    };
    let prepared = match prepare(&plan) {
        Ok(prepared) => prepared,
        Err(refusal) => return refuse(&output, &refusal),
    };
    wait_for_signals(signals, sender.clone());
    input::start(sender.clone());
    match Coordinator::new(&plan, prepared, &output, sender, inbox).and_then(Coordinator::run) {
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

/// A plan with its driver chosen.
struct Prepared {
    job: Arc<Job>,
    driver: team::Chosen,
}

fn prepare(plan: &Plan) -> Result<Prepared, PlanError> {
    check(plan)?;
    let threads = plan.threads.cpus.len().max(1);
    let driver = if plan.injected_faults.is_empty() {
        team::choose_driver(plan.driver)?
    } else {
        team::Chosen::for_faults()
    };
    let job = Arc::new(Job::new(plan, threads)?);
    Ok(Prepared { job, driver })
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

fn wait_for_signals(signals: StopSignals, sender: Sender<Message>) {
    std::thread::spawn(move || {
        loop {
            signals.wait();
            if sender.send(Message::Signal).is_err() {
                return;
            }
        }
    });
}
