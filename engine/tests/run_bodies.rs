//! Bodies of requests, on both drivers: streamed from files, and sent only when the server asks for them.

mod run_support;
mod serve_support;

use run_support::recording::{ok, recording};
use run_support::{Server, assert_counts, drivers, plan, run, totals};
use serde_json::{Value, json};
use serve_support::Server as Reference;

#[test]
fn a_long_file_is_streamed_from_the_disk() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for number in 0..200_000 {
        std::io::Write::write_fmt(&mut file, format_args!("{number:09} ")).unwrap();
    }
    let text = std::fs::read_to_string(file.path()).unwrap();
    let server = Reference::start("");
    for driver in drivers() {
        for chunked in [false, true] {
            let plan = plan(server.address().parse().unwrap(), driver, |plan| {
                plan["scenarios"][0]["steps"][0] = json!({"method": "PUT", "path": "/echo?n=${sequence}",
                    "body": {"file": file.path(), "chunked": chunked}, "expect": {"body_equals": text}});
                plan["stop"]["total_requests"] = 3.into();
            });
            let ended = run(&plan);
            let finished = ended.finished();
            let totals = &finished["totals"];
            assert_counts(
                totals,
                &json!({"completed": 3, "failed": 0, "connections_opened": 1}),
            );
            assert!(totals["bytes_sent"].as_u64().unwrap() > 6_000_000);
            let reader_cpu_s = finished["reader_cpu_s"].as_f64().unwrap();
            assert!(reader_cpu_s > 0.0 && reader_cpu_s < 10.0, "{reader_cpu_s}");
        }
    }
}

#[test]
fn a_streamed_request_ends_with_its_connection() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(50_000_000).unwrap();
    for driver in drivers() {
        // The response comes before the request is read, and the connection is given up in the
        // middle of the file.
        let server = Server::start(|peer| {
            let mut some = [0; 100];
            std::io::Read::read_exact(&mut peer.stream, &mut some).unwrap();
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            // The client gives the connection up at once; closing it here too early would take the
            // response back.
            std::thread::sleep(std::time::Duration::from_secs(5));
        });
        let plan = plan(server.address, driver, |plan| {
            plan["scenarios"][0]["steps"][0] = json!({"method": "PUT", "path": "/", "body": {"file": file.path(), "chunked": true}});
            plan["stop"]["total_requests"] = 3.into();
        });
        assert_counts(
            &totals(&plan),
            &json!({"completed": 3, "failed": 0, "status": {"413": 3}, "connections_opened": 3}),
        );
    }
}

/// A step whose body waits to be asked for.
fn waiting(plan: &mut Value) {
    plan["scenarios"][0]["steps"][0] = json!({"method": "POST", "path": "/echo", "body": "n ${sequence} end",
        "expect_continue": true, "expect": {"status": [200, 417]}});
    plan["stop"]["total_requests"] = 3.into();
}

#[test]
fn a_body_waits_until_the_server_asks_for_it() {
    let server = Reference::start("");
    for driver in drivers() {
        let plan = plan(server.address().parse().unwrap(), driver, |plan| {
            waiting(plan);
            plan["scenarios"][0]["steps"][0]["expect"]["body_contains"] = json!(["n ", " end"]);
        });
        let totals = totals(&plan);
        let expected = json!({"completed": 3, "failed": 0, "connections_opened": 1});
        assert_counts(&totals, &expected);
    }
}

#[test]
fn a_body_that_nobody_asks_for_is_sent_after_a_second_or_never() {
    for driver in drivers() {
        // It knows nothing of Expect and waits for the body.
        let (silent, requests) = recording(|_| ok("x"));
        let asked = plan(silent.address, driver, |plan| {
            waiting(plan);
            plan["stop"]["total_requests"] = 1.into();
        });
        let totals = run(&asked).finished()["totals"].clone();
        assert_counts(&totals, &json!({"completed": 1, "failed": 0}));
        assert!(totals["service_time_sum_s"].as_f64().unwrap() >= 1.0);
        assert!(requests.lock().unwrap()[0].ends_with("n 1 end"));

        // It refuses by the head alone: the connection cannot be used any more.
        let refusing = Server::start(|peer| {
            let mut head = [0; 16];
            std::io::Read::read_exact(&mut peer.stream, &mut head).unwrap();
            peer.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
            std::thread::sleep(std::time::Duration::from_secs(5));
        });
        let refused = plan(refusing.address, driver, waiting);
        assert_counts(
            &run(&refused).finished()["totals"],
            &json!({"completed": 3, "failed": 0, "connections_opened": 3, "status": {"417": 3}}),
        );
    }
}
