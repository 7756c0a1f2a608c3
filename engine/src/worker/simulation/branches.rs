//! Branches that users walk in parallel: what they take, what they record, and how they end.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::driver::SENDS;
use super::*;

fn step(name: &str) -> Value {
    json!({"name": name, "path": format!("/{name}")})
}

fn parallel(at_once: u32, steps: Value) -> Value {
    json!({"parallel": {"at_once": at_once}, "steps": steps})
}

fn failed(recorded: &Recorded) -> u64 {
    recorded.counters.errors.values().sum()
}

/// One user, for whom a response takes 10 ms.
fn one_user(steps: Value, edit: impl FnOnce(&mut Value)) -> Recorded {
    one_user_until(1000, steps, edit)
}

fn one_user_until(ms: u64, steps: Value, edit: impl FnOnce(&mut Value)) -> Recorded {
    simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, ms),
        |plan| {
            plan["load"]["users"] = 1.into();
            plan["scenarios"] = json!([{"steps": steps}]);
            plan["stop"] = json!({"after_ms": ms, "iterations_per_user": 2});
            edit(plan);
        },
    )
}

#[test]
fn branches_take_the_time_of_the_longest() {
    let block = parallel(8, json!([step("a"), step("b"), step("c")]));
    let recorded = one_user(json!([step("page"), block, step("end")]), |_| {});
    assert_eq!(recorded.counters.completed, 10);
    // The page's connection serves one of the branches.
    assert_eq!(recorded.counters.connections.opened, 3);
    // Connect; page, branches (behind their connections the first time), end; and once more.
    assert_eq!(recorded.finished_ns, Some((1 + 10 + 11 + 10 + 30) * MS));
    // The user is there all the time, once.
    assert_eq!(recorded.counters.users_integral_ns, u128::from(62 * MS));
}

#[test]
fn no_more_of_them_are_under_way_than_may_be() {
    let steps: Vec<Value> = (0..5).map(|n| step(&format!("s{n}"))).collect();
    let recorded = one_user(json!([parallel(2, json!(steps))]), |plan| {
        plan["stop"]["iterations_per_user"] = 1.into();
    });
    assert_eq!(recorded.counters.connections.opened, 2);
    // 1 + 10, then the lanes turn by turn: 11 to 21, 21 to 31.
    assert_eq!(recorded.finished_ns, Some(31 * MS));
}

#[test]
fn a_transaction_around_them_has_the_times_of_all() {
    let block = parallel(3, json!([step("a"), step("b"), step("c")]));
    let around = json!({"transaction": "all", "steps": [block]});
    let recorded = one_user(json!([around]), |_| {});
    // Of its walks, not of its requests.
    let sums = |step: &StepFigures| step.service_time.min_ns().is_some_and(|ns| ns > 29 * MS);
    let longer: Vec<&StepFigures> = recorded.steps.iter().filter(|step| sums(step)).collect();
    assert_eq!(longer.len(), 1);
    assert_eq!(longer[0].service_time.count(), 2);
}

#[test]
fn a_total_of_requests_is_exact() {
    for total in 1..12 {
        let block = parallel(3, json!([step("a"), step("b"), step("c"), step("d")]));
        let recorded = one_user(json!([step("page"), block]), |plan| {
            plan["load"]["users"] = 2.into();
            plan["stop"] = json!({"after_ms": 1000, "total_requests": total});
        });
        assert_eq!(recorded.counters.completed, total);
        assert!(recorded.finished_ns.is_some());
    }
}

#[test]
fn users_who_are_to_go_end_when_their_branches_have() {
    let block = parallel(3, json!([step("a"), step("b"), step("c"), step("d")]));
    let recorded = one_user_until(800, json!([step("page"), block]), |plan| {
        plan["load"] = json!({"model": "closed", "users": 4, "ramp_down_ms": 400});
        plan["stop"] = json!({"after_ms": 800});
    });
    assert_eq!(failed(&recorded), 0);
    // Three users end before the run does, each with its three connections.
    assert_eq!(recorded.counters.connections.closed_by_client, 9);
    assert_eq!(recorded.counters.connections.opened, 12);
}

#[test]
fn a_lane_that_cannot_connect_fails_its_request_and_the_user_goes_on() {
    REFUSAL.set(|at_ns| (at_ns > 5 * MS).then_some(libc::ECONNREFUSED));
    let block = parallel(3, json!([step("a"), step("b"), step("c")]));
    let recorded = one_user(json!([step("page"), block, step("end")]), |plan| {
        plan["stop"]["iterations_per_user"] = 1.into();
    });
    REFUSAL.set(|_| None);
    assert_eq!(recorded.counters.completed, 3);
    assert_eq!(failed(&recorded), 2);
    assert!(recorded.finished_ns.is_some());
}

#[test]
fn what_ends_the_iteration_in_a_branch_ends_it_when_the_others_have_ended() {
    let service = |sent_ns: u64| {
        if (12 * MS..15 * MS).contains(&sent_ns) {
            u64::MAX / 2
        } else {
            sent_ns + 10 * MS
        }
    };
    let ends = |name: &str| json!({"path": format!("/{name}"), "end_on": ["unanswered"]});
    let recorded = simulate(service, (0, 1000), |plan| {
        plan["load"]["users"] = 1.into();
        // The page until 11 ms; one branch is sent then, and the other when its lane is connected.
        let block = parallel(2, json!([ends("a"), ends("b"), ends("c")]));
        plan["scenarios"] = json!([{"steps": [step("page"), block, step("never")]}]);
        plan["timeouts"] = json!({"connect_ms": 100, "request_ms": 50});
        plan["stop"]["iterations_per_user"] = 1.into();
    });
    // The page, a, and c, which was under way on the user's own connection.
    assert_eq!(recorded.counters.completed, 3);
    assert_eq!(failed(&recorded), 1);
    assert!(recorded.finished_ns.is_some());
}

#[test]
fn users_of_an_open_load_walk_branches_too() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 2500),
        |plan| {
            open(plan, "poisson", 100);
            plan["load"]["session"] = "user".into();
            let block = parallel(4, json!([step("a"), step("b"), step("c")]));
            plan["scenarios"] = json!([{"steps": [step("page"), block, step("end")]}]);
        },
    );
    let counters = &recorded.counters;
    assert!(
        counters.sessions_completed >= 150,
        "{}",
        counters.sessions_completed
    );
    assert!(counters.completed >= 5 * counters.sessions_completed);
    assert!(counters.completed <= 5 * counters.sessions_begun);
    assert!(counters.sessions_begun - counters.sessions_completed < 20);
}

/// When each request was sent, by its number among all, in ms after the start.
fn sends(steps: Value, edit: impl FnOnce(&mut Value)) -> Vec<u64> {
    SENDS.with_borrow_mut(Vec::clear);
    one_user(steps, |plan| {
        plan["stop"]["iterations_per_user"] = 1.into();
        edit(plan);
    });
    SENDS.with_borrow_mut(|sends| sends.drain(..).map(|ns| ns / MS).collect())
}

fn pause(ms: u64) -> Value {
    json!({"pause": {"kind": "constant", "ms": ms}})
}

fn thinking(name: &str, ms: u64) -> Value {
    json!({"path": format!("/{name}"), "think": {"kind": "constant", "ms": ms}})
}

#[test]
fn a_pause_or_a_think_time_before_a_block_holds_all_of_it_back() {
    // The page at 1 ms, its response at 11 ms; the lane connects when its time has come.
    let block = parallel(2, json!([step("a"), step("b")]));
    let paused = sends(json!([step("page"), pause(50), block]), |_| {});
    assert_eq!(paused, [1, 61, 62]);
    let thought = sends(json!([thinking("page", 50), block]), |_| {});
    assert_eq!(thought, [1, 61, 62]);
    let every = sends(json!([step("page"), block]), |plan| {
        plan["load"]["think"] = json!({"kind": "constant", "ms": 50});
    });
    assert_eq!(every, [1, 61, 62]);
}

#[test]
fn a_pause_or_a_think_time_at_the_end_of_a_branch_holds_back_what_follows() {
    let with_pause = |name: &str| json!({"group": true, "steps": [step(name), pause(50)]});
    // On the user's own connection from 1 ms to 11 ms, on the lane's from 2 to 12.
    for (block, end) in [
        (json!([with_pause("a"), step("b")]), 61),
        (json!([step("a"), with_pause("b")]), 61),
        (json!([thinking("a", 50), step("b")]), 61),
        (json!([step("a"), thinking("b", 50)]), 61),
        (json!([step("a"), step("b")]), 11),
    ] {
        let sent = sends(json!([parallel(2, block), step("end")]), |_| {});
        assert_eq!(*sent.last().unwrap(), end, "{sent:?}");
    }
}

#[test]
fn what_a_user_counts_it_counts_on_its_lanes_too() {
    let once = json!({"once": true, "steps": [step("once")]});
    let recorded = one_user(json!([parallel(2, json!([step("a"), once]))]), |plan| {
        plan["stop"]["iterations_per_user"] = 4.into();
    });
    assert_eq!(recorded.counters.completed, 5);
    let half = json!({"share": {"percent": 50}, "steps": [step("half")]});
    let recorded = one_user(json!([parallel(2, json!([step("a"), half]))]), |plan| {
        plan["stop"]["iterations_per_user"] = 6.into();
    });
    assert_eq!(recorded.counters.completed, 9);
}

#[test]
fn an_iteration_that_is_broken_off_in_a_branch_sends_nothing_more() {
    let needs = |name: &str| json!({"path": format!("/{name}/${{x}}")});
    let page = json!({"path": "/page", "capture": [{"name": "x", "header": "X-None"}]});
    for at_once in [1, 2] {
        let block = parallel(at_once, json!([needs("a"), needs("b")]));
        let recorded = one_user(json!([page, block, step("never")]), |_| {});
        assert_eq!(recorded.counters.sent, 2, "{at_once}");
    }
}

#[test]
fn a_session_that_ends_with_an_idle_block_is_completed() {
    let nothing = json!({"if": false, "steps": [step("never")]});
    for at_once in [1, 2] {
        let recorded = simulate(
            |sent_ns| sent_ns + 10 * MS,
            (0, 2500),
            |plan| {
                open(plan, "constant", 10);
                plan["load"]["session"] = "user".into();
                let block = parallel(at_once, json!([nothing, nothing]));
                plan["scenarios"] = json!([{"steps": [step("page"), block]}]);
            },
        );
        let counters = &recorded.counters;
        assert!(
            counters.sessions_begun - counters.sessions_completed <= 1,
            "{at_once}"
        );
        assert!(counters.sessions_begun >= 24);
    }
}

#[test]
fn a_transaction_in_a_branch_has_its_own_requests_only() {
    let around = |name: &str| json!({"transaction": name, "steps": [step(name), step(name)]});
    let recorded = one_user(
        json!([parallel(2, json!([around("a"), around("b")]))]),
        |_| {},
    );
    let sums = |step: &&StepFigures| step.service_time.min_ns().is_some_and(|ns| ns > 19 * MS);
    let longest: Vec<Option<u64>> = recorded
        .steps
        .iter()
        .filter(sums)
        .map(|step| step.service_time.max_ns())
        .collect();
    assert_eq!(longest.len(), 2);
    assert!(longest.iter().all(|ns| ns.is_some_and(|ns| ns < 21 * MS)));
}

#[test]
fn attempts_to_connect_back_off_in_blocks_too() {
    REFUSAL.set(|_| Some(libc::ECONNREFUSED));
    let recorded = one_user_until(
        2000,
        json!([parallel(2, json!([step("a"), step("b")]))]),
        |plan| {
            plan["stop"] = json!({"after_ms": 2000});
        },
    );
    REFUSAL.set(|_| None);
    // 10 ms, doubling up to a second, at two places.
    assert!(failed(&recorded) <= 20, "{}", failed(&recorded));
}

#[test]
fn users_whose_time_is_over_do_not_wait_for_pauses_in_branches() {
    let long = json!({"group": true, "steps": [step("b"), pause(4000), step("c")]});
    let recorded = one_user_until(
        2000,
        json!([parallel(3, json!([step("a"), long]))]),
        |plan| {
            plan["load"] = json!({"model": "closed", "populations": [
            {"name": "p", "users": 2, "duration_ms": 500}]});
            plan["stop"] = json!({"after_ms": 2000});
        },
    );
    let ended_ms = recorded.finished_ns.map(|ns| ns / MS);
    assert!(ended_ms.is_some_and(|ms| ms <= 500), "{ended_ms:?}");
}

#[test]
fn branches_that_send_nothing_hold_nobody_up_and_do_not_spin() {
    let nothing = json!({"if": false, "steps": [step("never")]});
    let block = parallel(3, json!([nothing, nothing, nothing]));
    let forever = json!({"loop": {}, "steps": [block]});
    let recorded = one_user_until(100, json!([step("page"), forever]), |plan| {
        plan["load"]["users"] = 3.into();
        plan["stop"] = json!({"after_ms": 100});
    });
    // It got to the end of the run, and one page of each user is all that was sent.
    assert_eq!(recorded.counters.sent, 3);
    let sent = sends(json!([step("page"), block, step("end")]), |_| {});
    assert_eq!(sent, [1, 11]);
}

/// A list of steps that are requests, pauses, and blocks of such; never one parallel block in another.
fn steps(in_branch: bool, depth: u32) -> BoxedStrategy<Vec<Value>> {
    let leaf = prop_oneof![
        4 => Just(json!({"path": "/x"})),
        1 => (0u32..20).prop_map(|ms| json!({"pause": {"kind": "constant", "ms": ms}})),
    ];
    if depth == 0 {
        return proptest::collection::vec(leaf, 1..4).boxed();
    }
    let inside = steps(in_branch, depth - 1);
    let looped = (1u32..4, inside)
        .prop_map(|(count, steps)| json!({"loop": {"count": count}, "steps": steps}));
    let mut either = prop_oneof![3 => leaf, 1 => looped].boxed();
    if !in_branch {
        let side =
            (1u32..5, steps(true, depth - 1)).prop_map(|(n, steps)| parallel(n, steps.into()));
        either = prop_oneof![3 => either, 2 => side].boxed();
    }
    proptest::collection::vec(either, 1..4).boxed()
}

/// Requests of one walk.
fn requests(steps: &[Value]) -> u64 {
    let one = |step: &Value| {
        let inside = step["steps"].as_array().map_or(0, |steps| requests(steps));
        let rounds = step["loop"]["count"].as_u64().unwrap_or(1);
        u64::from(step["path"].is_string()) + rounds * inside
    };
    steps.iter().map(one).sum()
}

#[test]
fn whatever_blocks_hold_each_request_is_sent_once_and_every_moment_is_told_once() {
    let all = (steps(false, 2), 1u64..4, 1u64..4);
    let mut runner = TestRunner::new(Config::with_cases(200));
    let outcome = runner.run(&all, |(steps, users, iterations)| {
        let expected = requests(&steps) * users * iterations;
        prop_assume!(requests(&steps) > 0);
        let recorded = simulate(
            |sent_ns| sent_ns + (sent_ns / 1000 % 7 + 1) * MS,
            (0, 20_000),
            |plan| {
                plan["interval_ms"] = 60_000.into();
                plan["stop"]["after_ms"] = 20_000.into();
                plan["load"]["users"] = users.into();
                plan["scenarios"] = json!([{"steps": steps}]);
                plan["stop"]["iterations_per_user"] = iterations.into();
            },
        );
        prop_assert!(recorded.finished_ns.is_some());
        prop_assert_eq!(recorded.counters.completed, expected);
        Ok(())
    });
    outcome.unwrap();
}
