//! The time of users, accounted for wholly: residence, think times, connecting, the client's own
//! time and back-off are the whole life of a user, whatever the plan. Each simulated run is held
//! against that and against the integral of what is in flight ([`Recorded::must_add_up`]).

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn connecting(connect: Service, service: Service, edit: impl FnOnce(&mut Value)) -> Recorded {
    CONNECT.set(connect);
    let recorded = simulate(service, (100, 900), |plan| {
        plan["connection"] = json!({"max_requests": 1});
        edit(plan);
    });
    CONNECT.set(|at_ns| at_ns + CONNECT_NS);
    recorded
}

#[test]
fn a_connection_for_each_request_is_user_time_and_response_time() {
    let slow: Service = |at_ns| at_ns + 3 * MS;
    let recorded = connecting(slow, |sent_ns| sent_ns + 7 * MS, |_| {});
    assert_eq!(recorded.counters.completed, 4 * 80);
    assert_eq!(recorded.spent(LifePart::Connect), 4 * 80 * 3 * MS);
    assert_eq!(recorded.spent(LifePart::Cycle), 4 * 80 * 7 * MS);
    let times = recorded.opened.response_time(&recorded.service_time);
    let times = times.unwrap();
    assert_eq!((times.count(), recorded.service_time.count()), (320, 320));
    let within = |ns: u64, ms: u64| ns.abs_diff(ms * MS) <= ms * MS / 1000;
    assert!(within(times.min_ns().unwrap(), 10) && within(times.max_ns().unwrap(), 10));
    assert!(within(recorded.service_time.max_ns().unwrap(), 7));
}

#[test]
fn without_a_connection_opened_in_the_window_there_is_no_response_time() {
    let recorded = simulate(|sent_ns| sent_ns + 7 * MS, (100, 900), |_| {});
    let times = recorded.opened.response_time(&recorded.service_time);
    assert!(times.is_none());
}

#[test]
fn a_lost_syn_is_in_the_response_time_of_its_step_and_not_in_a_service_time() {
    // The first SYN of the attempts from 450 to 460 ms is lost; each user makes one of them.
    let lossy: Service = |at_ns| match at_ns {
        450_000_000..460_000_000 => at_ns + 300 * MS,
        _ => at_ns + MS,
    };
    let recorded = connecting(
        lossy,
        |sent_ns| sent_ns + 9 * MS,
        |plan| {
            plan["scenarios"] =
                json!([{"steps": [{"path": "/a", "name": "a"}, {"path": "/b", "name": "b"}]}]);
        },
    );
    let above_300_ms = |durations: &Durations| {
        let histogram = durations.filled().unwrap();
        histogram.count_between(300 * MS, u64::MAX)
    };
    assert_eq!(above_300_ms(&recorded.service_time), 0);
    let times = recorded.opened.response_time(&recorded.service_time);
    assert_eq!(above_300_ms(&times.unwrap()), 4);
    let of_steps = recorded.steps.iter().map(|step| {
        let times = step.opened.response_time(&step.service_time).unwrap();
        assert_eq!(times.count(), step.completed);
        above_300_ms(&times)
    });
    assert_eq!(of_steps.sum::<u64>(), 4);
    // All users wait for their connections together: nothing completes meanwhile.
    let found = recorded.gaps.finish();
    let (gaps, total) = (found.longest, found.total);
    let gap = gaps[0];
    assert_eq!((total, gap.in_flight), (1, 4));
    let (from_ns, to_ns) = (gap.from_ns - START_NS, gap.to_ns - START_NS);
    assert_eq!(to_ns - from_ns, 309 * MS, "{from_ns} to {to_ns}");
}

#[test]
fn an_attempt_to_connect_that_times_out_keeps_its_time() {
    let never: Service = |at_ns| match at_ns {
        ..300_000_000 => at_ns + MS,
        _ => u64::MAX / 2,
    };
    let recorded = connecting(
        never,
        |sent_ns| sent_ns + 9 * MS,
        |plan| plan["timeouts"] = json!({"connect_ms": 200, "request_ms": 1000}),
    );
    // Begun at 300 ms, given up at 500; after 10 ms again, given up at 710; then after 20 ms.
    assert_eq!(recorded.counters.failed, 4 * 2);
    let times = recorded.opened.response_time(&recorded.service_time);
    let times = times.unwrap();
    assert_eq!(times.count(), recorded.counters.completed + 4 * 2);
    assert!(times.max_ns().unwrap() >= 200 * MS);
    let back_off_ns = recorded.spent(LifePart::BackOff);
    assert!(
        back_off_ns.abs_diff(4 * 30 * MS) <= 4 * 2 * 2048,
        "{back_off_ns}"
    );
    // Nothing is asked while users back off: three gaps, not one.
    assert_eq!(recorded.gaps.finish().total, 3);
}

#[test]
fn the_clients_own_time_before_a_send_is_turn_around() {
    // 64 responses every 10 ms; each send takes the client a microsecond, so the last user waits for 63.
    SEND_NS.set(1_000);
    let together: Service = |sent_ns| sent_ns / (10 * MS) * (10 * MS) + 10 * MS;
    let recorded = simulate(together, (105, 905), |plan| {
        plan["load"]["users"] = 64.into();
    });
    SEND_NS.set(0);
    let of_a_batch_ns: u64 = (0..64).map(|before| before * 1_000).sum();
    let turnaround = &recorded.counters.turnaround;
    assert_eq!(turnaround.count(), recorded.counters.sent);
    assert_eq!(
        recorded.counters.turnaround_ns,
        u128::from(80 * of_a_batch_ns)
    );
    assert_eq!(recorded.spent(LifePart::Turnaround), 80 * of_a_batch_ns);
    assert!(turnaround.max_ns().unwrap().abs_diff(63_000) < 700);
}

#[test]
fn turn_around_is_clipped_at_the_edges_of_the_window() {
    // All are answered at 100 ms, where the window opens after 20 µs: 20 of 64 were sent before.
    SEND_NS.set(1_000);
    let service: Service = |sent_ns| {
        if sent_ns < 50 * MS {
            100 * MS - 20_000
        } else {
            u64::MAX / 2
        }
    };
    let recorded = simulate(service, (100, 900), |plan| {
        plan["load"]["users"] = 64.into();
    });
    SEND_NS.set(0);
    let within_ns = |waited_ns: u64| waited_ns.saturating_sub(20_000);
    let clipped_ns: u64 = (0..64).map(|before| within_ns(before * 1_000)).sum();
    let spent_ns = recorded.spent(LifePart::Turnaround);
    // Sends that straddle the edge are put before it, in groups of 16.
    assert!(spent_ns.abs_diff(clipped_ns) <= 16 * 16_000, "{spent_ns}");
    assert!(spent_ns > 0 && recorded.edges.in_flight_age_open_ns > 0);
}

#[test]
fn a_freeze_over_the_end_of_the_window_is_in_the_ages_of_what_is_in_flight() {
    // 10 users and a server that is silent from 880 to 1000 ms; the window ends at 900 ms.
    let service: Service = |sent_ns| match sent_ns {
        880_000_000..1_000_000_000 => 1000 * MS,
        _ => sent_ns + 5 * MS,
    };
    let recorded = simulate(service, (100, 900), |plan| {
        plan["load"]["users"] = 10.into();
    });
    let age_ns = recorded.edges.in_flight_age_close_ns;
    assert_eq!(age_ns, i128::from(10 * 19 * MS));
}

#[test]
fn a_window_that_is_closed_late_is_told_of_one_instant() {
    // The command is for 590 ms and comes at 600, where a row has ended: so does the window.
    let at_ns = START_NS + 590 * MS;
    let command = WorkerCommand::CloseWindow { id: 1, at_ns };
    COMMAND.set(Some((600 * MS, command)));
    let recorded = simulate(
        |sent_ns| sent_ns + 7 * MS,
        (100, 900),
        |plan| plan["load"]["ramp_up_ms"] = 8.into(),
    );
    let near = |ns: u64, expected_ns: u64| ns.abs_diff(expected_ns) <= 4 * 2048;
    let cycle_ns = recorded.spent(LifePart::Cycle);
    assert!(near(cycle_ns, 4 * 500 * MS), "{cycle_ns}");
    // Sent at 593, 595, 596 and 598 ms.
    let age_ns = recorded.edges.in_flight_age_close_ns as u64;
    assert!(near(age_ns, (7 + 5 + 4 + 2) * MS), "{age_ns}");
}

#[test]
fn pauses_of_iterations_that_send_nothing_are_user_time() {
    let recorded = simulate(
        |sent_ns| sent_ns + 5 * MS,
        (100, 900),
        |plan| {
            plan["scenarios"] = json!([{"steps": [
                {"path": "/"}, {"pause": {"kind": "constant", "ms": 20}},
            ]}]);
        },
    );
    assert_eq!(recorded.spent(LifePart::Cycle), 4 * 800 * MS);
}

std::thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// From 10 µs to 40 ms, seldom never; another for each instant and seed.
fn erratic(at_ns: u64) -> u64 {
    let mut bits = at_ns ^ SEED.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    match bits % 64 {
        0 => u64::MAX / 2,
        _ => at_ns + 10_000 + bits % (40 * MS) / (1 + bits % 97),
    }
}

fn sometimes_refused(at_ns: u64) -> Option<i32> {
    erratic(at_ns ^ 1)
        .is_multiple_of(11)
        .then_some(libc::ECONNREFUSED)
}

fn think() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"kind": "none"})),
        Just(json!({"kind": "constant", "ms": 0.003})),
        Just(json!({"kind": "exponential", "mean_ms": 5})),
    ]
}

fn load() -> impl Strategy<Value = Value> {
    let closed = (1u64..40, 0u64..300, 0u64..300, think()).prop_map(|(users, up, down, think)| {
        json!({"model": "closed", "users": users, "ramp_up_ms": up, "ramp_down_ms": down, "think": think})
    });
    let open = (1u64..400, 1u64..40, any::<bool>(), think()).prop_map(|(per_s, most, walks, think)| {
        json!({"model": "open", "arrivals": "poisson", "max_users": most, "connections": most / 2,
            "session": if walks { "user" } else { "request" }, "think": if walks { think } else { json!({"kind": "none"}) },
            "phases": [{"duration_ms": 900, "from_per_s": per_s, "to_per_s": per_s}]})
    });
    prop_oneof![closed, open]
}

fn step() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({"path": "/"})),
        1 => Just(json!({"pause": {"kind": "constant", "ms": 7}})),
        1 => Just(json!({"share": {"percent": 50}, "steps": [{"path": "/b"}]})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the plan and the server do, no moment of a user is counted twice or lost.
    #[test]
    fn the_parts_of_users_lives_are_their_lives(
        load in load(), steps in vec(step(), 1..4), send_ns in 0u64..3_000, seed: u64,
        most in prop_oneof![Just(0u64), 1u64..4], pipeline in 1u64..4, refuses: bool,
        window in (0u64..500, 501u64..1000), iterations in prop_oneof![Just(0u64), 1u64..30],
    ) {
        SEED.set(seed);
        SEND_NS.set(send_ns);
        CONNECT.set(erratic);
        REFUSAL.set(if refuses { sometimes_refused } else { |_| None });
        let open = load["model"] == "open";
        let alone = open && load["session"] == "request";
        let mut all = vec![json!({"path": "/first"})];
        all.extend(steps.into_iter().filter(|_| !alone));
        // The identities are asserted by the simulation itself.
        let recorded = simulate(erratic, window, |plan| {
            plan["load"] = load;
            plan["scenarios"] = json!([{"steps": all}]);
            plan["timeouts"] = json!({"connect_ms": 60, "request_ms": 90});
            plan["connection"] = json!({"pipeline": if open { 1 } else { pipeline }});
            if most > 0 {
                plan["connection"]["max_requests"] = most.into();
            }
            if iterations > 0 && !open {
                plan["stop"]["iterations_per_user"] = iterations.into();
            }
        });
        // One for each piece that goes out.
        prop_assert!(recorded.counters.turnaround.count() <= recorded.counters.sent);
        if pipeline == 1 || open {
            prop_assert_eq!(recorded.counters.turnaround.count(), recorded.counters.sent);
        }
        SEND_NS.set(0);
        CONNECT.set(|at_ns| at_ns + CONNECT_NS);
        REFUSAL.set(|_| None);
    }
}
