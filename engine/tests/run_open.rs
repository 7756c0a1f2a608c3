//! Open loads as a whole process on both drivers: what is due is sent or counted, latency begins
//! with the intended send.

mod run_support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use run_support::{
    Engine, HELLO, Server, assert_counts, drivers, plan, refusing, run, totals, user_time_s,
};
use serde_json::{Value, json};

/// An open load of one phase at this rate; `edit` changes the plan.
fn open(
    server: &Server,
    driver: &str,
    ms: u64,
    per_s: u64,
    edit: impl FnOnce(&mut Value),
) -> Value {
    plan(server.address, driver, |plan| {
        plan["load"] = json!({
            "model": "open", "max_users": 500, "connections": 4,
            "phases": [{"duration_ms": ms, "from_per_s": per_s, "to_per_s": per_s}],
        });
        plan["stop"] = json!({});
        edit(plan);
    })
}

fn histogram(report: &Value) -> Histogram<u64> {
    let bytes = STANDARD.decode(report["v2"].as_str().unwrap()).unwrap();
    Deserializer::new().deserialize(&mut &bytes[..]).unwrap()
}

#[test]
fn exactly_the_schedule_is_sent_over_all_threads_and_the_run_ends_with_it() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 600, 500, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": true});
        });
        let ended = run(&plan);
        let finished = ended.finished();
        assert_eq!(finished["reason"], "schedule");
        assert!(finished["elapsed_ms"].as_f64().unwrap() >= 600.0);
        let expected = json!({"offered": 300, "sent": 300, "completed": 300, "failed": 0, "blocked": 0, "due_unsent": 0, "users": 0});
        assert_counts(&finished["totals"], &expected);
        assert_eq!(server.request_count(), 300);
        let window = &finished["window"];
        assert_eq!(window["latency"]["count"], 300);
        assert_eq!(window["response_time"], Value::Null);
        assert_eq!(window["send_lag"]["count"], 300);
        assert_eq!(window["arrival_gaps"], Value::Null);
        let sum = |key: &str| window[key].as_f64().unwrap();
        assert!((sum("in_flight_integral_s") - sum("service_time_sum_s")).abs() < 1e-9);
        // Whatever the host did meanwhile, the schedule says how many were due in each row.
        let rows = ended.all("interval");
        let offered: Vec<u64> = rows
            .iter()
            .map(|row| row["offered"].as_u64().unwrap())
            .collect();
        assert!(offered[..6].iter().all(|count| *count == 50), "{offered:?}");
        let sent: u64 = rows.iter().map(|row| row["sent"].as_u64().unwrap()).sum();
        assert_eq!(sent, 300);
        for row in &rows {
            let lag_ns = row["send_lag_p99_ns"].as_u64();
            assert_eq!(lag_ns.is_some(), row["sent"] != 0, "{row}");
            assert!(lag_ns <= window["send_lag"]["max_ns"].as_u64(), "{row}");
        }
    }
}

#[test]
fn phases_follow_each_other_as_steps_ramps_and_pauses() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 100, 100, |plan| {
            plan["load"]["phases"] = json!([
                {"duration_ms": 200, "from_per_s": 0, "to_per_s": 400},
                {"duration_ms": 100, "from_per_s": 400, "to_per_s": 400},
                {"duration_ms": 200, "from_per_s": 0, "to_per_s": 0},
                {"duration_ms": 100, "from_per_s": 200, "to_per_s": 200},
            ]);
        });
        let ended = run(&plan);
        let offered: Vec<u64> = ended
            .all("interval")
            .iter()
            .map(|row| row["offered"].as_u64().unwrap())
            .collect();
        assert_eq!(offered[..6], [10, 30, 40, 0, 0, 20], "{offered:?}");
        assert_counts(
            &ended.finished()["totals"],
            &json!({"offered": 100, "sent": 100}),
        );
    }
}

#[test]
fn a_freeze_of_the_server_is_felt_by_everyone_who_was_due_in_it() {
    for driver in drivers() {
        // All requests wait until the server has been silent for 300 ms.
        let since = std::sync::OnceLock::new();
        let server = Server::start(move |peer| {
            while peer.request().is_some() {
                let begun: &std::time::Instant = since.get_or_init(std::time::Instant::now);
                if let Some(left) =
                    std::time::Duration::from_millis(300).checked_sub(begun.elapsed())
                {
                    std::thread::sleep(left);
                }
                peer.send(HELLO);
            }
        });
        let plan = open(&server, driver, 600, 200, |_| ());
        let ended = run(&plan);
        let window = &ended.finished()["window"];
        assert_counts(
            window,
            &json!({"sent": 120, "completed": 120, "blocked": 0, "due_unsent": 0}),
        );
        // Due at 0, 5, 10, … 300 ms: their latencies go from 300 ms down to 0 in steps of 5. A busy
        // host only adds to them.
        let latency = histogram(&window["latency"]);
        for (ms, at_least) in [(250, 10), (150, 30), (50, 50)] {
            let longer = latency.count_between(ms * 1_000_000, u64::MAX);
            assert!(longer >= at_least, "{longer} above {ms} ms");
        }
    }
}

#[test]
fn arrivals_over_the_cap_are_blocked_and_counted() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            // Never answers.
            while peer.request().is_some() {}
        });
        let plan = open(&server, driver, 200, 100, |plan| {
            plan["load"]["max_users"] = 5.into();
            plan["stop"]["after_ms"] = 1500.into();
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"offered": 20, "sent": 5, "blocked": 15, "due_unsent": 0, "abandoned": 5, "completed": 0, "users": 5}),
        );
    }
}

#[test]
fn a_deadline_counts_from_the_intended_send_and_stays_in_the_histogram() {
    for driver in drivers() {
        let server = Server::start(|peer| while peer.request().is_some() {});
        let plan = open(&server, driver, 100, 100, |plan| {
            plan["load"]["deadline_ms"] = 120.into();
        });
        let ended = run(&plan);
        let finished = ended.finished();
        // On a host that stood still for the whole deadline a request is given up before it is
        // sent, and said to be unsent.
        let totals = &finished["totals"];
        let count = |key: &str| totals[key].as_u64().unwrap();
        assert_eq!(count("offered"), 10);
        assert_eq!(count("sent") + count("due_unsent"), 10, "{totals}");
        assert_eq!(totals["errors"]["timeout"], count("sent"));
        let latency = histogram(&finished["window"]["latency"]);
        assert_eq!(latency.len(), count("sent"));
        assert!(latency.min() >= 119_000_000, "{}", latency.min());
    }
}

#[test]
fn a_user_walks_the_scenario_once() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 200, 50, |plan| {
            plan["load"]["session"] = "user".into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 10});
            plan["scenarios"][0]["steps"] = json!([{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]);
        });
        let ended = run(&plan);
        let window = &ended.finished()["window"];
        let expected = json!({
            "offered": 30, "sent": 30, "completed": 30, "think_count": 20, "think_drawn_sum_s": 0.2, "users": 0,
            "sessions_begun": 10, "sessions_completed": 10,
        });
        assert_counts(&ended.finished()["totals"], &expected);
        assert_counts(window, &expected);
        // Two pauses of 10 ms lie in each walk; the users were there for as long as their walks
        // took, the first delay apart.
        let sessions = histogram(&window["session_time"]);
        assert_eq!(sessions.len(), 10);
        assert!(sessions.min() >= 19_900_000, "{}", sessions.min());
        let there = window["users_integral_s"].as_f64().unwrap();
        let parts = user_time_s(window);
        assert!((there - parts).abs() < 1e-9, "{there} {parts}");
        assert!(
            there * 1e9 <= sessions.mean() * 10.0 * 1.002,
            "{there} {sessions:?}"
        );
    }
}

#[test]
fn whoever_arrives_brings_a_connection_and_takes_it_along() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 200, 50, |plan| {
            plan["load"]["session"] = "user".into();
            plan["load"]["connections"] = 0.into();
            plan["connection"] = json!({"reuse": "per_session"});
            plan["scenarios"][0]["steps"] = json!([{"path": "/a"}, {"path": "/b"}]);
        });
        assert_counts(
            &totals(&plan),
            &json!({"completed": 20, "failed": 0, "sessions_completed": 10, "connections_opened": 10,
                    "connections_closed_by_client": 10, "users": 0}),
        );
        assert_eq!(server.connection_count(), 10);
    }
}

#[test]
fn a_walk_that_cannot_go_on_was_begun_and_not_completed() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 100, 50, |plan| {
            plan["load"]["session"] = "user".into();
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/a", "capture": [{"name": "id", "header": "x-nowhere"}]},
                {"path": "/b/${id}"},
            ]);
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"sent": 5, "sessions_begun": 5, "sessions_completed": 0, "users": 0}),
        );
    }
}

#[test]
fn connections_are_ready_before_the_first_arrival_and_kept() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 300, 20, |_| ());
        assert_counts(
            &totals(&plan),
            &json!({"connections_opened": 4, "completed": 6}),
        );
        assert_eq!(server.connection_count(), 4);
        // A server that closes after each response: every one is replaced.
        let server = Server::answering_once(HELLO);
        let plan = open(&server, driver, 300, 20, |_| ());
        let totals = totals(&plan);
        assert_counts(&totals, &json!({"completed": 6, "failed": 0}));
        assert!(
            totals["connections_opened"].as_u64().unwrap() >= 8,
            "{totals}"
        );
    }
}

#[test]
fn a_total_is_exact_and_ends_the_schedule() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 20_000, 1000, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": true});
            plan["stop"]["total_requests"] = 101.into();
        });
        let ended = run(&plan);
        assert_eq!(ended.finished()["reason"], "total_requests");
        assert_counts(
            &ended.finished()["totals"],
            &json!({"sent": 101, "completed": 101}),
        );
        assert_eq!(server.request_count(), 101);
    }
}

#[test]
fn nobody_listens_and_every_arrival_says_so() {
    let (_held, address) = refusing();
    for driver in drivers() {
        let plan = plan(address, driver, |plan| {
            plan["load"] = json!({"model": "open", "connections": 2, "phases": [{"duration_ms": 200, "from_per_s": 100, "to_per_s": 100}]});
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"offered": 20, "sent": 0, "failed": 20, "errors": {"connect_refused": 20}, "due_unsent": 0, "connections_opened": 0}),
        );
    }
}

#[test]
fn poisson_gaps_are_tested_and_a_server_cannot_change_them() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 1500, 100, |plan| {
            plan["load"]["arrivals"] = "poisson".into();
            plan["seed"] = 11.into();
        });
        let ended = run(&plan);
        let window = &ended.finished()["window"];
        let sent = window["sent"].as_u64().unwrap();
        // Ten standard deviations.
        assert!((30..=270).contains(&sent), "{sent}");
        assert_eq!(window["arrival_gaps"], sent - 1);
        let distance = window["arrival_gaps_ks"].as_f64().unwrap();
        assert!(distance > 0.0 && distance < 1.0, "{distance}");
        // The same seed offers the same arrivals on every driver.
        assert_eq!(ended.finished()["totals"]["offered"], sent);
    }
}

#[test]
fn what_is_due_in_a_window_is_counted_in_it_whoever_opens_it() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = open(&server, driver, 20_000, 200, |plan| {
            plan["window"] = json!({"mode": "commanded"});
        });
        let mut engine = Engine::start(&plan);
        engine.wait_for("interval");
        engine.command(&json!({"command": "window", "duration_ms": 500}));
        engine.wait_for("window_closed");
        engine.command(&json!({"command": "stop"}));
        let ended = engine.end();
        let window = &ended.finished()["window"];
        let offered = window["offered"].as_u64().unwrap();
        assert!((99..=101).contains(&offered), "{offered}");
        assert_eq!(window["complete"], true);
    }
}

#[test]
fn users_go_again_over_the_ramp_down() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 8.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 2});
            plan["load"]["ramp_up_ms"] = 1200.into();
            plan["load"]["ramp_up_steps"] = 4.into();
            plan["load"]["ramp_down_ms"] = 1200.into();
            plan["stop"]["after_ms"] = 3000.into();
            plan["interval_ms"] = 300.into();
        });
        let ended = run(&plan);
        let users: Vec<u64> = ended
            .all("interval")
            .iter()
            .map(|row| row["users"].as_u64().unwrap())
            .collect();
        assert_eq!(users.len(), 10);
        // Never early; late only on a busy host.
        for (users, most) in users.iter().zip([2, 4, 6, 8, 8, 8]) {
            assert!(*users <= most, "{users:?}");
        }
        // One ends every 150 ms, at 1950, 2100, … 3000 ms, or late on a busy host.
        assert!(users[6..].is_sorted_by(|a, b| a >= b), "{users:?}");
        assert!(*users.last().unwrap() < 8, "{users:?}");
        assert_eq!(ended.finished()["totals"]["failed"], 0);
    }
}

#[test]
fn every_kind_of_think_time_is_drawn_kept_and_measured() {
    for driver in drivers() {
        for think in [
            json!({"kind": "constant", "ms": 5}),
            json!({"kind": "uniform", "min_ms": 2, "max_ms": 8}),
            json!({"kind": "exponential", "mean_ms": 5}),
            json!({"kind": "gaussian", "mean_ms": 4, "stdev_ms": 4}),
        ] {
            let server = Server::answering(HELLO);
            let plan = plan(server.address, driver, |plan| {
                plan["load"]["users"] = 10.into();
                plan["load"]["think"] = think.clone();
                plan["stop"]["iterations_per_user"] = 11.into();
            });
            let totals = totals(&plan);
            assert_counts(&totals, &json!({"completed": 110, "think_count": 100}));
            let (drawn, actual) = (
                totals["think_drawn_sum_s"].as_f64().unwrap(),
                totals["think_actual_sum_s"].as_f64().unwrap(),
            );
            // A hundred draws with a mean of about 5 ms, within six standard deviations of their sum.
            assert!((0.2..0.85).contains(&drawn), "{think}: {drawn}");
            // Never shorter than drawn, and the histogram of how much longer adds up to the difference.
            let overshoot = &totals["think_overshoot"];
            assert_eq!(overshoot["count"], 100);
            let added = overshoot["mean_ns"].as_f64().unwrap() * 100.0 / 1e9;
            assert!(actual >= drawn, "{think}: {actual} {drawn}");
            assert!(
                (actual - drawn - added).abs() <= 0.002 * added + 1e-6,
                "{think}: {actual} {drawn} {added}"
            );
        }
    }
}

#[test]
fn an_open_plan_that_contradicts_itself_is_refused() {
    let server = Server::answering(HELLO);
    let plan = open(&server, "epoll", 100, 10, |plan| {
        plan["stop"]["iterations_per_user"] = 3.into();
    });
    let ended = run(&plan);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("closed load"), "{}", ended.stderr);
    let plan = open(&server, "epoll", 100, 10, |plan| {
        plan["connection"] = json!({"reuse": "per_session"});
    });
    let ended = run(&plan);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("session user"), "{}", ended.stderr);
}

#[test]
fn arrivals_may_wait_for_a_place_and_their_latency_counts_from_when_they_were_due() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            while peer.request().is_some() {
                std::thread::sleep(std::time::Duration::from_millis(20));
                peer.send(HELLO);
            }
        });
        let mut plan = open(&server, driver, 100, 200, |plan| {
            plan["load"]["max_users"] = 1.into();
            plan["load"]["connections"] = 1.into();
            plan["load"]["at_cap"] = "wait".into();
            plan["stop"] = json!({"after_ms": 60_000});
        });
        let finished = run(&plan).finished().clone();
        assert_counts(
            &finished["totals"],
            &json!({"offered": 20, "completed": 20, "failed": 0, "blocked": 0, "due_unsent": 0,
                "connections_opened": 1}),
        );
        // The last was due within 100 ms, and 19 others came before it.
        assert!(histogram(&finished["window"]["latency"]).max() >= 19 * 20_000_000 - 100_000_000);
        plan["load"]["at_cap"] = "block".into();
        assert!(totals(&plan)["blocked"].as_u64().unwrap() > 0);
    }
}
