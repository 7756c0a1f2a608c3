//! A run that is told to end before its load began, wherever it is: waiting for the plan, for a
//! file, or for a script.

mod run_support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use run_support::{Engine, plan};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A signal before this would end the process, as it does any other.
fn wait_until_signals_are_caught(engine: &Engine) {
    let status = PathBuf::from(format!("/proc/{}/status", engine.pid()));
    let caught = |text: &str| {
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (Signal::TERM.as_raw() - 1) & 1 == 1)
    };
    wait_until("signals are caught", || {
        std::fs::read_to_string(&status).is_ok_and(|text| caught(&text))
    });
}

/// A way to tell an engine to end, and the reason that it then gives.
type Order = (&'static str, fn(&mut Engine));

fn orders() -> [Order; 4] {
    fn kill(engine: &Engine, signal: Signal) {
        wait_until_signals_are_caught(engine);
        kill_process(Pid::from_raw(engine.pid() as i32).unwrap(), signal).unwrap();
    }
    [
        ("signal", |engine| kill(engine, Signal::INT)),
        ("signal", |engine| kill(engine, Signal::TERM)),
        ("stdin_closed", Engine::close_stdin),
        ("stopped", |engine| {
            engine.command(&json!({"command": "stop"}));
        }),
    ]
}

fn ends_without_a_load(engine: Engine, reason: &str) {
    let ended = engine.end();
    assert_eq!(ended.finished()["reason"], reason);
    assert_eq!(ended.finished()["totals"]["sent"], 0);
    assert_eq!(ended.finished()["window"], Value::Null);
    assert_eq!(ended.all("ready").len(), 0);
}

/// A file that nobody writes to: whoever opens it to read waits.
fn pipe(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_signal_ends_an_engine_that_waits_for_its_plan() {
    for (reason, order) in &orders()[..2] {
        let mut engine = Engine::start_without_a_plan();
        order(&mut engine);
        ends_without_a_load(engine, reason);
    }
}

#[test]
fn an_engine_that_waits_for_a_file_of_its_plan_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let rows = pipe(folder.path(), "rows.csv");
    let plan = plan("127.0.0.1:1".parse().unwrap(), "epoll", |plan| {
        plan["feeders"] =
            json!([{"name": "rows", "file": rows, "order": "sequence", "at_end": "recycle"}]);
        plan["scenarios"][0]["steps"][0]["path"] = "/${rows.id}".into();
    });
    for (reason, order) in orders() {
        let mut engine = Engine::start(&plan);
        order(&mut engine);
        ends_without_a_load(engine, reason);
    }
}

#[test]
fn an_engine_whose_script_waits_in_its_set_up_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let (never, begun) = (pipe(folder.path(), "never"), folder.path().join("begun"));
    let file = folder.path().join("waits.lua");
    let lua = format!(
        "function setup(thread) io.open({begun:?}, \"w\"):close() io.open({never:?}):read() end"
    );
    std::fs::write(&file, lua).unwrap();
    let plan = plan("127.0.0.1:1".parse().unwrap(), "epoll", |plan| {
        plan["script"] = json!({"file": file.to_str(), "url": "http://given/"});
    });
    for (reason, order) in orders() {
        let mut engine = Engine::start(&plan);
        wait_until("the script runs", || begun.exists());
        order(&mut engine);
        ends_without_a_load(engine, reason);
        std::fs::remove_file(&begun).unwrap();
    }
}

#[test]
fn an_engine_that_is_told_to_end_right_behind_its_plan_sends_nothing() {
    let server = run_support::Server::answering(run_support::HELLO);
    let plan = plan(server.address, "epoll", |plan| {
        plan["injected_faults"] = json!(["late_timers"]);
    });
    let told = Engine::start_with_line(&format!("{plan}\n{{\"command\":\"stop\"}}"));
    let closed = Engine::start_in_shell(&plan, "head -n 1 | \"$0\" run");
    for (engine, reason) in [(told, "stopped"), (closed, "stdin_closed")] {
        let ended = engine.end();
        assert_eq!(ended.finished()["reason"], reason);
        assert_eq!(ended.finished()["injected_faults"], json!(["late_timers"]));
        assert_eq!(ended.all("ready").len(), 0);
    }
    assert_eq!(server.connection_count(), 0);
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_though_stdin_was_closed_behind_it() {
    let mut engine = Engine::start(&json!({"version": 1}));
    engine.close_stdin();
    let ended = engine.end();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(ended.events.last().unwrap()["kind"], "plan");
}

#[test]
fn a_line_that_is_not_utf_8_is_ignored_with_a_sentence_and_the_run_goes_on() {
    let server = run_support::Server::start(|peer| {
        while peer.request().is_some() {
            peer.send(run_support::HELLO);
        }
    });
    let mut engine = Engine::start(&plan(server.address, "epoll", |_| {}));
    engine.wait_for("interval");
    engine.write_line(b"{\"command\":\"st\xffop\"}");
    engine.wait_for("interval");
    engine.wait_for("interval");
    engine.command(&json!({"command": "stop"}));
    let ended = engine.end();
    assert_eq!(ended.finished()["reason"], "stopped");
    let sentence = "a line on stdin was ignored: byte 15 is not UTF-8";
    assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
}

#[test]
fn a_plan_that_is_not_utf_8_is_refused_in_one_sentence() {
    let mut engine = Engine::start_without_a_plan();
    engine.write_line(b"{\"version\": \xff}");
    let ended = engine.end();
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("byte 13 is not UTF-8"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}
