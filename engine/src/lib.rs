//! The instrument: it offers a load to a web server and records what happened. It knows nothing of
//! the reference server beside it (`serve/`). Its four functions are the command line's; the fuzz
//! targets reach [`properties`].

#[macro_use]
mod refusal;

mod check;
mod fault;
mod http;
mod http2;
mod job;
mod log;
mod measure;
mod net;
mod pace;
mod payload;
mod population;
#[cfg(any(test, feature = "properties"))]
#[path = "../fuzz/properties.rs"]
pub mod properties;
mod record;
mod report;
mod run;
mod scenario;
mod script;
mod sources;
mod target;
mod tls;
mod units;
mod user;
mod worker;

use std::process::ExitCode;

use prony_plan as plan;
use schemars::schema_for;
use serde_json::{Value, json};

pub use run::Args;

/// Offers the load of the plan on stdin; `open_script` runs its script, where it has one.
pub fn run(args: Args, open_script: prony_script::OpenScript) -> ExitCode {
    run::command(args, open_script)
}

/// Which drivers work on this host, and why not; and what is emulated.
pub fn probe() -> Value {
    json!({
        "drivers": net::probe::all(),
        "emulated": prony_common::emulation::emulated(),
    })
}

/// The JSON Schemas of `run`'s first line on stdin, of later lines, and of a line on its stdout.
pub fn schema() -> Value {
    json!({
        "plan": schema_for!(plan::Plan),
        "command": schema_for!(plan::Command),
        "event": schema_for!(report::Event),
    })
}
