//! The closed loop as a whole: how much is offered, when it stops, what is counted. On both drivers.

mod run_support;

use run_support::{
    Engine, HELLO, Server, assert_counts, drivers, plan, refusing, run, totals, user_time_s,
};
use serde_json::json;

#[test]
fn a_total_of_requests_is_exact_over_threads() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            plan["load"]["users"] = 7.into();
            plan["stop"]["total_requests"] = 1234.into();
        });
        let ended = run(&plan);
        let finished = ended.finished();
        assert_eq!(finished["reason"], "total_requests");
        assert!(finished["reader_cpu_s"].is_null());
        assert_counts(
            &finished["totals"],
            &json!({"sent": 1234, "completed": 1234, "failed": 0, "abandoned": 0, "connections_opened": 7,
                "connections_closed_by_client": 7, "connections_closed_by_server": 0, "connect_attempts": 7, "users": 0,
                "status": {"200": 1234}, "answers": [{"status": 200, "body_bytes": 5, "count": 1234}], "answers_other": 0,
                "bytes_received": 1234 * HELLO.len()}),
        );
        assert_eq!(server.request_count(), 1234);
        assert_eq!(server.connection_count(), 7);
    }
}

#[test]
fn one_body_in_256_is_sampled() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 2.into();
            plan["stop"]["total_requests"] = 10_000.into();
        });
        let ended = run(&plan);
        let bodies = &ended.finished()["window"]["bodies"];
        assert_eq!(bodies.as_array().map(Vec::len), Some(1), "{bodies}");
        assert_eq!(bodies[0]["sha256"], "2cf24dba5fb0a30e", "of hello");
        let count = bodies[0]["count"].as_u64().unwrap();
        assert!((10..100).contains(&count), "{count}");
    }
}

#[test]
fn iterations_per_user_walk_all_steps() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 3.into();
            plan["stop"]["iterations_per_user"] = 4.into();
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/a"},
                {"method": "POST", "path": "/b", "headers": [["X-Y", "z"]], "body": "twelve bytes"},
            ]);
        });
        let ended = run(&plan);
        assert_eq!(ended.finished()["reason"], "iterations");
        assert_counts(
            &ended.finished()["totals"],
            &json!({"sent": 24, "completed": 24}),
        );
        assert_eq!(server.request_count(), 24);
        let last = server.last_request.lock().unwrap().clone();
        assert_eq!(
            last,
            format!(
                "POST /b HTTP/1.1\r\nHost: {}\r\nX-Y: z\r\nContent-Length: 12\r\n\r\ntwelve bytes",
                server.address
            )
        );
    }
}

#[test]
fn a_deadline_abandons_what_is_in_flight() {
    for driver in drivers() {
        let server = Server::start(|peer| while peer.request().is_some() {});
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 3.into();
            plan["stop"]["after_ms"] = 1000.into(); // also on a busy host three users connect by then
        });
        let ended = run(&plan);
        assert_eq!(ended.finished()["reason"], "duration");
        assert_eq!(ended.finished()["elapsed_ms"], 1000.0);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"sent": 3, "completed": 0, "failed": 0, "abandoned": 3, "users": 3}),
        );
        let window = &ended.finished()["window"];
        assert_eq!(window["complete"], true);
        assert_eq!(window["duration_s"], 1.0);
        assert_eq!(window["service_time"], json!(null));
        // They were in flight nearly all the time, and nothing completed: one gap.
        assert_eq!(window["gaps_total"], 1);
        assert_eq!(window["gaps"][0]["in_flight"], 3);
    }
}

#[test]
fn a_connection_serves_as_many_requests_as_planned() {
    for driver in drivers() {
        for (connection, opened) in [
            (json!({"reuse": "per_request"}), 20),
            (json!({"reuse": "keep_alive", "max_requests": 5}), 4),
            (json!({"reuse": "keep_alive"}), 1),
        ] {
            let server = Server::answering(HELLO);
            let plan = plan(server.address, driver, |plan| {
                plan["connection"] = connection;
                plan["stop"]["total_requests"] = 20.into();
            });
            let totals = totals(&plan);
            assert_counts(
                &totals,
                &json!({"completed": 20, "failed": 0, "connections_opened": opened,
                    "connections_closed_by_client": opened, "connections_closed_by_server": 0}),
            );
            assert_eq!(server.connection_count(), opened);
            let asked_to_close = server
                .last_request
                .lock()
                .unwrap()
                .contains("Connection: close");
            assert_eq!(asked_to_close, opened > 1);
        }
    }
}

#[test]
fn a_server_that_ends_connections_is_seen() {
    const CLOSING: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    for driver in drivers() {
        let server = Server::answering_once(CLOSING);
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["total_requests"] = 10.into()
        });
        assert_counts(
            &totals(&plan),
            &json!({"completed": 10, "failed": 0, "connections_opened": 10, "connections_closed_by_server": 10}),
        );
    }
}

#[test]
fn a_connection_closed_while_the_user_thinks_is_no_error() {
    for driver in drivers() {
        let server = Server::answering_once(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["total_requests"] = 4.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 50});
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"completed": 4, "failed": 0, "connections_opened": 4}),
        );
        // The end of the last connection may come after that of the run.
        assert!(totals["connections_closed_by_server"].as_u64().unwrap() >= 3);
    }
}

#[test]
fn users_who_think_do_not_hold_up_the_end_of_a_total() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["total_requests"] = 3.into();
            plan["load"]["users"] = 3.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 20_000});
        });
        let ended = run(&plan);
        assert_eq!(ended.finished()["reason"], "total_requests");
        assert!(ended.finished()["elapsed_ms"].as_f64().unwrap() < 10_000.0);
    }
}

#[test]
fn the_integral_of_what_is_in_flight_is_the_sum_of_the_service_times() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": true});
            plan["load"]["users"] = 5.into();
            plan["load"]["ramp_up_ms"] = 20.into();
            plan["stop"]["total_requests"] = 2000.into();
        });
        let totals = totals(&plan);
        let sum = |key: &str| totals[key].as_f64().unwrap();
        // When nothing was abandoned both are the same by Fubini, though they come from counters
        // that know nothing of each other.
        assert!(
            (sum("in_flight_integral_s") - sum("service_time_sum_s")).abs() < 1e-9,
            "{totals}"
        );
        // Without think times a cycle is the residence. Each moment of a user is one part.
        assert!((sum("clipped_cycle_s") - sum("service_time_sum_s")).abs() < 1e-9);
        assert!((user_time_s(&totals) - sum("users_integral_s")).abs() < 1e-9);
        assert!(sum("clipped_connect_s") > 0.0);
        assert_eq!(totals["turnaround_count"], totals["sent"]);
    }
}

#[test]
fn think_times_are_drawn_and_kept() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 4.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 10});
            plan["stop"]["iterations_per_user"] = 6.into();
        });
        let totals = totals(&plan);
        // No thinking after the last request of a user.
        assert_counts(
            &totals,
            &json!({"completed": 24, "think_count": 20, "think_drawn_sum_s": 0.2}),
        );
        assert!(totals["think_actual_sum_s"].as_f64().unwrap() >= 0.2);
        assert_eq!(totals["think_overshoot"]["count"], 20);
    }
}

#[test]
fn users_start_over_the_ramp() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 10.into();
            plan["load"]["ramp_up_ms"] = 1000.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 5});
        });
        let mut engine = Engine::start(&plan);
        while engine.wait_for("interval")["users"] != 10 {}
        engine.command(&json!({"command": "stop"}));
        let ended = engine.end();
        let users: Vec<u64> = ended
            .all("interval")
            .iter()
            .map(|row| row["users"].as_u64().unwrap())
            .collect();
        assert!(users.is_sorted(), "{users:?}");
        // Never early; late only on a busy host.
        assert!(
            users.iter().zip(1..).all(|(users, most)| *users <= most),
            "{users:?}"
        );
        assert_eq!(ended.finished()["totals"]["users"], 10);
    }
}

#[test]
fn a_dead_server_makes_no_busy_loop() {
    let (_held, address) = refusing();
    for driver in drivers() {
        let plan = plan(address, driver, |plan| {
            plan["stop"]["after_ms"] = 400.into()
        });
        let totals = totals(&plan);
        let attempts = totals["connect_attempts"].as_u64().unwrap();
        // At 0, 10, 30, 70, 150 and 310 ms, or later on a busy host.
        assert!((1..=6).contains(&attempts), "{attempts}");
        assert_counts(
            &totals,
            &json!({"sent": 0, "failed": attempts, "errors": {"connect_refused": attempts}, "connections_opened": 0}),
        );
    }
}
