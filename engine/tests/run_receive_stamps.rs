//! When the kernel took in what the engine reads: a sample of the reads, on both drivers, and nothing
//! where the kernel does not say it. It begins to stamp in the background, so these runs last for
//! some tenths of a second.

mod run_support;
mod serve_support;

use run_support::{HELLO, assert_counts, drivers, plan, run};
use serde_json::{Value, json};
use serve_support::Server;

fn pause() -> Value {
    json!({"kind": "constant", "ms": 15})
}

/// The figures of the only thread.
fn figures(plan: &Value) -> Value {
    let ended = run(plan);
    let finished = ended.finished();
    assert_eq!(finished["totals"]["failed"], 0, "{finished}");
    finished["window"]["threads"][0].clone()
}

fn assert_sampled(thread: &Value) {
    let (reads, stamped) = (
        thread["reads"].as_u64().unwrap(),
        thread["reads_stamped"].as_u64().unwrap(),
    );
    assert!(0 < stamped && stamped <= reads, "{thread}");
    for key in ["receive_delay_p50_ns", "receive_delay_p99_ns"] {
        let at_most = thread["receive_delay_max_ns"].as_u64().unwrap();
        assert!(thread[key].as_u64().unwrap() <= at_most, "{key}: {thread}");
    }
}

fn assert_nothing_known(thread: &Value) {
    assert!(thread["reads"].as_u64().unwrap() > 0, "{thread}");
    assert_eq!(thread["reads_stamped"], 0, "{thread}");
    for key in ["p50", "p99", "max"] {
        assert!(
            thread[format!("receive_delay_{key}_ns")].is_null(),
            "{thread}"
        );
    }
}

#[test]
fn one_connection_in_sixteen_is_stamped_kept_alive_or_not() {
    for driver in drivers() {
        for reuse in ["keep_alive", "per_request"] {
            let server = Server::start("");
            let address = server.address().parse().unwrap();
            let thread = figures(&plan(address, driver, |plan| {
                plan["load"] = json!({"model": "closed", "users": 32, "think": pause()});
                plan["connection"] = json!({"reuse": reuse});
                plan["stop"] = json!({"iterations_per_user": 20});
            }));
            assert_sampled(&thread);
            let stamped = thread["reads_stamped"].as_u64().unwrap();
            // Of two users in 32, each with 20 requests whose responses take a read each, or two
            // where the end of the connection is one.
            assert!(stamped <= 2 * 2 * 20, "{driver}, {reuse}: {thread}");
            assert_eq!(server.stop()["requests"], 32 * 20);
        }
    }
}

#[test]
fn a_response_of_many_buffers_is_read_whole_by_a_stamped_connection() {
    for driver in drivers() {
        let server = Server::start("--body-bytes 1000000");
        let ended = run(&plan(server.address().parse().unwrap(), driver, |plan| {
            plan["load"]["think"] = pause();
            plan["stop"]["total_requests"] = 20.into();
        }));
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 20, "failed": 0,
                "answers": [{"status": 200, "body_bytes": 1_000_000, "count": 20}]}),
        );
        assert_sampled(&ended.finished()["window"]["threads"][0]);
        drop(server);
    }
}

#[test]
fn a_plan_can_leave_the_kernel_alone_and_a_unix_socket_has_no_packets() {
    for driver in drivers() {
        let server = run_support::Server::answering(HELLO);
        let off = plan(server.address, driver, |plan| {
            plan["receive_stamps"] = false.into();
            plan["stop"]["total_requests"] = 20.into();
        });
        assert_nothing_known(&figures(&off));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let server = Server::start_words(&["--unix", path.to_str().unwrap()]);
        let unix = plan("127.0.0.1:1".parse().unwrap(), driver, |plan| {
            plan["target"] = json!({"url": format!("unix:{}", path.display())});
            plan["stop"]["total_requests"] = 20.into();
        });
        assert_nothing_known(&figures(&unix));
        drop(server);
    }
}
