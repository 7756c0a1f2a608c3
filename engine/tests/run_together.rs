//! Several engines that offer one load together: each as a process of its own, begun at one instant
//! and with its share of everything that is counted.

mod run_support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use run_support::{Engine, HELLO, Server, drivers, plan};
use serde_json::{Value, json};

/// A server that keeps what it was asked for.
fn keeping() -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&asked);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let line = request.lines().next().unwrap_or_default();
            kept.lock().unwrap().push(line.to_owned());
            peer.send(HELLO);
        }
    });
    (server, asked)
}

/// Engines with slots 0 and 2, and 1, of three; all are prepared.
fn prepared(server: &Server, driver: &str, edit: impl Fn(&mut Value)) -> Vec<Engine> {
    let shares = [json!([0, 2]), json!([1])];
    let mut engines: Vec<Engine> = shares
        .into_iter()
        .map(|slots| {
            Engine::start(&plan(server.address, driver, |plan| {
                plan["share"] = json!({"slots": slots, "of": 3});
                plan["start"] = "commanded".into();
                edit(plan);
            }))
        })
        .collect();
    for engine in &mut engines {
        engine.wait_for("prepared");
    }
    engines
}

/// Begins the load of all engines two seconds after the last of them was prepared: the instant.
fn start(engines: &mut [Engine]) -> u64 {
    let prepared = |engine: &Engine| engine.events[0]["monotonic_ns"].as_u64().unwrap();
    let at_ns = engines.iter().map(prepared).max().unwrap() + 2_000_000_000;
    for engine in engines {
        engine.command(&json!({"command": "start", "at_monotonic_ns": at_ns}));
    }
    at_ns
}

#[test]
fn users_rows_and_sequences_of_two_engines_are_those_of_one() {
    for driver in drivers() {
        let (server, asked) = keeping();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let rows: String = (0..40).map(|row| format!("row{row}\n")).collect();
        std::io::Write::write_all(&mut file, format!("name\n{rows}").as_bytes()).unwrap();
        let mut engines = prepared(&server, driver, |plan| {
            plan["load"]["users"] = 5.into();
            plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            plan["stop"] = json!({"iterations_per_user": 8});
            plan["scenarios"][0]["steps"][0]["path"] =
                "/${sequence}/${user}/${people.name}/${uuid}".into();
            plan["feeders"] = json!([{"name": "people", "file": file.path(), "order": "sequence", "at_end": "eof"}]);
        });
        let at_ns = start(&mut engines);
        let ended: Vec<_> = engines.into_iter().map(Engine::end).collect();
        for (one, completed) in ended.iter().zip([3 * 8, 2 * 8]) {
            // An engine that the host wakes late begins late, and says when.
            let ready = one.all("ready")[0];
            assert!(ready["started_monotonic_ns"].as_u64().unwrap() >= at_ns);
            assert_eq!(one.finished()["totals"]["completed"], completed);
            for row in one.all("interval") {
                // Without a histogram where nothing ended in the row.
                let count = row["service_time"]["count"].as_u64().unwrap_or(0);
                assert_eq!(row["completed"], count, "{row}");
            }
        }
        let asked = asked.lock().unwrap();
        let parts = |place: usize| -> BTreeSet<&str> {
            let part = |line| str::split(line, ['/', ' ']).nth(place + 2).unwrap();
            asked.iter().map(|line| part(line)).collect()
        };
        assert_eq!(asked.len(), 40);
        assert_eq!(parts(3).len(), 40, "every UUID is another one");
        // 24 requests have numbers with slots 0 and 2 of three, 16 those with slot 1.
        let expected: BTreeSet<String> = (0..40)
            .filter(|number| number % 3 != 1)
            .take(24)
            .chain((0..48).filter(|number| number % 3 == 1))
            .map(|number| (number + 1).to_string())
            .collect();
        assert_eq!(parts(0), expected.iter().map(String::as_str).collect());
        assert_eq!(parts(1), BTreeSet::from(["1", "2", "3", "4", "5"]));
        let rows = parts(2);
        assert!(rows.contains("row0") && rows.contains("row1") && rows.contains("row2"));
    }
}

#[test]
fn a_total_is_shared_out_and_marks_with_it() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let mut engines = prepared(&server, driver, |plan| {
            plan["load"]["users"] = 3.into();
            plan["stop"] = json!({"total_requests": 100});
            plan["marks"] = json!([50]);
        });
        start(&mut engines);
        let ended: Vec<_> = engines.into_iter().map(Engine::end).collect();
        // Of 0 to 99 there are 34 + 33 with slots 0 and 2, and 33 with slot 1.
        for (one, (completed, mark)) in ended.iter().zip([(67, 33), (33, 17)]) {
            assert_eq!(one.finished()["totals"]["completed"], completed);
            assert_eq!(one.all("mark")[0]["requests"], mark);
        }
        assert_eq!(server.request_count(), 100);
    }
}

#[test]
fn arrivals_are_shared_out_and_their_gaps_can_be_added_up() {
    let server = Server::answering(HELLO);
    for arrivals in ["constant", "poisson"] {
        let mut engines = prepared(&server, "auto", |plan| {
            plan["load"] = json!({"model": "open", "max_users": 60, "connections": 6, "arrivals": arrivals,
                "phases": [{"duration_ms": 300, "from_per_s": 1000, "to_per_s": 1000}]});
            plan["stop"] = json!({});
        });
        start(&mut engines);
        let ended: Vec<_> = engines.into_iter().map(Engine::end).collect();
        let offered: Vec<u64> = ended
            .iter()
            .map(|one| one.finished()["totals"]["offered"].as_u64().unwrap())
            .collect();
        if arrivals == "constant" {
            assert_eq!(offered, [200, 100]);
        }
        for one in &ended {
            let window = &one.finished()["window"];
            let cells = window["arrival_gaps_cells"].as_array();
            let counted = cells.map(|cells| cells.iter().filter_map(Value::as_u64).sum::<u64>());
            assert_eq!(counted, window["arrival_gaps"].as_u64());
            assert_eq!(counted.is_some(), arrivals == "poisson");
        }
    }
}

#[test]
fn a_window_opens_and_the_run_ends_at_the_instants_that_are_asked_for() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let mut engines = prepared(&server, driver, |plan| {
            plan["load"]["users"] = 3.into();
            plan["window"] = json!({"mode": "commanded"});
        });
        let at_ns = start(&mut engines);
        let after = |ms: u64| at_ns + ms * 1_000_000;
        for engine in &mut engines {
            engine.wait_for("ready");
            engine.command(
                &json!({"command": "window", "duration_ms": 10_000, "at_monotonic_ns": after(300)}),
            );
        }
        // An open window can be closed. The stop is sent after that: what is asked for too late comes
        // as soon as can be, and in this order.
        for engine in &mut engines {
            engine.wait_for("window_opened");
            engine.command(&json!({"command": "close_window", "at_monotonic_ns": after(600)}));
            engine.command(&json!({"command": "stop", "at_monotonic_ns": after(800)}));
        }
        for engine in engines {
            let ended = engine.end();
            let opened = ended.all("window_opened")[0];
            let closed = ended.all("window_closed")[0];
            assert!(opened["monotonic_ns"].as_u64().unwrap() >= after(300));
            assert!(closed["monotonic_ns"].as_u64().unwrap() >= after(600));
            let finished = ended.finished();
            assert_eq!(finished["reason"], "stopped");
            assert_eq!(finished["window"]["complete"], true);
            assert!(finished["elapsed_ms"].as_f64().unwrap() >= 800.0);
        }
    }
}

#[test]
fn who_waits_for_the_start_can_be_stopped_and_sends_nothing() {
    let server = Server::answering(HELLO);
    type Stop = fn(&mut Engine);
    let stops: [(Stop, &str); 3] = [
        (Engine::close_stdin, "stdin_closed"),
        (
            |engine| engine.command(&json!({"command": "stop"})),
            "stopped",
        ),
        (
            |engine| {
                let now = engine.events[0]["monotonic_ns"].as_u64().unwrap();
                let at_ns = now + 3_600_000_000_000;
                engine.command(&json!({"command": "start", "at_monotonic_ns": at_ns}));
                engine.close_stdin();
            },
            "stdin_closed",
        ),
    ];
    for (stop, reason) in stops {
        let mut engine = prepared(&server, "auto", |_| ()).remove(0);
        stop(&mut engine);
        let ended = engine.end();
        assert_eq!(ended.finished()["reason"], reason);
        assert!(ended.all("ready").is_empty());
    }
    assert_eq!(server.request_count(), 0);
}

#[test]
fn a_stop_that_lies_ahead_does_not_keep_an_engine_whose_laboratory_is_gone() {
    let server = Server::answering(HELLO);
    let mut engine = prepared(&server, "auto", |_| ()).remove(0);
    engine.command(&json!({"command": "start"}));
    let ready = engine.wait_for("ready");
    let later = ready["started_monotonic_ns"].as_u64().unwrap() + 3_600_000_000_000;
    engine.command(&json!({"command": "stop", "at_monotonic_ns": later}));
    engine.close_stdin();
    assert_eq!(engine.end().finished()["reason"], "stdin_closed");
}
