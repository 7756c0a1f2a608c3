//! The command line of `prony-engine`: the instrument, the reference server and the languages of scripts
//! beside it, in one binary. The only place that knows all of them.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The instrument of Prony: offers a load to a web server and records what happened.
#[derive(Debug, Parser)]
#[command(name = "prony-engine", version, about)]
struct Cli {
    #[command(subcommand)]
    command: EngineCommand,
}

#[derive(Debug, Subcommand)]
enum EngineCommand {
    /// Offers a load: the plan on the first line of stdin, events on stdout.
    Run(prony_engine::Args),
    /// Runs a reference server, with scripted faults where asked for.
    Serve(Box<prony_serve::Args>),
    /// Says as JSON which drivers work on this host, and why not.
    Probe,
    /// Prints the JSON Schema of the plan, the commands and the events.
    Schema,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        EngineCommand::Run(args) => prony_engine::run(args, open_script),
        EngineCommand::Serve(args) => prony_serve::run(*args),
        EngineCommand::Probe => {
            let mut found = prony_engine::probe();
            found["libraries"] = LIBRARIES
                .iter()
                .filter_map(|&(name, package)| Some((name, locked(package)?)))
                .collect();
            print(&found)
        }
        EngineCommand::Schema => {
            let mut schema = prony_engine::schema();
            schema["serve_event"] = prony_serve::event_schema().to_value();
            // So that what moves within a type changes nothing here.
            schema.sort_all_objects();
            print(&schema)
        }
    }
}

/// A script in the language that the ending of its file says; Lua where it says nothing.
fn open_script(
    setup: &prony_script::Setup<'_>,
) -> Result<Box<dyn prony_script::Interpreter>, String> {
    let ending = setup.file.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("js" | "cjs" | "mjs") => prony_js::open(setup),
        _ => prony_lua::open(setup),
    }
}

/// Of the libraries that a defect may be in: the name that people know, and the package that carries it.
const LIBRARIES: [(&str, &str); 5] = [
    ("LuaJIT", "luajit-src"),
    ("QuickJS", "rquickjs-sys"),
    ("rustls", "rustls"),
    ("ring", "ring"),
    ("io-uring", "io-uring"),
];

/// The version of a package that this was built with: that of the lock file.
fn locked(package: &str) -> Option<&'static str> {
    let named = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) = include_str!("../Cargo.lock").split_once(&named)?;
    rest.split_once('"').map(|(version, _)| version)
}

fn print(value: &serde_json::Value) -> ExitCode {
    println!("{value:#}");
    ExitCode::SUCCESS
}
