//! Responses of every form, and every way a response can go wrong: a counted kind, a finished
//! report, no hang. On both drivers.

mod run_support;

use std::time::Duration;

use run_support::{HELLO, Server, assert_counts, drivers, full_listener, plan, run, totals};
use serde_json::{Value, json};

/// Runs `count` requests of one user against a server.
fn offer(server: &Server, driver: &str, count: u64, edit: impl FnOnce(&mut Value)) -> Value {
    let plan = plan(server.address, driver, |plan| {
        plan["stop"]["total_requests"] = count.into();
        edit(plan);
    });
    totals(&plan)
}

#[test]
fn responses_of_every_framing_are_read() {
    let cases: [(&str, &str, u16, u64); 7] = [
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nA: b\r\n\r\n",
            200,
            6,
        ),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            200,
            2,
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n",
            200,
            0,
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, 0),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
            304,
            0,
        ),
        (
            "GET",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
            200,
            1,
        ),
        (
            "DELETE",
            "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
            500,
            0,
        ),
    ];
    for driver in drivers() {
        for (method, response, status, body_bytes) in cases {
            let server = Server::answering(response);
            let totals = offer(&server, driver, 3, |plan| {
                plan["scenarios"][0]["steps"][0]["method"] = method.into();
            });
            assert_counts(
                &totals,
                &json!({"completed": 3, "failed": 0, "connections_opened": 1,
                    "answers": [{"status": status, "body_bytes": body_bytes, "count": 3}]}),
            );
        }
    }
}

#[test]
fn only_its_bytes_limit_a_head() {
    let many = "Set-Cookie: a=1\r\n".repeat(900);
    let many = format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 2\r\n\r\nok");
    let many: &'static str = Box::leak(many.into_boxed_str());
    for driver in drivers() {
        for response in [
            many,
            "HTTP/1.1 200 OK\r\nX-Long: a\r\n\tb\r\nContent-Length: 2\r\n\r\nok",
        ] {
            let totals = offer(&Server::answering(response), driver, 3, |_| {});
            assert_counts(&totals, &json!({"completed": 3, "failed": 0}));
        }
    }
}

#[test]
fn responses_are_told_one_by_one_where_that_is_asked_for() {
    let found = "HTTP/1.1 404 No\r\nServer: x\r\nContent-Length: 2\r\n\r\nno";
    for driver in drivers() {
        let server = Server::answering(found);
        let plan = plan(server.address, driver, |plan| {
            plan["responses"] = true.into();
            plan["stop"]["total_requests"] = 2.into();
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/", "expect": {"status": [404]}},
                {"path": "/2", "expect": {"status": [200]}}]);
        });
        let finished = run(&plan).finished().clone();
        let told = finished["responses"].as_array().unwrap();
        let head = &found[..found.len() - 2];
        for (place, (response, error)) in told
            .iter()
            .zip([Value::Null, "expect_status".into()])
            .enumerate()
        {
            assert_eq!(response["step_index"], place);
            assert_eq!(response["status"], 404);
            assert_eq!(response["error"], error);
            assert_eq!(response["head"], head);
            assert_eq!(response["body"], "bm8=");
            assert_eq!(response["keep_alive"], true);
        }
        assert_eq!(told.len(), 2);
    }
}

#[test]
fn a_response_until_the_close_is_complete() {
    for driver in drivers() {
        let server = Server::answering_once("HTTP/1.1 200 OK\r\n\r\nuntil the end");
        let totals = offer(&server, driver, 3, |_| {});
        assert_counts(
            &totals,
            &json!({"completed": 3, "failed": 0, "connections_opened": 3, "connections_closed_by_server": 3,
                "answers": [{"status": 200, "body_bytes": 13, "count": 3}]}),
        );
    }
}

#[test]
fn responses_in_many_pieces_and_large_ones_are_read() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            while peer.request().is_some() {
                for byte in HELLO.bytes() {
                    peer.send(&char::from(byte).to_string());
                }
                peer.request();
                peer.send(&format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n{}",
                    "x".repeat(3_000_000)
                ));
            }
        });
        let totals = offer(&server, driver, 6, |plan| {
            plan["scenarios"][0]["steps"][0]["expect"] = json!({"status": [200]});
        });
        assert_counts(
            &totals,
            &json!({"completed": 6, "failed": 0, "answers": [{"status": 200, "body_bytes": 5, "count": 3},
                {"status": 200, "body_bytes": 3_000_000, "count": 3}]}),
        );
    }
}

#[test]
fn a_large_request_is_sent_whole() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let totals = offer(&server, driver, 3, |plan| {
            plan["scenarios"][0]["steps"][0] =
                json!({"method": "POST", "path": "/", "body": "y".repeat(2_000_000)});
        });
        assert_counts(
            &totals,
            &json!({"completed": 3, "failed": 0, "connections_opened": 1}),
        );
        assert!(server.last_request.lock().unwrap().ends_with("yyy"));
        assert!(totals["bytes_sent"].as_u64().unwrap() > 6_000_000);
    }
}

#[test]
fn a_response_before_the_request_is_sent_is_taken_and_the_connection_given_up() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            let mut some = [0; 100];
            std::io::Read::read_exact(&mut peer.stream, &mut some).unwrap();
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            // Reads no further, so that the rest of the request cannot go out. A close with bytes
            // unread would be a reset, which can overtake the response: the client must have it,
            // and have closed, first. Its close shows as an error of the socket, or as hanging up.
            let closed = rustix::event::PollFlags::HUP
                | rustix::event::PollFlags::ERR
                | rustix::event::PollFlags::RDHUP;
            let mut waited = [rustix::event::PollFd::new(
                &peer.stream,
                rustix::event::PollFlags::RDHUP,
            )];
            rustix::event::poll(&mut waited, None).unwrap();
            assert!(waited[0].revents().intersects(closed));
        });
        let totals = offer(&server, driver, 2, |plan| {
            plan["scenarios"][0]["steps"][0] =
                json!({"method": "POST", "path": "/", "body": "y".repeat(30_000_000)});
        });
        assert_counts(
            &totals,
            &json!({"completed": 2, "status": {"413": 2}, "failed": 0, "connections_opened": 2}),
        );
    }
}

#[test]
fn every_broken_response_has_its_kind() {
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(200_000)).leak();
    let cases: [(&'static str, &str); 7] = [
        ("", "premature_close"),
        ("HTTP/1.1 200 OK\r\nContent-Le", "premature_close"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
            "premature_close",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "premature_close",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", "protocol"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
            "protocol",
        ),
        (endless, "header_too_long"),
    ];
    for driver in drivers() {
        for (response, kind) in cases {
            let server = Server::answering_once(response);
            let totals = offer(&server, driver, 3, |_| {});
            assert_counts(
                &totals,
                &json!({"sent": 3, "completed": 0, "failed": 3, "errors": {kind: 3}, "connections_opened": 3}),
            );
        }
    }
}

#[test]
fn more_body_than_declared_is_a_completed_response_and_a_broken_protocol() {
    for driver in drivers() {
        let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world");
        let totals = offer(&server, driver, 3, |_| {});
        assert_counts(
            &totals,
            &json!({"completed": 3, "failed": 3, "errors": {"protocol": 3}, "connections_closed_by_client": 3}),
        );
    }
}

#[test]
fn a_reset_is_a_read_error() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            // Closing with unread bytes in the socket makes a reset.
            let mut one = [0; 1];
            std::io::Read::read_exact(&mut peer.stream, &mut one).unwrap();
        });
        let totals = offer(&server, driver, 3, |_| {});
        assert_counts(
            &totals,
            &json!({"completed": 0, "failed": 3, "errors": {"read": 3}}),
        );
    }
}

#[test]
fn a_server_that_does_not_answer_times_out_and_the_time_is_kept() {
    for driver in drivers() {
        let server = Server::start(|peer| while peer.request().is_some() {});
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["total_requests"] = 2.into();
            plan["timeouts"] = json!({"connect_ms": 1000, "request_ms": 60});
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"sent": 2, "completed": 0, "failed": 2, "errors": {"timeout": 2}, "connections_opened": 2,
                "connections_closed_by_client": 2, "service_time_sum_s": 0.0}),
        );
        let service_time = &ended.finished()["window"]["service_time"];
        assert_eq!(service_time["count"], 2);
        assert!(service_time["min_ns"].as_u64().unwrap() >= 59_900_000);
    }
}

#[test]
fn a_connection_that_is_not_accepted_times_out() {
    let (listener, _filler) = full_listener();
    let address = listener.local_addr().unwrap();
    for driver in drivers() {
        let plan = plan(address, driver, |plan| {
            plan["stop"]["total_requests"] = 2.into();
            plan["timeouts"] = json!({"connect_ms": 50, "request_ms": 1000});
        });
        assert_counts(
            &totals(&plan),
            &json!({"sent": 0, "failed": 2, "errors": {"connect_timeout": 2}, "connect_attempts": 2, "connections_opened": 0}),
        );
    }
}

#[test]
fn what_was_expected_and_did_not_come_is_counted_beside_the_response() {
    const RESPONSE: &str = "HTTP/1.1 200 OK\r\nX-Kind: a\r\nContent-Length: 5\r\n\r\nhello";
    let cases = [
        (
            json!({"status": [200, 201], "headers": [["x-kind", "a"]], "body_equals": "hello", "body_bytes": 5}),
            None,
        ),
        (
            json!({"status": null, "body_contains": ["ell", "he"]}),
            None,
        ),
        (json!({"status": [404]}), Some("expect_status")),
        (json!({"headers": [["x-kind", "b"]]}), Some("expect_header")),
        (
            json!({"body_contains": ["hello", "other"]}),
            Some("expect_body"),
        ),
        (json!({"body_equals": "hell"}), Some("expect_body")),
        (json!({"body_bytes": 6}), Some("expect_body")),
        (
            json!({"status": ["2xx"], "not_status": [204], "body_not_contains": ["x"], "body_not_equals": "hell",
                "body_matches": ["^h.*o$"], "body_not_matches": ["\\d"], "head_matches": ["^HTTP/1.1 200 "], "head_not_matches": ["x-none"], "min_bytes": 5, "max_bytes": 5, "max_ms": 60000}),
            None,
        ),
        (json!({"not_status": ["2xx"]}), Some("expect_status")),
        (json!({"body_not_contains": ["ell"]}), Some("expect_body")),
        (json!({"body_not_equals": "hello"}), Some("expect_body")),
        (json!({"body_matches": ["^e"]}), Some("expect_body")),
        (json!({"body_not_matches": ["l+"]}), Some("expect_body")),
        (json!({"head_matches": ["x-none"]}), Some("expect_header")),
        (
            json!({"head_not_matches": ["^HTTP"]}),
            Some("expect_header"),
        ),
        (json!({"min_bytes": 6}), Some("expect_size")),
        (json!({"max_bytes": 4}), Some("expect_size")),
        (json!({"max_ms": 1e-6}), Some("expect_duration")),
    ];
    for driver in drivers() {
        for (expect, kind) in &cases {
            let server = Server::answering(RESPONSE);
            let totals = offer(&server, driver, 4, |plan| {
                plan["scenarios"][0]["steps"][0]["expect"] = expect.clone();
            });
            let (failed, errors) = match kind {
                None => (0, json!({})),
                Some(kind) => (4, json!({*kind: 4})),
            };
            assert_counts(
                &totals,
                &json!({"completed": 4, "failed": failed, "errors": errors, "connections_opened": 1}),
            );
        }
    }
}

#[test]
fn two_threads_find_the_gap_they_share() {
    for driver in drivers() {
        let start = std::time::Instant::now();
        let server = Server::start(move |peer| {
            while peer.request().is_some() {
                // From 0.1 s to 0.3 s after the start nobody is answered.
                let now = start.elapsed().as_millis() as u64 % 400;
                std::thread::sleep(Duration::from_millis(if (100..300).contains(&now) {
                    300 - now
                } else {
                    1
                }));
                peer.send(HELLO);
            }
        });
        let plan = plan(server.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            plan["load"]["users"] = 4.into();
            plan["stop"]["after_ms"] = 2_000.into(); // five gaps: one is whole, also on a busy host
        });
        let ended = run(&plan);
        let gaps = ended.finished()["window"]["gaps"].as_array().unwrap();
        assert!(
            gaps.iter()
                .any(|gap| gap["duration_ms"].as_f64().unwrap() > 100.0 && gap["in_flight"] == 4),
            "{gaps:?}"
        );
    }
}
