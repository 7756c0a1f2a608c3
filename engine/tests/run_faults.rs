//! What the machine refuses, and what breaks from outside: each ends in a counted error and a
//! finished report. On both drivers.

mod run_support;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use run_support::{Engine, HELLO, Server, assert_counts, drivers, plan};
use serde_json::{Value, json};

/// `prony-engine serve`; it is killed when it is dropped.
struct Target {
    child: Child,
    address: SocketAddr,
}

impl Target {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_prony-engine"))
            .args(["serve", "--stdin-guard"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let address = listening["address"].as_str().unwrap().parse().unwrap();
        Self { child, address }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(totals: &Value, key: &str) -> u64 {
    totals[key].as_u64().unwrap()
}

#[test]
fn too_few_descriptors_are_counted_with_epoll_and_no_bound_with_io_uring() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 60.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 10});
            plan["stop"]["after_ms"] = 1_500.into(); // by then all users have tried, also on a busy host
        });
        let ended = Engine::start_with_descriptors(&plan, 40).end();
        let totals = &ended.finished()["totals"];
        assert!(count(totals, "completed") > 0, "{totals}");
        if driver == "io_uring" {
            assert_counts(
                totals,
                &json!({"failed": 0, "emfile": 0, "connections_opened": 60, "users": 60}),
            );
            continue;
        }
        let emfile = count(totals, "emfile");
        assert!(emfile > 0, "{totals}");
        assert!((1..=40).contains(&count(totals, "connections_opened")));
        assert_counts(
            totals,
            &json!({"failed": emfile, "errors": {"descriptors": emfile}}),
        );
    }
}

#[test]
fn very_many_users_without_descriptors_back_off_and_finish() {
    let target = Target::start();
    let plan = plan(target.address, "epoll", |plan| {
        plan["load"]["users"] = 25_000.into();
        plan["load"]["think"] = json!({"kind": "constant", "ms": 500});
        plan["stop"]["after_ms"] = 6_000.into();
    });
    let ended = Engine::start_with_descriptors(&plan, 1_000).end();
    let finished = ended.finished();
    assert_eq!(finished["reason"], "duration");
    let totals = &finished["totals"];
    let emfile = count(totals, "emfile");
    assert!(emfile >= 24_000, "{totals}");
    // Each user fails at most this often: its waits double from 10 ms to a second.
    assert!(emfile <= 25_000 * 13, "{totals}");
    assert!((1..1_000).contains(&count(totals, "connections_opened")));
    assert_counts(
        totals,
        &json!({"users": 25_000, "failed": emfile, "errors": {"descriptors": emfile}}),
    );
}

#[test]
fn too_few_ports_are_counted_and_the_others_go_on() {
    let own_network =
        "ip link set lo up && echo 40000 40019 > /proc/sys/net/ipv4/ip_local_port_range";
    let possible = Command::new("unshare")
        .args(["-n", "sh", "-c", own_network])
        .output()
        .is_ok_and(|output| output.status.success());
    if !possible {
        println!("not tested here: a network namespace of one's own needs root, unshare and ip");
        return;
    }
    let folder = std::env::temp_dir().join(format!("prony-ports-{}", std::process::id()));
    for driver in drivers() {
        let listening = folder.with_extension(driver);
        let script = format!(
            "exec unshare -n sh -c '{own_network}; \"$0\" serve --listen 127.0.0.1:8080 > {} & server=$!; \
             until [ -s {} ]; do sleep 0.02; done; \"$0\" run; code=$?; kill $server; exit $code' \"$0\"",
            listening.display(),
            listening.display()
        );
        let plan = plan("127.0.0.1:8080".parse().unwrap(), driver, |plan| {
            plan["load"]["users"] = 60.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 20});
            plan["stop"]["after_ms"] = 1_500.into();
        });
        let ended = Engine::start_in_shell(&plan, &script).end();
        std::fs::remove_file(listening).unwrap();
        let totals = &ended.finished()["totals"];
        let refused = count(totals, "eaddrnotavail");
        assert!((40..=60 * 9).contains(&refused), "{totals}");
        assert!(count(totals, "completed") > 0, "{totals}");
        // One port may still be held by the engine's own probe.
        assert!((15..=20).contains(&count(totals, "connections_opened")));
        assert_counts(
            totals,
            &json!({"failed": refused, "errors": {"address_unavailable": refused}}),
        );
    }
}

#[test]
fn more_source_addresses_are_more_ports() {
    for driver in drivers() {
        let target = Target::start();
        let plan = plan(target.address, driver, |plan| {
            plan["target"]["source_addresses"] = "127.0.7.1-127.0.7.3".into();
            plan["load"]["users"] = 9.into();
            plan["stop"] = json!({"total_requests": 90});
        });
        let ended = Engine::start(&plan).end();
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 90, "failed": 0, "connections_opened": 9}),
        );
    }
}

#[test]
fn connections_come_from_the_sources_in_turn() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            let from = peer.stream.peer_addr().unwrap().ip().to_string();
            while peer.request().is_some() {
                peer.send(&format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{from}",
                    from.len()
                ));
            }
        });
        let plan = plan(server.address, driver, |plan| {
            plan["target"]["source_addresses"] = json!(["127.0.7.1", "127.0.70.2", "127.0.170.3"]);
            plan["load"]["users"] = 6.into();
            plan["stop"] = json!({"iterations_per_user": 1});
        });
        let totals = Engine::start(&plan).end().finished()["totals"].clone();
        let mut lengths: Vec<(u64, u64)> = totals["answers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|response| (count(response, "body_bytes"), count(response, "count")))
            .collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [(9, 2), (10, 2), (11, 2)], "{totals}");
    }
}

/// As a user who may lock no memory; None when that cannot be arranged here.
fn without_locked_memory(plan: &Value, limit_kib: u32) -> Option<Engine> {
    let script = format!(
        "ulimit -l {limit_kib}; exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\""
    );
    let possible = Command::new("sh")
        .args([
            "-c",
            &format!("{script} probe"),
            env!("CARGO_BIN_EXE_prony-engine"),
        ])
        .output()
        .is_ok_and(|output| output.status.success());
    possible.then(|| Engine::start_in_shell(plan, &format!("{script} run")))
}

#[test]
fn a_limit_of_locked_memory_is_no_hang() {
    let target = Target::start();
    for limit_kib in [0, 64, 512] {
        for driver in ["auto", "io_uring", "epoll"] {
            let plan = plan(target.address, driver, |plan| {
                plan["load"]["users"] = 5_000.into();
                plan["load"]["think"] = json!({"kind": "constant", "ms": 1000});
                plan["stop"]["after_ms"] = 200.into();
            });
            let Some(engine) = without_locked_memory(&plan, limit_kib) else {
                println!(
                    "not tested here: to become a user without rights needs root, setpriv and a readable engine"
                );
                return;
            };
            let ended = engine.end();
            match ended.code {
                Some(0) => {
                    let ready = ended.all("ready")[0];
                    let reason = ready["driver_reason"].as_str().unwrap();
                    if driver == "auto" && ready["driver"] == "epoll" {
                        assert!(
                            reason.starts_with("io_uring does not work on this host"),
                            "{reason}"
                        );
                    }
                    assert_eq!(ended.finished()["reason"], "duration");
                }
                // Asked for by name and not to be had.
                Some(2) => {
                    assert_eq!(driver, "io_uring", "{}", ended.stderr);
                    assert!(
                        ended.stderr.contains("use epoll or auto"),
                        "{}",
                        ended.stderr
                    );
                }
                // Enough for the probe and not for all users: said, with what to do.
                Some(4) => {
                    assert_ne!(driver, "epoll", "{}", ended.stderr);
                    assert!(
                        ended.stderr.contains("(ulimit -l) or use epoll"),
                        "{}",
                        ended.stderr
                    );
                }
                other => panic!("{driver}, {limit_kib} KiB: {other:?}: {}", ended.stderr),
            }
        }
    }
}

#[test]
fn a_target_that_is_killed_is_counted_and_the_run_finishes() {
    for driver in drivers() {
        let mut target = Target::start();
        let plan = plan(target.address, driver, |plan| {
            plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            plan["load"]["users"] = 20.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 1});
            plan["stop"]["after_ms"] = 3_000.into();
        });
        let mut engine = Engine::start(&plan);
        while engine.wait_for("interval")["completed"] == 0 {}
        target.kill();
        let ended = engine.end();
        let finished = ended.finished();
        assert_eq!(finished["reason"], "duration");
        let totals = &finished["totals"];
        let errors = totals["errors"].as_object().unwrap();
        let known = [
            "connect_refused",
            "connect_other",
            "premature_close",
            "read",
            "write",
        ];
        assert!(
            errors.keys().all(|kind| known.contains(&kind.as_str())),
            "{totals}"
        );
        let refused = errors["connect_refused"].as_u64().unwrap();
        assert!((20..=20 * 11).contains(&refused), "{totals}");
        assert_eq!(totals["users"], 20);
    }
}

#[test]
fn a_full_stdout_ends_the_run_and_says_so() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["after_ms"] = 20_000.into();
        });
        let ended = Engine::start_in_shell(&plan, "exec \"$0\" run > /dev/full").end();
        assert_eq!(ended.code, Some(4), "{}", ended.stderr);
        assert!(ended.stderr.contains("stdout"), "{}", ended.stderr);
    }
}

#[test]
fn stdin_that_closes_during_the_ramp_ends_the_run() {
    for driver in drivers() {
        let server = Server::answering(HELLO);
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 2_000.into();
            plan["load"]["ramp_up_ms"] = 20_000.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 5_000});
        });
        let mut engine = Engine::start(&plan);
        engine.wait_for("interval");
        std::thread::sleep(Duration::from_millis(20));
        engine.close_stdin();
        let ended = engine.end();
        assert_eq!(ended.finished()["reason"], "stdin_closed");
    }
}
