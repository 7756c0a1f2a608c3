//! Rests and turns: users keep their connections and send nothing between turns. On both drivers.

mod run_support;

use run_support::{Engine, HELLO, Server, drivers, plan, user_time_s};
use serde_json::{Value, json};

fn server() -> Server {
    Server::start(|peer| {
        while peer.request().is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            peer.send(HELLO);
        }
    })
}

#[test]
fn a_window_of_turns_is_their_sum_over_the_same_connections() {
    for driver in drivers() {
        let server = server();
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            plan["load"]["users"] = 4.into();
            plan["window"] = json!({"mode": "commanded"});
        });
        let mut engine = Engine::start(&plan);
        let row = engine.wait_for("interval");
        engine.command(&json!({"command": "rest"}));
        let started_ns = engine.events[0]["started_monotonic_ns"].as_u64().unwrap();
        let at_ns = started_ns + (row["t_ms"].as_f64().unwrap() * 1e6) as u64 + 1_000_000_000;
        engine.command(&json!({
            "command": "turns",
            "at_monotonic_ns": at_ns,
            "turns": [[0, 50, 50], [100, 150, 350], [350, 400, 600], [1900, 1950, 2150]],
        }));
        let opened = engine.wait_for("window_opened");
        engine.command(&json!({"command": "close_window"}));
        let closed = engine.wait_for("window_closed");
        engine.command(&json!({"command": "stop"}));
        let ended = engine.end();
        let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
        assert!((number(&closed, "t_ms") - number(&opened, "t_ms") - 2000.0).abs() < 1e-3);
        let window = &ended.finished()["window"];
        assert_eq!(window["complete"], true);
        assert_eq!(window["opened_ms"], opened["t_ms"]);
        assert!(
            (number(window, "duration_s") - 0.6).abs() < 0.01,
            "{window}"
        );
        assert_eq!(window["users"], 4);
        let users = user_time_s(window) / number(window, "duration_s");
        assert!((users - 4.0).abs() < 1e-6, "{users}");
        assert_eq!(window["connections_opened"], 0);
        let totals = &ended.finished()["totals"];
        assert_eq!(totals["connections_opened"], 4);
        assert_eq!(totals["failed"], 0);
        let rows = ended.all("interval");
        let inside: Vec<&&Value> = rows.iter().filter(|row| row["in_window"] == true).collect();
        let sum: u64 = inside
            .iter()
            .map(|row| row["completed"].as_u64().unwrap())
            .sum();
        assert_eq!(sum, window["completed"].as_u64().unwrap());
        // Between the last two turns, at 450 to 1750 ms of the window: what was in flight at the end of a
        // turn may arrive late on a busy host.
        let from_ms = number(&opened, "t_ms") + 1200.0;
        let rest = rows.iter().filter(|row| {
            number(row, "t_ms") <= from_ms + 550.0
                && number(row, "t_ms") - number(row, "duration_ms") >= from_ms
        });
        let rested: Vec<u64> = rest.map(|row| row["completed"].as_u64().unwrap()).collect();
        assert!(!rested.is_empty() && rested.iter().all(|completed| *completed == 0));
    }
}
