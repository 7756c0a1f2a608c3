//! The command line of `prony-engine`: it names the sub-commands and hands over. It knows nothing of what they do.
//! (A library, so that the fuzz targets can reach what must hold for any bytes; it is nobody else's interface.)

mod check;
mod fault;
mod http;
mod job;
mod log;
mod measure;
mod net;
mod pace;
mod payload;
mod plan;
mod population;
#[cfg(any(test, feature = "properties"))]
pub mod properties;
mod refusal;
mod report;
mod run;
mod scenario;
mod schema;
mod script;
mod serve;
mod sources;
mod target;
mod tls;
mod units;
mod user;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The instrument of Prony: offers a load to a web server and records what happened.
#[derive(Debug, Parser)]
#[command(name = "prony-engine", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Offers a load: the plan on the first line of stdin, events on stdout.
    Run(run::Args),
    /// Runs a reference server, with scripted trouble where asked for.
    Serve(Box<serve::Args>),
    /// Says as JSON which drivers work on this host, and why not.
    Probe,
    /// Prints the JSON Schema of the plan, the commands and the events.
    Schema,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => run::command(args),
        Command::Serve(args) => serve::command(*args),
        Command::Probe => print(&serde_json::json!({ "drivers": net::probe::all() })),
        Command::Schema => print(&schema::all()),
    }
}

fn print(value: &serde_json::Value) -> ExitCode {
    println!("{value:#}");
    ExitCode::SUCCESS
}
