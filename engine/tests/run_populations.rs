//! Several groups of users against real sockets, on both drivers and over several threads: how
//! often each group's requests come.

mod run_support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use run_support::{Server, drivers, plan, run};
use serde_json::json;

type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

/// A server that counts what is asked for.
fn counting() -> (Server, Counts) {
    let counts = Counts::default();
    let kept = Arc::clone(&counts);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let path = request.split(' ').nth(1).unwrap().to_owned();
            *kept.lock().unwrap().entry(path).or_default() += 1;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    (server, counts)
}

#[test]
fn each_group_walks_its_own_scenario_so_many_times_and_the_run_ends_with_the_last() {
    for driver in drivers() {
        for cpus in [json!([]), json!([0, 1])] {
            let (server, counts) = counting();
            let plan = plan(server.address, driver, |plan| {
                plan["threads"] = json!({"cpus": cpus, "pin": false});
                plan["load"] = json!({"model": "closed", "populations": [
                    {"name": "browse", "users": 3, "ramp_up_ms": 60, "iterations_per_user": 5, "scenarios": ["look"]},
                    {"name": "buy", "users": 2, "start_ms": 100, "iterations_per_user": 4, "scenarios": ["fill", "pay"]},
                ]});
                plan["scenarios"] = json!([
                    {"name": "look", "steps": [{"path": "/look/${user}"}]},
                    {"name": "fill", "steps": [{"path": "/fill"}]},
                    {"name": "pay", "steps": [{"path": "/pay"}]},
                ]);
                plan["stop"] = json!({"after_ms": 20_000});
            });
            let ended = run(&plan);
            let finished = ended.finished();
            assert_eq!(finished["reason"], "iterations");
            assert_eq!(finished["totals"]["completed"], 15 + 8);
            let counts = counts.lock().unwrap();
            let of = |path: &str| counts.get(path).copied().unwrap_or(0);
            for user in 1..=3 {
                assert_eq!(of(&format!("/look/{user}")), 5, "{counts:?}");
            }
            assert_eq!(of("/fill") + of("/pay"), 8, "{counts:?}");
            let steps = &finished["window"]["steps"];
            assert_eq!(steps[0]["scenario"], "look");
            assert_eq!(steps[0]["completed"], 15);
        }
    }
}

#[test]
fn users_of_a_group_in_several_populations_are_numbered_on() {
    for driver in drivers() {
        let (server, counts) = counting();
        let plan = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "closed", "populations": [
                {"name": "first", "users": 2, "iterations_per_user": 1, "scenarios": ["wave"], "feeders": ["own"]},
                {"name": "others", "users": 3, "iterations_per_user": 1, "scenarios": ["others"], "feeders": []},
                {"name": "second", "users": 2, "users_before": 2, "iterations_per_user": 1, "scenarios": ["wave"],
                    "feeders": ["own"]},
            ]});
            plan["feeders"] = json!([{"name": "own", "columns": ["id"], "rows": [["a"], ["b"], ["c"], ["d"]],
                "order": "unique_per_user", "at_end": "stop"}]);
            plan["scenarios"] = json!([
                {"name": "wave", "steps": [{"path": "/${user}/${own.id}"}]},
                {"name": "others", "steps": [{"path": "/others/${user}"}]},
            ]);
            plan["stop"] = json!({"after_ms": 20_000});
        });
        run(&plan);
        let asked: Vec<String> = counts.lock().unwrap().keys().cloned().collect();
        // A row goes by the number among those who draw, which no population counts for the next one.
        let expected = [
            "/1/a",
            "/2/b",
            "/3/c",
            "/4/d",
            "/others/1",
            "/others/2",
            "/others/3",
        ];
        assert_eq!(asked, expected);
    }
}

#[test]
fn a_group_whose_time_is_over_asks_for_nothing_more_while_others_go_on() {
    for driver in drivers() {
        let (server, counts) = counting();
        let plan = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "closed", "populations": [
                {"name": "short", "users": 2, "duration_ms": 50, "scenarios": ["short"],
                    "think": {"kind": "constant", "ms": 100_000}},
                {"name": "never", "users": 2, "start_ms": 30, "ramp_up_ms": 100_000, "duration_ms": 20, "scenarios": ["never"]},
                {"name": "long", "users": 1, "start_ms": 100, "iterations_per_user": 6, "scenarios": ["long"]},
            ]});
            plan["scenarios"] = json!([
                {"name": "short", "steps": [{"path": "/short"}]},
                {"name": "never", "steps": [{"path": "/never"}]},
                {"name": "long", "steps": [{"path": "/long"}]},
            ]);
            plan["stop"] = json!({"after_ms": 20_000});
        });
        let ended = run(&plan);
        assert_eq!(ended.finished()["reason"], "iterations");
        let counts = counts.lock().unwrap();
        // A machine that stands still for 50 ms may keep the first from starting in time.
        assert!(
            counts.get("/short").copied().unwrap_or(0) <= 2,
            "{counts:?}"
        );
        assert_eq!(counts["/long"], 6);
    }
}

#[test]
fn rows_go_to_those_who_draw_them() {
    let file = std::env::temp_dir().join(format!("prony-rows-{}.csv", std::process::id()));
    std::fs::write(&file, "id\n1\n2\n3\n4\n").unwrap();
    let feeder = |name: &str, order: &str| json!({"name": name, "file": file, "order": order, "at_end": "stop"});
    for driver in drivers() {
        let (server, counts) = counting();
        let plan = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "closed", "populations": [
                {"name": "others", "users": 5, "iterations_per_user": 2, "scenarios": ["others"], "feeders": []},
                {"name": "readers", "users": 1, "scenarios": ["readers"], "feeders": ["rows"]},
                {"name": "owners", "users": 4, "iterations_per_user": 1, "scenarios": ["owners"], "feeders": ["own"]},
            ]});
            plan["feeders"] = json!([feeder("rows", "sequence"), feeder("own", "unique_per_user")]);
            plan["scenarios"] = json!([
                {"name": "others", "steps": [{"path": "/others"}]},
                {"name": "readers", "steps": [{"path": "/row/${rows.id}"}]},
                {"name": "owners", "steps": [{"path": "/own/${own.id}"}]},
            ]);
            plan["stop"] = json!({"after_ms": 20_000});
        });
        let ended = run(&plan);
        assert_eq!(ended.finished()["reason"], "iterations");
        let counts = counts.lock().unwrap();
        assert_eq!(counts["/others"], 10);
        for id in 1..=4 {
            // The sequence is used up by its readers alone, and each owner has a row although users
            // of others are numbered before.
            assert_eq!(counts[&format!("/row/{id}")], 1, "{counts:?}");
            assert_eq!(counts[&format!("/own/{id}")], 1, "{counts:?}");
        }
    }
    std::fs::remove_file(&file).unwrap();
}
