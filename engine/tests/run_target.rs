//! Where requests go and how they are written: several addresses, Unix sockets, HTTP/1.0, the limit
//! of heads. On both drivers, against `prony-engine serve`, whose own counters are believed, and
//! against scripted servers.

mod run_support;
mod serve_support;

use std::net::SocketAddr;

use run_support::{Ended, assert_counts, drivers, plan, refusing, run, totals};
use serde_json::{Value, json};
use serve_support::Server;

/// A plan for these servers, the first of which is that of the URL.
fn spread(servers: &[&Server], driver: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let first: SocketAddr = servers[0].address().parse().unwrap();
    plan(first, driver, |plan| {
        let addresses: Vec<&str> = servers.iter().map(|server| server.address()).collect();
        plan["target"]["addresses"] = json!(addresses);
        edit(plan);
    })
}

/// What each server counted is what the engine says of its address.
fn assert_spread(ended: &Ended, servers: Vec<Server>) -> Vec<(u64, u64)> {
    let ready = ended.all("ready")[0];
    let rows = ended.finished()["totals"]["addresses"].as_array().unwrap();
    let mut counts = Vec::new();
    for (place, server) in servers.into_iter().enumerate() {
        let row = &rows[place];
        assert_eq!(row["address"], server.address());
        assert_eq!(ready["addresses"][place], server.address());
        let served = server.stop();
        assert_eq!(row["sent"], served["requests"], "{row}");
        assert_eq!(row["connections_opened"], served["connections"], "{row}");
        counts.push((
            row["connections_opened"].as_u64().unwrap(),
            row["sent"].as_u64().unwrap(),
        ));
    }
    counts
}

#[test]
fn connections_go_to_the_addresses_in_turn_and_are_counted_for_each() {
    for driver in drivers() {
        let servers = [Server::start(""), Server::start(""), Server::start("")];
        let [a, b, c] = &servers;
        let ended = run(&spread(&[a, b, c], driver, |plan| {
            plan["load"]["users"] = 6.into();
            plan["stop"]["total_requests"] = 600.into();
        }));
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 600, "failed": 0}),
        );
        assert_eq!(ended.all("ready")[0]["transport"], "tcp");
        let window: Vec<&Value> = ended.finished()["window"]["addresses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["connections_opened"])
            .collect();
        assert_eq!(window, [2, 2, 2]);
        let counts = assert_spread(&ended, servers.into());
        assert!(counts.iter().all(|(opened, _)| *opened == 2), "{counts:?}");
        assert_eq!(counts.iter().map(|(_, sent)| sent).sum::<u64>(), 600);
    }
}

#[test]
fn a_user_with_a_connection_per_request_goes_from_address_to_address() {
    for driver in drivers() {
        let servers = [Server::start(""), Server::start("")];
        let [a, b] = &servers;
        let ended = run(&spread(&[a, b], driver, |plan| {
            plan["connection"] = json!({"reuse": "per_request"});
            plan["stop"]["total_requests"] = 9.into();
        }));
        assert_eq!(assert_spread(&ended, servers.into()), [(5, 5), (4, 4)]);
    }
}

#[test]
fn an_address_where_nobody_listens_costs_its_turns_only() {
    for driver in drivers() {
        let server = Server::start("");
        let (_held, gone) = refusing();
        let ended = run(&spread(&[&server], driver, |plan| {
            plan["target"]["addresses"] = json!([gone.to_string(), server.address()]);
            plan["stop"]["total_requests"] = 20.into();
        }));
        let totals = &ended.finished()["totals"];
        assert_counts(
            totals,
            &json!({"completed": 19, "failed": 1, "errors": {"connect_refused": 1}, "connect_attempts": 2}),
        );
        assert_eq!(
            totals["addresses"],
            json!([{"address": gone.to_string(), "connect_attempts": 1, "connections_opened": 0, "sent": 0},
                {"address": server.address(), "connect_attempts": 1, "connections_opened": 1, "sent": 19}])
        );
    }
}

#[test]
fn requests_go_through_a_unix_socket() {
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let url = format!("unix:{}", path.display());
        let through = |edit: fn(&mut Value)| {
            plan("127.0.0.1:1".parse().unwrap(), driver, |plan| {
                plan["target"] = json!({"url": url});
                plan["load"]["users"] = 3.into();
                plan["stop"]["total_requests"] = 90.into();
                edit(plan);
            })
        };
        let server = Server::start_words(&["--unix", path.to_str().unwrap()]);
        for edit in [(|_| ()) as fn(&mut Value), |plan| {
            plan["connection"] = json!({"reuse": "per_request"})
        }] {
            let ended = run(&through(edit));
            let ready = ended.all("ready")[0];
            assert_eq!(
                (&ready["transport"], &ready["addresses"]),
                (&json!("unix"), &json!([url]))
            );
            assert_counts(
                &ended.finished()["totals"],
                &json!({"completed": 90, "failed": 0, "status": {"200": 90}}),
            );
        }
        let served = server.stop();
        assert_eq!(
            (&served["requests"], &served["connections"]),
            (&json!(180), &json!(93))
        );
        // The server has taken its socket away: nobody listens.
        assert_counts(
            &totals(&through(|plan| plan["stop"]["total_requests"] = 2.into())),
            &json!({"sent": 0, "failed": 2, "errors": {"connect_refused": 2}}),
        );
    }
}

#[test]
fn a_unix_socket_has_the_host_localhost_unless_the_step_says_otherwise() {
    use std::io::{Read, Write};
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let heard = std::thread::spawn(move || {
            let mut heard = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut buffer = [0; 4096];
                let length = stream.read(&mut buffer).unwrap();
                heard.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
                stream.write_all(run_support::HELLO.as_bytes()).unwrap();
            }
            heard
        });
        for headers in [json!([]), json!([["Host", "other:1"]])] {
            let ended = totals(&plan("127.0.0.1:1".parse().unwrap(), driver, |plan| {
                plan["target"] = json!({"url": format!("unix:{}", path.display())});
                plan["scenarios"][0]["steps"][0]["headers"] = headers;
                plan["stop"]["total_requests"] = 1.into();
            }));
            assert_counts(&ended, &json!({"completed": 1, "failed": 0}));
        }
        let heard = heard.join().unwrap();
        assert_eq!(heard[0], "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(heard[1], "GET / HTTP/1.1\r\nHost: other:1\r\n\r\n");
    }
}

#[test]
fn http_1_0_keeps_a_connection_by_asking_and_closes_it_by_saying_nothing() {
    for driver in drivers() {
        for (reuse, connections) in [("keep_alive", 1), ("per_request", 5)] {
            let server = Server::start("");
            let address: SocketAddr = server.address().parse().unwrap();
            let totals = totals(&plan(address, driver, |plan| {
                plan["http_version"] = "1.0".into();
                plan["connection"] = json!({"reuse": reuse});
                plan["stop"]["total_requests"] = 5.into();
            }));
            assert_counts(&totals, &json!({"completed": 5, "failed": 0}));
            assert_eq!(server.stop()["connections"], connections);
        }
    }
}

#[test]
fn a_server_of_http_1_0_that_closes_ends_the_response_by_that() {
    for driver in drivers() {
        let server = run_support::Server::answering_once("HTTP/1.0 200 OK\r\n\r\nuntil the end");
        let totals = totals(&plan(server.address, driver, |plan| {
            plan["http_version"] = "1.0".into();
            plan["stop"]["total_requests"] = 3.into();
        }));
        assert_counts(
            &totals,
            &json!({"completed": 3, "failed": 0, "connections_closed_by_server": 3,
                "answers": [{"status": 200, "body_bytes": 13, "count": 3}]}),
        );
        let request = server.last_request.lock().unwrap().clone();
        assert!(request.starts_with("GET / HTTP/1.0\r\n"), "{request}");
        assert!(
            request.contains("\r\nConnection: keep-alive\r\n"),
            "{request}"
        );
    }
}

#[test]
fn a_head_may_be_as_long_as_the_plan_says() {
    let long = |bytes: usize| -> &'static str {
        let padding = "a".repeat(bytes);
        format!("HTTP/1.1 200 OK\r\nX: {padding}\r\nContent-Length: 2\r\n\r\nok").leak()
    };
    let cases = [
        (long(2_000), Some(1_000), false),
        (long(2_000), Some(4_000), true),
        (long(60_000), None, true),
        (long(70_000), None, false),
        (long(200_000), Some(300_000), true),
    ];
    for driver in drivers() {
        for (response, limit, fits) in cases {
            let server = run_support::Server::answering(response);
            let totals = totals(&plan(server.address, driver, |plan| {
                plan["stop"]["total_requests"] = 3.into();
                if let Some(limit) = limit {
                    plan["limits"] = json!({"header_bytes": limit});
                }
            }));
            let expected = if fits {
                json!({"completed": 3, "failed": 0, "connections_opened": 1})
            } else {
                json!({"completed": 0, "failed": 3, "errors": {"header_too_long": 3}})
            };
            assert_counts(&totals, &expected);
        }
    }
}
