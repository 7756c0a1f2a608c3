//! The contract on stdin and stdout: rows, marks, windows, stops, refusals. On both drivers.

mod run_support;

use std::time::Duration;

use run_support::{Engine, HELLO, Server, drivers, plan, run, user_time_s};
use serde_json::{Value, json};

fn slow_server() -> Server {
    Server::start(|peer| {
        while peer.request().is_some() {
            std::thread::sleep(Duration::from_millis(1));
            peer.send(HELLO);
        }
    })
}

fn sum(rows: &[&Value], key: &str) -> u64 {
    rows.iter().map(|row| row[key].as_u64().unwrap()).sum()
}

#[test]
fn rows_are_aligned_and_add_up_to_the_totals() {
    for driver in drivers() {
        let server = slow_server();
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": true});
            plan["load"]["users"] = 4.into();
            plan["stop"]["after_ms"] = 450.into();
        });
        let ended = run(&plan);
        let rows = ended.all("interval");
        let ends: Vec<f64> = rows
            .iter()
            .map(|row| row["t_ms"].as_f64().unwrap())
            .collect();
        assert_eq!(ends, [100.0, 200.0, 300.0, 400.0, 450.0]);
        let totals = &ended.finished()["totals"];
        assert_eq!(
            sum(&rows, "completed"),
            totals["completed"].as_u64().unwrap()
        );
        assert_eq!(
            sum(&rows, "bytes_received"),
            totals["bytes_received"].as_u64().unwrap()
        );
        assert_eq!(sum(&rows, "connections_opened"), 4);
        assert!(rows.iter().all(|row| row["in_window"] == true));
        assert!(rows.iter().all(|row| row["send_lag_p99_ns"].is_null()));
        let ready = ended.all("ready")[0];
        assert_eq!(ready["driver"], driver);
        assert_eq!(ready["addresses"], json!([server.address.to_string()]));
        assert_eq!(ready["threads"].as_array().unwrap().len(), 2);
        let window = &ended.finished()["window"];
        assert_eq!(window["threads"].as_array().unwrap().len(), 2);
        assert_eq!(window["completed"], totals["completed"]);
        assert_eq!(window["sent"], totals["sent"]);
        assert_eq!(window["service_time"]["count"], totals["completed"]);
        assert!(
            window["service_time"]["v2"]
                .as_str()
                .unwrap()
                .starts_with("HISTF")
        );
    }
}

#[test]
fn marks_say_when_so_many_had_completed() {
    for driver in drivers() {
        let server = slow_server();
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            plan["load"]["users"] = 4.into();
            plan["stop"]["total_requests"] = 300.into();
            plan["marks"] = json!([250, 100, 300, 1000]);
        });
        let ended = run(&plan);
        let marks = ended.all("mark");
        let counts: Vec<u64> = marks
            .iter()
            .map(|mark| mark["requests"].as_u64().unwrap())
            .collect();
        assert_eq!(counts, [100, 250, 300]);
        let elapsed: Vec<f64> = marks
            .iter()
            .map(|mark| mark["elapsed_ms"].as_f64().unwrap())
            .collect();
        assert!(elapsed.is_sorted() && elapsed[0] > 0.0, "{elapsed:?}");
        assert_eq!(marks[2]["elapsed_ms"], ended.finished()["elapsed_ms"]);
        assert!(
            marks
                .iter()
                .all(|mark| mark["p99_ns"].as_u64() >= mark["p50_ns"].as_u64())
        );
    }
}

#[test]
fn a_window_is_closed_before_its_time_and_is_complete() {
    for driver in drivers() {
        let server = slow_server();
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": true});
            plan["load"]["users"] = 4.into();
            plan["window"] = json!({"mode": "commanded"});
        });
        let mut engine = Engine::start(&plan);
        engine.wait_for("interval");
        engine.command(&json!({"command": "close_window"}));
        engine.command(&json!({"command": "window", "duration_ms": 60_000}));
        let opened = engine.wait_for("window_opened");
        std::thread::sleep(Duration::from_millis(200));
        engine.command(&json!({"command": "close_window"}));
        let closed = engine.wait_for("window_closed");
        engine.command(&json!({"command": "close_window"}));
        engine.command(&json!({"command": "stop"}));
        let ended = engine.end();
        let window = &ended.finished()["window"];
        let length_s =
            (closed["t_ms"].as_f64().unwrap() - opened["t_ms"].as_f64().unwrap()) / 1000.0;
        assert_eq!(window["complete"], true);
        assert!((0.2..30.0).contains(&length_s), "{length_s}");
        assert!((window["duration_s"].as_f64().unwrap() - length_s).abs() < 1e-3);
        assert!(window["completed"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_commanded_window_is_measured_and_a_second_replaces_it() {
    for driver in drivers() {
        let server = slow_server();
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 2.into();
            plan["window"] = json!({"mode": "commanded"});
        });
        let mut engine = Engine::start(&plan);
        engine.wait_for("interval");
        engine.command(&json!({"command": "window", "duration_ms": 100}));
        engine.wait_for("window_opened");
        engine.wait_for("window_closed");
        engine.command(&json!({"command": "window", "duration_ms": 60_000}));
        engine.wait_for("window_opened");
        engine.command(&json!({"command": "window", "duration_ms": 1000}));
        let opened = engine.wait_for("window_opened");
        let closed = engine.wait_for("window_closed");
        engine.command(&json!({"command": "stop"}));
        let ended = engine.end();
        assert_eq!(ended.finished()["reason"], "stopped");
        let span = |event: &Value, key: &str| event[key].as_f64().unwrap();
        assert!((span(&closed, "t_ms") - span(&opened, "t_ms") - 1000.0).abs() < 1e-3);
        let window = &ended.finished()["window"];
        assert_eq!(window["complete"], true);
        assert_eq!(window["opened_ms"], opened["t_ms"]);
        assert!((window["duration_s"].as_f64().unwrap() - 1.0).abs() < 0.01);
        assert_eq!(window["users"], 2);
        let completed = |report: &Value| report["completed"].as_u64().unwrap();
        assert!(
            completed(window) > 0 && completed(window) < completed(&ended.finished()["totals"])
        );
        // Two users are there all the time, whatever they do.
        let users = user_time_s(window) / window["duration_s"].as_f64().unwrap();
        assert!((users - 2.0).abs() < 1e-6, "{users}");
        assert!(window["clipped_cycle_s"].as_f64().unwrap() > 0.0);
        assert_eq!(window["turnaround"]["count"], window["turnaround_count"]);
        // Both connected before it.
        assert_eq!(window["response_time"], Value::Null);
    }
}

#[test]
fn a_fixed_window_is_complete_only_when_the_run_reaches_its_end() {
    for driver in drivers() {
        for (duration_ms, complete) in [(100, true), (5000, false)] {
            let server = slow_server();
            let plan = plan(server.address, driver, |plan| {
                plan["window"] =
                    json!({"mode": "fixed", "warmup_ms": 100, "duration_ms": duration_ms});
                plan["stop"]["after_ms"] = 300.into();
            });
            let ended = run(&plan);
            let window = &ended.finished()["window"];
            assert_eq!(window["complete"], complete);
            assert_eq!(window["opened_ms"], 100.0);
            assert_eq!(window["duration_s"], if complete { 0.1 } else { 0.2 });
            assert_eq!(ended.all("window_closed").len(), usize::from(complete));
        }
    }
}

#[test]
fn a_window_that_never_opened_is_null() {
    let server = slow_server();
    let plan = plan(server.address, "epoll", |plan| {
        plan["window"] = json!({"mode": "commanded"});
        plan["stop"]["total_requests"] = 3.into();
    });
    assert_eq!(run(&plan).finished()["window"], Value::Null);
}

#[test]
fn the_run_ends_when_stdin_closes_and_on_signals() {
    for driver in drivers() {
        let server = slow_server();
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["after_ms"] = 60_000.into()
        });
        let mut engine = Engine::start(&plan);
        engine.wait_for("interval");
        engine.close_stdin();
        let ended = engine.end();
        assert_eq!(ended.finished()["reason"], "stdin_closed");
        assert_eq!(ended.finished()["window"]["complete"], false);

        for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
            let mut engine = Engine::start(&plan);
            while engine.wait_for("interval")["completed"] == 0 {}
            let pid = rustix::process::Pid::from_raw(engine.pid() as i32).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
            let ended = engine.end();
            assert_eq!(ended.finished()["reason"], "signal");
            assert!(ended.finished()["totals"]["completed"].as_u64().unwrap() > 0);
        }
    }
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_in_one_sentence() {
    let address = "127.0.0.1:1".parse().unwrap();
    let good = plan(address, "auto", |_| {});
    let mut wrong_users = good.clone();
    wrong_users["load"]["users"] = 0.into();
    let mut wrong_url = good.clone();
    wrong_url["target"]["url"] = "127.0.0.1:80".into();
    let mut unknown_host = good;
    unknown_host["target"]["url"] = "http://no-such-host.invalid:80".into();
    for (line, word) in [
        (wrong_users.to_string(), "users"),
        (wrong_url.to_string(), "http://"),
        (unknown_host.to_string(), "resolved"),
        ("{".to_owned(), "plan"),
        (String::new(), "no plan"),
    ] {
        let ended = Engine::start_with_line(&line).end();
        assert_eq!(ended.code, Some(2), "{line}");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let event = ended.events.last().unwrap();
        assert_eq!(
            (&event["event"], &event["kind"]),
            (&json!("error"), &json!("plan"))
        );
        assert!(event["message"].as_str().unwrap().contains(word), "{event}");
    }
}

#[test]
fn bad_commands_are_told_and_ignored() {
    let server = slow_server();
    let plan = plan(server.address, "auto", |_| {});
    let mut engine = Engine::start(&plan);
    engine.wait_for("ready");
    engine.command(&json!({"command": "dance"}));
    engine.command(&json!({"command": "window", "duration_ms": 10}));
    engine.command(&json!({"command": "stop"}));
    let ended = engine.end();
    assert_eq!(ended.finished()["reason"], "stopped");
    assert!(
        ended.stderr.contains("dance") && ended.stderr.contains("not commanded"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_cpu_that_does_not_exist_is_reported_as_not_pinned() {
    let server = slow_server();
    let plan = plan(server.address, "auto", |plan| {
        plan["threads"] = json!({"cpus": [1000], "pin": true});
        plan["stop"]["total_requests"] = 3.into();
    });
    let ended = run(&plan);
    assert_eq!(
        ended.all("ready")[0]["threads"],
        json!([{"cpu": 1000, "pinned": false, "realtime": false}])
    );
    assert_eq!(ended.finished()["totals"]["completed"], 3);
}

#[test]
fn a_reader_who_goes_away_ends_the_run() {
    let server = slow_server();
    let plan = plan(server.address, "auto", |_| {});
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_prony-engine"))
        .arg("run")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{plan}\n").as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn the_schema_names_every_part_of_the_contract() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_prony-engine"))
        .arg("schema")
        .output()
        .unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = schema.to_string();
    for word in [
        "clipped_cycle_s",
        "clipped_turnaround_s",
        "in_flight_age_close_s",
        "response_time",
        "iterations_per_user",
        "window_opened",
        "loop_lag_p99_ns",
        "gaps_total",
        "duration_ms",
    ] {
        assert!(text.contains(word), "{word}");
    }
    assert!(
        schema["plan"]["required"]
            .as_array()
            .unwrap()
            .contains(&json!("stop"))
    );
}
