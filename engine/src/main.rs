//! The command line of `prony-engine`: it names the sub-commands and hands over. It knows nothing of what they do.

mod serve;

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
    /// Runs a reference server, with scripted trouble where asked for.
    Serve(serve::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::command(args),
    }
}
