//! What connecting costs a user: in no service time, in the response time and in the gaps.

mod run_support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use run_support::{Engine, HELLO, Server, drivers, full_listener, plan, run, user_time_s};
use serde_json::{Value, json};

/// Waits until somebody's SYN to this port is on its way, unanswered.
fn wait_for_a_syn(port: u16) {
    let peer = format!("0100007F:{port:04X} 02");
    for _ in 0..30_000 {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        if sockets.contains(&peer) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nobody tries to connect to port {port}");
}

/// Answers one connection after the other until the engine has ended.
fn answer(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut request = [0; 1024];
                while stream.read(&mut request).is_ok_and(|length| length > 0) {
                    stream.write_all(HELLO.as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_syn_that_is_sent_again_is_in_the_response_time_and_is_a_gap() {
    for driver in drivers() {
        let (listener, _filler) = full_listener();
        let address = listener.local_addr().unwrap();
        let plan = plan(address, driver, |plan| {
            plan["stop"]["total_requests"] = 5.into();
        });
        let engine = Engine::start(&plan);
        wait_for_a_syn(address.port());
        answer(listener);
        let ended = engine.end();
        let window = &ended.finished()["window"];
        assert_eq!(window["completed"], 5);
        let ns = |key: &str, bound: &str| window[key][bound].as_u64().unwrap();
        // The kernel sends a SYN again after a second.
        assert!(ns("response_time", "max_ns") >= 990_000_000, "{window}");
        assert!(ns("response_time", "max_ns") >= ns("connect_time", "max_ns"));
        assert_eq!(window["response_time"]["count"], 5);
        // The other four went out on an open connection.
        assert_eq!(
            ns("response_time", "min_ns"),
            ns("service_time", "min_ns"),
            "{window}"
        );
        let gap = &window["gaps"][0];
        assert!(gap["duration_ms"].as_f64().unwrap() >= 990.0, "{window}");
        assert_eq!(gap["in_flight"], 1);
        let connecting = window["clipped_connect_s"].as_f64().unwrap();
        assert!(connecting >= 0.99, "{connecting}");
    }
}

#[test]
fn a_connection_for_each_request_leaves_no_user_time_over() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["connection"] = json!({"max_requests": 1});
            plan["stop"] = json!({"iterations_per_user": 19, "after_ms": 30_000});
        });
        let ended = run(&plan);
        let window = &ended.finished()["window"];
        assert_eq!(window["completed"], 19);
        assert_eq!(window["response_time"]["count"], 19);
        let there = window["users_integral_s"].as_f64().unwrap();
        assert!((user_time_s(window) - there).abs() < 1e-9, "{window}");
        assert_ne!(window["response_time"], window["service_time"]);
    }
}

#[test]
fn each_step_has_its_response_times() {
    let server = Server::answering(HELLO);
    let plan = plan(server.address, "auto", |plan| {
        plan["connection"] = json!({"max_requests": 2});
        plan["scenarios"] =
            json!([{"steps": [{"path": "/a", "name": "a"}, {"path": "/b", "name": "b"}]}]);
        plan["stop"]["total_requests"] = 10.into();
    });
    let ended = run(&plan);
    let steps = &ended.finished()["window"]["steps"];
    assert_eq!(steps[0]["response_time"]["count"], 5);
    // The second request of each connection found it open.
    assert_eq!(steps[1]["response_time"], Value::Null);
}
