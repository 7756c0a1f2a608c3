//! Faults that a plan injects: each does what its name says, and the output of the run names them.

mod run_support;

use run_support::{Ended, HELLO, Server, assert_counts, plan, run};
use serde_json::{Value, json};

fn with(faults: &Value, server: &Server, edit: impl FnOnce(&mut Value)) -> Ended {
    run(&plan(server.address, "auto", |plan| {
        plan["injected_faults"] = faults.clone();
        edit(plan);
    }))
}

#[test]
fn a_run_names_its_faults_at_both_ends_and_one_without_says_so() {
    let server = Server::answering(HELLO);
    for faults in [json!([]), json!(["hidden_retries", "late_timers"])] {
        let ended = with(&faults, &server, |plan| {
            plan["stop"]["total_requests"] = 1.into();
        });
        assert_eq!(ended.finished()["injected_faults"], faults);
        assert_eq!(ended.all("ready")[0]["injected_faults"], faults);
    }
}

#[test]
fn hidden_retries_make_lost_requests_disappear() {
    let server = Server::start(|peer| {
        while peer.request().is_some() {
            if peer.number == 0 {
                return;
            }
            peer.send(HELLO);
        }
    });
    let lossy = |faults: Value| {
        with(&faults, &server, |plan| {
            plan["stop"]["total_requests"] = 3.into();
        })
    };
    let hiding = lossy(json!(["hidden_retries"]));
    let counts = json!({"sent": 3, "completed": 3, "failed": 0, "connections_opened": 2});
    assert_counts(&hiding.finished()["totals"], &counts);
    assert_eq!(server.request_count(), 4);
}

#[test]
fn one_user_in_ten_vanishes_and_is_still_counted() {
    let server = Server::answering(HELLO);
    let ended = with(&json!(["vanishing_users"]), &server, |plan| {
        plan["load"]["users"] = 20.into();
        plan["stop"] = json!({"iterations_per_user": 3, "after_ms": 3000});
    });
    let finished = ended.finished();
    assert_eq!(finished["reason"], "duration");
    assert_counts(
        &finished["totals"],
        &json!({"completed": 18 * 3 + 2, "users": 2}),
    );
}

#[test]
fn arrivals_asked_for_as_poisson_come_evenly() {
    let server = Server::answering(HELLO);
    let ended = with(&json!(["even_arrivals"]), &server, |plan| {
        let phases = json!([{"duration_ms": 500, "from_per_s": 200, "to_per_s": 200}]);
        plan["load"] =
            json!({"model": "open", "arrivals": "poisson", "phases": phases, "max_users": 100});
        plan["stop"] = json!({});
    });
    // A Poisson process draws exactly this many in one seed of twenty-five.
    assert_counts(
        &ended.finished()["totals"],
        &json!({"offered": 100, "sent": 100}),
    );
    assert!(ended.finished()["window"]["arrival_gaps_ks"].is_f64());
}

#[test]
fn timers_fire_at_least_20_ms_late() {
    let server = Server::answering(HELLO);
    let ended = with(&json!(["late_timers"]), &server, |plan| {
        plan["load"]["think"] = json!({"kind": "constant", "ms": 1});
        plan["stop"]["total_requests"] = 4.into();
    });
    let totals = &ended.finished()["window"];
    let late_s = totals["think_actual_sum_s"].as_f64().unwrap()
        - totals["think_drawn_sum_s"].as_f64().unwrap();
    assert!(
        totals["think_count"] == 3 && late_s >= 3.0 * 0.02,
        "{totals}"
    );
}

#[test]
fn a_fault_that_would_change_nothing_is_refused() {
    let server = Server::answering(HELLO);
    let refused = |faults: Value, edit: fn(&mut Value)| {
        let ended = with(&faults, &server, edit);
        assert_eq!(ended.code, Some(2));
        ended.stderr
    };
    let uring = refused(json!(["late_timers"]), |plan| {
        plan["driver"] = "io_uring".into()
    });
    assert!(uring.contains("expected epoll or auto"), "{uring}");
    let tls = refused(json!(["late_timers"]), |plan| {
        plan["target"]["url"] = "https://127.0.0.1:1".into();
    });
    assert!(tls.contains("expected http"), "{tls}");
    let closed = refused(json!(["even_arrivals"]), |_| ());
    assert!(closed.contains("Poisson arrivals"), "{closed}");
    let unknown = refused(json!(["late-timers"]), |_| ());
    assert!(unknown.contains("late_timers"), "{unknown}");
}

#[test]
fn one_thread_stands_still_and_its_own_figures_say_so() {
    let server = Server::answering(HELLO);
    let ended = with(&json!(["stalled_thread"]), &server, |plan| {
        plan["threads"]["cpus"] = json!([0, 0]);
        plan["threads"]["pin"] = false.into();
        plan["load"]["users"] = 8.into();
        plan["load"]["think"] = json!({"kind": "constant", "ms": 1});
        plan["stop"] = json!({"after_ms": 2500});
    });
    let threads = &ended.finished()["window"]["threads"];
    // A little over 50 ms each time; what the host adds is not the point.
    let stood_ms = |thread: usize| threads[thread]["loop_lag_max_ns"].as_f64().unwrap() / 1e6;
    assert!(stood_ms(0) >= 50.0, "{threads}");
    let gaps = threads[0]["gaps"].as_array().unwrap();
    let long = gaps
        .iter()
        .filter(|gap| gap["duration_ms"].as_f64().unwrap() >= 50.0);
    assert!(long.count() >= 1, "{threads}");
    for thread in 0..2 {
        let of = |key: &str| &threads[thread][key];
        if of("run_delay_s").is_null() {
            eprintln!("not asserted: this kernel shows no schedstat");
            continue;
        }
        assert!(of("run_delay_s").as_f64().unwrap() >= 0.0);
        assert!(of("timeslices").as_u64().unwrap() > 10, "{threads}");
    }
}

#[test]
fn what_came_while_a_thread_stood_still_lay_in_its_socket() {
    let server = Server::answering(HELLO);
    let ended = with(&json!(["stalled_thread"]), &server, |plan| {
        plan["threads"]["cpus"] = json!([0, 0]);
        plan["threads"]["pin"] = false.into();
        // One of each thread, so that it is its response that nobody looks at.
        plan["load"]["users"] = 2.into();
        plan["stop"] = json!({"after_ms": 2500});
    });
    let thread = &ended.finished()["window"]["threads"][0];
    assert!(
        thread["receive_delay_max_ns"].as_u64().unwrap() >= 49_000_000,
        "{thread}"
    );
}
