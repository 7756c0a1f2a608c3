//! Branches that users walk side by side: what they take, what they record, and how they end.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

fn step(name: &str) -> Value {
    json!({"name": name, "path": format!("/{name}")})
}

fn parallel(at_once: u32, steps: Value) -> Value {
    json!({"parallel": {"at_once": at_once}, "steps": steps})
}

fn failed(recorded: &Recorded) -> u64 {
    recorded.counters.errors().map(|(_, count)| count).sum()
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
    assert_eq!(recorded.counters.connections_opened, 3);
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
    assert_eq!(recorded.counters.connections_opened, 2);
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
    assert_eq!(recorded.counters.connections_closed_by_client, 9);
    assert_eq!(recorded.counters.connections_opened, 12);
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

#[test]
fn branches_that_send_nothing_hold_nobody_up_and_do_not_spin() {
    let nothing = json!({"if": false, "steps": [step("never")]});
    let block = parallel(3, json!([nothing, nothing, nothing]));
    let recorded = one_user_until(100, json!([block]), |plan| {
        plan["load"]["users"] = 3.into();
        plan["stop"] = json!({"after_ms": 100});
    });
    assert_eq!(recorded.counters.completed, 0);
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
