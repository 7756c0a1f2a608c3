//! The parts of a request's time, on both drivers: they are where the server spent it, and together
//! the service time.

mod run_support;

use std::time::Duration;

use run_support::{HELLO, Server, drivers, plan, run};
use serde_json::{Value, json};

/// Total of a histogram, by its mean.
fn sum_ns(histogram: &Value) -> f64 {
    histogram["mean_ns"].as_f64().unwrap() * histogram["count"].as_f64().unwrap()
}

#[test]
fn waiting_and_receiving_are_told_apart_and_add_up_to_the_service_time() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            while peer.request().is_some() {
                std::thread::sleep(Duration::from_millis(100));
                let (head, rest) = HELLO.split_at(10);
                peer.send(head);
                std::thread::sleep(Duration::from_millis(200));
                peer.send(rest);
            }
        });
        let ended = run(&plan(server.address, driver, |plan| {
            plan["parts"] = true.into();
            plan["stop"]["total_requests"] = 3.into();
        }));
        let window = &ended.finished()["window"];
        let [send, wait, receive] =
            ["send_time", "wait_time", "receive_time"].map(|part| &window[part]);
        for part in [send, wait, receive] {
            assert_eq!(part["count"], 3);
        }
        // A busy client reads the clock late, which moves time from one part to the next.
        assert!(wait["mean_ns"].as_f64().unwrap() >= 50e6, "{wait}");
        assert!(receive["mean_ns"].as_f64().unwrap() >= 100e6, "{receive}");
        let parts = sum_ns(send) + sum_ns(wait) + sum_ns(receive);
        let service = sum_ns(&window["service_time"]);
        assert!(
            (parts - service).abs() < 0.01 * service,
            "{parts} {service}"
        );
    }
}

#[test]
fn a_request_that_the_server_is_slow_to_read_takes_its_time_to_send() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            std::thread::sleep(Duration::from_millis(300));
            let mut buffer = vec![0; 1024 * 1024];
            let mut left = 20_000_000;
            while left > 0 {
                let read = std::io::Read::read(&mut peer.stream, &mut buffer).unwrap();
                left -= read.min(left);
            }
            peer.send(HELLO);
        });
        let ended = run(&plan(server.address, driver, |plan| {
            plan["parts"] = true.into();
            plan["scenarios"][0]["steps"][0] =
                json!({"method": "POST", "path": "/", "body": "y".repeat(20_000_000)});
            plan["stop"]["total_requests"] = 1.into();
        }));
        let send = &ended.finished()["window"]["send_time"];
        assert!(send["min_ns"].as_u64().unwrap() >= 100_000_000, "{send}");
    }
}

#[test]
fn without_being_asked_for_there_are_none() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let ended = run(&plan(server.address, driver, |plan| {
            plan["stop"]["total_requests"] = 5.into();
        }));
        let window = &ended.finished()["window"];
        for part in ["send_time", "wait_time", "receive_time"] {
            assert!(window[part].is_null());
        }
    }
}
