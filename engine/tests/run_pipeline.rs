//! Pipelining: what goes out together, whose response is whose, and what is lost with a connection.
//! On both drivers.

mod run_support;
mod serve_support;

use std::net::SocketAddr;

use run_support::{HELLO, assert_counts, drivers, plan, run, totals};
use serde_json::{Value, json};
use serve_support::Server;

/// A plan for the reference server with this depth.
fn deep(server: &Server, driver: &str, depth: u32, edit: impl FnOnce(&mut Value)) -> Value {
    let address: SocketAddr = server.address().parse().unwrap();
    plan(address, driver, |plan| {
        plan["connection"] = json!({"pipeline": depth});
        edit(plan);
    })
}

/// Little's law: what was in flight, from the change of a counter, is the sum of the times of the requests.
fn assert_little(totals: &Value) {
    let integral = totals["in_flight_integral_s"].as_f64().unwrap();
    let sum = totals["service_time_sum_s"].as_f64().unwrap();
    assert!(
        sum > 0.0 && (integral - sum).abs() <= 1e-6 * sum,
        "{integral} {sum}"
    );
}

#[test]
fn every_request_is_counted_and_in_flight_by_itself() {
    for driver in drivers() {
        let server = Server::start("--delay fixed:5ms");
        let ended = run(&deep(&server, driver, 8, |plan| {
            plan["load"]["users"] = 2.into();
            plan["stop"]["total_requests"] = 100.into();
        }));
        let finished = ended.finished();
        assert_counts(
            &finished["totals"],
            &json!({"sent": 100, "completed": 100, "failed": 0, "connections_opened": 2}),
        );
        assert_little(&finished["totals"]);
        let service_time = &finished["window"]["service_time"];
        assert_eq!(service_time["count"], 100);
        // The server answers one after the other: the eighth of a group is there after eight delays
        // at the earliest, the first after one.
        assert!(service_time["min_ns"].as_u64().unwrap() >= 5_000_000);
        assert!(service_time["max_ns"].as_u64().unwrap() >= 40_000_000);
        let served = server.stop();
        assert_eq!(served["requests"], 100);
        assert_eq!(served["bytes_received"], finished["totals"]["bytes_sent"]);
    }
}

#[test]
fn so_many_go_out_before_the_first_response_and_no_more() {
    for driver in drivers() {
        let server = run_support::Server::start(|peer| {
            // 10 requests in groups of 4, 4 and 2, which are the user's last.
            for group in [4, 4, 2] {
                for _ in 0..group {
                    if peer.request().is_none() {
                        return;
                    }
                }
                peer.stream.set_nonblocking(true).unwrap();
                let mut more = [0; 1];
                let early = std::io::Read::read(&mut peer.stream, &mut more);
                peer.stream.set_nonblocking(false).unwrap();
                if early.is_ok() {
                    peer.send("a request too many");
                    return;
                }
                // Responses in pieces that are no responses: split within a head, and several in
                // one.
                let responses = HELLO.repeat(group);
                let (first, rest) = responses.split_at(20);
                peer.send(first);
                std::thread::sleep(std::time::Duration::from_millis(5));
                peer.send(rest);
            }
            while peer.request().is_some() {}
        });
        let totals = totals(&plan(server.address, driver, |plan| {
            plan["connection"] = json!({"pipeline": 4});
            plan["stop"]["iterations_per_user"] = 10.into();
        }));
        assert_counts(
            &totals,
            &json!({"sent": 10, "completed": 10, "failed": 0, "connections_opened": 1,
                "answers": [{"status": 200, "body_bytes": 5, "count": 10}]}),
        );
        assert_little(&totals);
    }
}

#[test]
fn a_response_is_held_against_its_own_request() {
    for driver in drivers() {
        let server = run_support::Server::start(|peer| {
            while let Some(request) = peer.request() {
                let path = request.split(' ').nth(1).unwrap();
                let body = if request.starts_with("HEAD") {
                    ""
                } else {
                    path
                };
                peer.send(&format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                    path.len()
                ));
            }
        });
        let mut plan = plan(server.address, driver, |plan| {
            plan["connection"] = json!({"pipeline": 5});
            // Longer than the end of the total takes to be told: a pause that begins after it is not awaited.
            plan["load"]["think"] = json!({"kind": "constant", "ms": 50});
            plan["scenarios"] = json!([{"name": "three", "steps": [
                {"path": "/a", "expect": {"body_equals": "/a"}},
                {"method": "HEAD", "path": "/bb", "expect": {"body_bytes": 0}},
                {"method": "POST", "path": "/${sequence}", "body": "x", "expect": {"body_contains": ["/"]}}]}]);
            plan["stop"]["total_requests"] = 32.into();
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            // Groups of 5, and of 2 at the end; a pause after each but the last.
            &json!({"completed": 32, "failed": 0, "connections_opened": 1, "think_count": 6}),
        );
        let steps = ended.finished()["window"]["steps"].as_array().unwrap();
        let counts: Vec<&Value> = steps.iter().map(|step| &step["completed"]).collect();
        assert_eq!(counts, [11, 11, 10]);
        plan["scenarios"][0]["steps"][1]["expect"] = json!({"body_bytes": 3});
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 32, "failed": 11, "errors": {"expect_body": 11}}),
        );
        assert_eq!(ended.finished()["window"]["steps"][1]["failed"], 11);
    }
}

#[test]
fn requests_behind_the_last_response_of_a_connection_are_lost_with_it() {
    for driver in drivers() {
        for trouble in ["--close-after 2", "--close-silently-after 2"] {
            let server = Server::start(trouble);
            let totals = totals(&deep(&server, driver, 4, |plan| {
                plan["stop"]["total_requests"] = 40.into();
            }));
            assert_counts(
                &totals,
                &json!({"sent": 40, "completed": 20, "failed": 20, "connections_opened": 10,
                    "connections_closed_by_server": 10}),
            );
            let errors = &totals["errors"];
            // A server that has not read all may reset the connection.
            let lost = ["premature_close", "read"].map(|kind| errors[kind].as_u64().unwrap_or(0));
            assert_eq!(lost.iter().sum::<u64>(), 20, "{errors}");
        }
    }
}

#[test]
fn requests_that_wait_for_nothing_time_out_together_and_each_is_counted() {
    for driver in drivers() {
        let server = Server::start("--no-answer share=1");
        let ended = run(&deep(&server, driver, 3, |plan| {
            plan["timeouts"] = json!({"connect_ms": 1000, "request_ms": 60});
            plan["stop"]["total_requests"] = 6.into();
        }));
        assert_counts(
            &ended.finished()["totals"],
            &json!({"sent": 6, "completed": 0, "failed": 6, "errors": {"timeout": 6}, "connections_opened": 2}),
        );
        assert_eq!(ended.finished()["window"]["service_time"]["count"], 6);
    }
}

#[test]
fn a_group_is_no_longer_than_what_the_connection_is_for() {
    for driver in drivers() {
        let server = Server::start("");
        let totals = totals(&deep(&server, driver, 4, |plan| {
            plan["connection"]["max_requests"] = 6.into();
            plan["stop"]["total_requests"] = 24.into();
        }));
        assert_counts(
            &totals,
            &json!({"completed": 24, "failed": 0, "connections_opened": 4}),
        );
    }
}

#[test]
fn a_run_that_is_stopped_abandons_each_request_in_flight() {
    for driver in drivers() {
        let server = Server::start("--delay fixed:10s");
        let totals = totals(&deep(&server, driver, 16, |plan| {
            plan["load"]["users"] = 3.into();
            plan["stop"]["after_ms"] = 1500.into();
        }));
        assert_counts(
            &totals,
            &json!({"sent": 48, "completed": 0, "failed": 0, "abandoned": 48}),
        );
    }
}

#[test]
fn responses_of_every_framing_follow_each_other() {
    for driver in drivers() {
        let server = run_support::Server::start(|peer| {
            while let Some(request) = peer.request() {
                let head = "HTTP/1.1 200 OK\r\n";
                let response = match request.split(' ').nth(1).unwrap() {
                    "/chunked" => format!(
                        "{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n"
                    ),
                    "/none" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
                    "/hints" => format!(
                        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n{head}Content-Length: 0\r\n\r\n"
                    ),
                    _ => format!("{head}Content-Length: 4\r\n\r\nfour"),
                };
                peer.send(&response);
            }
        });
        let totals = totals(&plan(server.address, driver, |plan| {
            plan["connection"] = json!({"pipeline": 7});
            plan["scenarios"] = json!([{"steps": [
                {"path": "/chunked", "expect": {"status": [200], "body_equals": "abcde"}},
                {"path": "/none", "expect": {"status": [204], "body_bytes": 0}},
                {"path": "/hints", "expect": {"status": [200], "body_bytes": 0}},
                {"path": "/four", "expect": {"status": [200], "body_equals": "four"}}]}]);
            plan["stop"]["total_requests"] = 400.into();
        }));
        assert_counts(
            &totals,
            &json!({"completed": 400, "failed": 0, "connections_opened": 1, "status": {"200": 300, "204": 100}}),
        );
    }
}

/// Responses of 12 bytes of JSON behind the head, in which the request's path stands.
fn naming_the_path() -> run_support::Server {
    run_support::Server::start(|peer| {
        while let Some(request) = peer.request() {
            let path = request.split(' ').nth(1).unwrap();
            let body = format!("{{\"p\":\"{path}\"}}");
            peer.send(&format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    })
}

#[test]
fn each_request_of_a_group_has_its_row_its_parts_and_its_json_looked_at() {
    for driver in drivers() {
        let server = naming_the_path();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let ended = run(&plan(server.address, driver, |plan| {
            plan["connection"] = json!({"pipeline": 5});
            plan["log"] = json!(file);
            plan["parts"] = true.into();
            plan["scenarios"] = json!([{"name": "three", "steps": [
                {"path": "/a", "expect": {"json": [{"pointer": "/p", "equals": "/a"}]}},
                {"path": "/n${sequence}", "expect": {"json": [{"pointer": "/p"}]}},
                {"method": "POST", "path": "/c", "body": "x", "expect": {"json": [{"pointer": "/p", "equals": "/a"}]}}]}]);
            plan["stop"]["total_requests"] = 31.into();
        }));
        let finished = ended.finished();
        let totals = &finished["totals"];
        assert_counts(
            totals,
            &json!({"completed": 31, "failed": 10, "errors": {"expect_body": 10}}),
        );
        let window = &finished["window"];
        let sum = |name: &str| {
            let histogram = &window[name];
            assert_eq!(histogram["count"], 31, "{name}");
            histogram["mean_ns"].as_f64().unwrap() * 31.0
        };
        let parts = sum("send_time") + sum("wait_time") + sum("receive_time");
        let service = sum("service_time");
        assert!(
            (parts - service).abs() < 0.01 * service,
            "{parts} {service}"
        );
        let rows: Vec<std::collections::HashMap<String, String>> = csv::Reader::from_path(&file)
            .unwrap()
            .deserialize()
            .map(Result::unwrap)
            .collect();
        let paths: Vec<&str> = rows.iter().map(|row| row["path"].as_str()).collect();
        let expected: Vec<String> = (0..31)
            .map(|number| match number % 3 {
                0 => "/a".to_owned(),
                1 => format!("/n{}", number / 3 + 1),
                _ => "/c".to_owned(),
            })
            .collect();
        assert_eq!(paths, expected);
        for (column, total) in [("bytes_out", "bytes_sent"), ("bytes_in", "bytes_received")] {
            let sum: u64 = rows
                .iter()
                .map(|row| row[column].parse::<u64>().unwrap())
                .sum();
            assert_eq!(&json!(sum), &totals[total], "{column}");
        }
        for (number, row) in rows.iter().enumerate() {
            let wrong = if number % 3 == 2 { "expect_body" } else { "" };
            assert_eq!(
                (row["error"].as_str(), row["status"].as_str()),
                (wrong, "200")
            );
            let [first, whole] =
                ["first_byte_ns", "service_ns"].map(|key| row[key].parse::<u64>().unwrap());
            assert!(first <= whole, "{row:?}");
            // Those that went out together were sent at the same time, and only the first row of
            // all has the connecting.
            assert_eq!(row["start_ns"], rows[number / 5 * 5]["start_ns"]);
            assert_eq!(row["connect_ns"].is_empty(), number > 0);
        }
    }
}

#[test]
fn what_is_lost_with_a_connection_has_its_rows_too() {
    for driver in drivers() {
        let server = Server::start("--close-silently-after 3");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let ended = run(&deep(&server, driver, 5, |plan| {
            plan["log"] = json!(file);
            plan["parts"] = true.into();
            plan["stop"]["total_requests"] = 20.into();
        }));
        let totals = &ended.finished()["totals"];
        assert_counts(totals, &json!({"sent": 20, "completed": 12, "failed": 8}));
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 21, "{text}");
        // Closed with requests unread, a connection is reset or ends.
        let lost = |line: &&str| line.contains("premature_close") || line.contains(",read,");
        assert_eq!(text.lines().filter(lost).count(), 8, "{text}");
    }
}
