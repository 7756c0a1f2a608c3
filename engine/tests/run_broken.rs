//! Connections that are reset in every state, responses that come too slowly at every place, and
//! handshakes that break: a counted kind, a finished report, no hang. On both drivers. (What the
//! machine refuses is in `run_faults`, wrong certificates in `run_tls`.)

mod run_support;

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use run_support::{HELLO, Peer, Server, drivers, plan, run};
use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

/// From now on the close of this connection is a reset.
fn reset_at_the_end(peer: &Peer) {
    set_socket_linger(&peer.stream, Some(Duration::ZERO)).unwrap();
}

/// Runs to the end and checks that every error is of one of these kinds, and that there are `failed` in all.
fn fails(plan: &Value, kinds: &[&str], what: &str) -> Value {
    let totals = run(plan).finished()["totals"].clone();
    let errors = totals["errors"].as_object().unwrap();
    assert!(
        errors.keys().all(|kind| kinds.contains(&kind.as_str())),
        "{what}: expected {kinds:?}: {totals}"
    );
    let sum: u64 = errors.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(sum > 0, "{what}: {totals}");
    assert_eq!(totals["failed"], sum, "{what}: {totals}");
    totals
}

#[test]
fn a_reset_in_every_state_of_an_exchange_is_counted() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("before the response", "", &["read"]),
        ("in the head", "HTTP/1.1 200 OK\r\nContent-Le", &["read"]),
        (
            "in the body",
            "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhel",
            &["read"],
        ),
        (
            "in a chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            &["read"],
        ),
        (
            "in a body until the close",
            "HTTP/1.1 200 OK\r\n\r\nhel",
            &["read"],
        ),
    ];
    for driver in drivers() {
        for (state, bytes, kinds) in cases {
            let server = Server::start(move |peer| {
                reset_at_the_end(peer);
                if peer.request().is_some() {
                    peer.send(bytes);
                    // The client has read what was sent; a reset would throw away what it has not.
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let plan = plan(server.address, driver, |plan| {
                plan["stop"]["total_requests"] = 3.into();
            });
            let totals = fails(&plan, kinds, &format!("{driver}, {state}"));
            assert_eq!(totals["failed"], 3, "{driver}, {state}: {totals}");
            assert_eq!(totals["completed"], 0);
        }
    }
}

#[test]
fn a_reset_before_or_during_the_request_is_counted() {
    for driver in drivers() {
        let at_once = Server::start(|peer| reset_at_the_end(peer));
        let first = plan(at_once.address, driver, |plan| {
            plan["stop"]["total_requests"] = 5.into();
        });
        let kinds = ["read", "write", "premature_close", "connect_other"];
        let totals = fails(&first, &kinds, &format!("{driver}, at once"));
        assert_eq!(totals["completed"], 0);

        let during = Server::start(|peer| {
            reset_at_the_end(peer);
            let mut some = [0; 1000];
            peer.stream.read_exact(&mut some).unwrap();
        });
        let large = plan(during.address, driver, |plan| {
            plan["stop"]["total_requests"] = 3.into();
            plan["scenarios"][0]["steps"][0] =
                json!({"method": "POST", "path": "/", "body": "y".repeat(20_000_000)});
        });
        // The kernel tells a reset once: where the send learns of it, the receive only sees an end.
        let kinds = ["read", "write", "premature_close"];
        let totals = fails(&large, &kinds, &format!("{driver}, sending"));
        assert_eq!(totals["failed"], 3, "{totals}");
    }
}

#[test]
fn a_reset_between_requests_is_no_error() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            if peer.request().is_some() {
                peer.send(HELLO);
                // By then the client has read it, also on a busy host; it thinks for longer.
                std::thread::sleep(Duration::from_millis(200));
                reset_at_the_end(peer);
            }
        });
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["think"] = json!({"kind": "constant", "ms": 800});
            plan["stop"]["total_requests"] = 3.into();
        });
        let totals = run(&plan).finished()["totals"].clone();
        run_support::assert_counts(
            &totals,
            &json!({"completed": 3, "failed": 0, "connections_opened": 3}),
        );
    }
}

#[test]
fn a_response_that_stops_at_any_place_or_drips_too_slowly_times_out() {
    let cases = [
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\n\r\nhel",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ];
    for driver in drivers() {
        for bytes in cases {
            let server = Server::start(move |peer| {
                while peer.request().is_some() {
                    peer.send(bytes);
                }
            });
            let plan = plan(server.address, driver, |plan| {
                plan["stop"]["total_requests"] = 2.into();
                plan["timeouts"]["request_ms"] = 50.into();
            });
            let totals = fails(&plan, &["timeout"], &format!("{driver}, {bytes:?}"));
            assert_eq!(totals["failed"], 2, "{driver}, {bytes:?}: {totals}");
        }
        let drip = Server::start(|peer| {
            while peer.request().is_some() {
                for byte in HELLO.bytes() {
                    peer.send(&char::from(byte).to_string());
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let plan = plan(drip.address, driver, |plan| {
            plan["stop"]["total_requests"] = 2.into();
            plan["timeouts"]["request_ms"] = 60.into();
        });
        fails(&plan, &["timeout"], &format!("{driver}, drip"));
    }
}

#[test]
fn handshakes_that_break_are_tls_errors_that_say_where() {
    // The first bytes of a record that a server's response would begin with, a record of another
    // kind, and no TLS at all.
    let cases: [(&str, &[u8], bool); 5] = [
        ("reset before a word", b"", true),
        (
            "reset within a record",
            b"\x16\x03\x03\x00\x7a\x02\x00",
            true,
        ),
        ("closed within a record", b"\x16\x03\x03\x00\x7a\x02", false),
        (
            "alert instead of a greeting",
            b"\x15\x03\x03\x00\x02\x02\x28",
            false,
        ),
        ("no record", b"\x00\x01\x02\x03\x04\x05\x06\x07", false),
    ];
    for driver in drivers() {
        for (state, bytes, by_reset) in cases {
            let server = Server::start(move |peer| {
                if by_reset {
                    reset_at_the_end(peer);
                }
                let mut hello = [0; 4096];
                let _ = peer.stream.read(&mut hello);
                let _ = std::io::Write::write_all(&mut peer.stream, bytes);
                std::thread::sleep(Duration::from_millis(10));
            });
            let plan = plan(server.address, driver, |plan| {
                plan["target"] = json!({"url": format!("https://{}", server.address), "tls": {"insecure": true}});
                plan["stop"] = json!({"after_ms": 700});
            });
            let what = format!("{driver}, {state}");
            let totals = fails(&plan, &["tls"], &what);
            let reason = totals["error_reasons"]["tls"].as_str().unwrap();
            assert!(!reason.is_empty(), "{what}");
            assert_eq!(totals["sent"], 0, "{what}: {totals}");
            assert_eq!(totals["tls_handshakes"], 0, "{what}: {totals}");
        }
    }
}

#[test]
fn a_target_that_is_killed_under_an_open_load_leaves_a_finished_report() {
    for driver in drivers() {
        let mut target = Command::new(env!("CARGO_BIN_EXE_prony-engine"))
            .args(["serve", "--stdin-guard"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(target.stdout.take().unwrap()),
            &mut line,
        )
        .unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let address = listening["address"].as_str().unwrap().parse().unwrap();
        let plan = plan(address, driver, |plan| {
            plan["load"] = json!({"model": "open", "arrivals": "constant", "max_users": 64, "connections": 8,
                "phases": [{"duration_ms": 4_000, "from_per_s": 125.0, "to_per_s": 125.0}]});
        });
        let mut engine = run_support::Engine::start(&plan);
        while engine.wait_for("interval")["completed"] == 0 {}
        target.kill().unwrap();
        target.wait().unwrap();
        let ended = engine.end();
        let finished = ended.finished();
        assert_eq!(finished["reason"], "schedule");
        let totals = &finished["totals"];
        let count = |key: &str| totals[key].as_u64().unwrap();
        assert_eq!(count("offered"), 500, "{totals}");
        assert!(totals["errors"]["connect_refused"].as_u64().unwrap() > 0);
        assert!(count("completed") > 0 && count("failed") > 0, "{totals}");
        assert!(
            count("completed") + count("failed") + count("blocked") + count("abandoned")
                >= count("offered") - count("due_unsent"),
            "{totals}"
        );
    }
}

#[test]
fn a_clock_that_jumps_cannot_be_seen_for_only_the_monotonic_one_measures() {
    // The realtime clock is read once per thread before the load and carried on by the monotonic one: for the date
    // of the start that `ready` tells, for `${time}` and `${date}`, and to hold a server's dates against, where users
    // keep cookies or caches. Nothing that is measured knows it but the age of the kernel's receive time stamps, which
    // are of that clock (arrival.rs).
    let mut readers = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let words = ["CLOCK_REALTIME", "SystemTime", "unix_ns()"];
                if words.iter().any(|word| text.contains(word)) {
                    readers.push(path.file_name().unwrap().to_str().unwrap().to_owned());
                }
            }
        }
    }
    readers.sort();
    // worker/mod.rs reads it; the others are told.
    let (start, told) = (
        ["arrival.rs", "start.rs", "mod.rs", "sys.rs"],
        ["cache.rs", "date.rs", "vars.rs"],
    );
    let mut expected = [start.as_slice(), told.as_slice()].concat();
    expected.sort_unstable();
    assert_eq!(readers, expected);
}
