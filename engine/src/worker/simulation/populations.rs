//! Several groups of users in one run: their starts, ends and iterations are known to the request,
//! on one thread and over several.

use super::*;

/// A timer fires at most a tick (1024 ns) late, and a turn of the loop takes another moment.
const LATE_NS: u64 = 8 * 1024;

fn groups(plan: &mut Value, groups: Value) {
    let names = groups.as_array().unwrap().iter();
    let scenarios: Vec<Value> = names
        .map(|one| json!({"name": one["name"], "steps": [{"path": format!("/{}", one["name"].as_str().unwrap())}]}))
        .collect();
    let named: Vec<Value> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let mut one = one.clone();
            one["scenarios"] = json!([one["name"]]);
            one
        })
        .collect();
    plan["load"] = json!({"model": "closed", "populations": named});
    plan["scenarios"] = scenarios.into();
    plan["stop"] = json!({"after_ms": 1000});
}

/// Answered requests, by population.
fn answered(recorded: &Recorded) -> Vec<u64> {
    recorded.steps.iter().map(|step| step.completed).collect()
}

#[test]
fn each_group_starts_when_it_is_due_and_ends_after_its_iterations_or_its_time() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 1000),
        |plan| {
            groups(
                plan,
                json!([
                    {"name": "counted", "users": 3, "ramp_up_ms": 300, "iterations_per_user": 4},
                    {"name": "timed", "users": 2, "start_ms": 200, "duration_ms": 100},
                ]),
            );
        },
    );
    // Two connect at 201 ms and send until 300 ms: from 201 to 291 ms, the last response at 301 ms.
    assert_eq!(answered(&recorded), [3 * 4, 2 * 10]);
    assert_eq!(recorded.counters.sent, 32);
    assert_eq!(recorded.counters.abandoned, 0);
    // The first group: from 0, 100 and 200 ms for 41 ms each; the second: from 200 to 301 ms.
    let users_ns = u128::from((3 * 41 + 2 * 101) * MS);
    let off = recorded.counters.users_integral_ns.abs_diff(users_ns);
    assert!(off <= u128::from(5 * LATE_NS), "{off}");
    let ended_ns = recorded.finished_ns.unwrap();
    assert!(ended_ns.abs_diff(301 * MS) <= LATE_NS, "{ended_ns}");
}

#[test]
fn those_who_think_or_have_not_started_end_with_their_group_at_once() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 1000),
        |plan| {
            groups(
                plan,
                json!([
                    {"name": "stays", "users": 1},
                    {"name": "thinks", "users": 2, "duration_ms": 100, "think": {"kind": "constant", "ms": 500}},
                    {"name": "late", "users": 4, "ramp_up_ms": 400, "start_ms": 50, "duration_ms": 150},
                ]),
            );
        },
    );
    let [stays, thinks, late] = answered(&recorded)[..] else {
        panic!("three groups");
    };
    assert_eq!((stays, thinks), (99, 2));
    // Of the last group two start, at 50 and 150 ms, and connect in a millisecond: 15 requests from
    // 51 ms, 5 from 151 ms.
    assert_eq!(late, 15 + 5);
    let users_ns = u128::from((1000 + 2 * 100 + (201 - 50) + (201 - 150)) * MS);
    let off = recorded.counters.users_integral_ns.abs_diff(users_ns);
    assert!(off <= u128::from(7 * LATE_NS), "{off}");
    assert_eq!(recorded.finished_ns, None, "one goes on until the stop");
}

#[test]
fn over_threads_each_group_does_exactly_what_it_does_on_one() {
    let edit = |plan: &mut Value| {
        groups(
            plan,
            json!([
                {"name": "a", "users": 5, "ramp_up_ms": 90, "iterations_per_user": 7},
                {"name": "b", "users": 3, "start_ms": 120, "duration_ms": 200},
                {"name": "c", "users": 4, "start_ms": 40, "ramp_up_ms": 60, "ramp_up_steps": 2, "duration_ms": 300,
                    "iterations_per_user": 11},
            ]),
        );
    };
    let service: Service = |sent_ns| sent_ns + 10 * MS;
    let alone = answered(&simulate(service, (0, 1000), edit));
    // From 121 ms every 10 ms until 320 ms; the third group has walked eleven times before its time is over.
    assert_eq!(alone, [5 * 7, 3 * 20, 4 * 11]);
    for threads in [2, 3, 5] {
        let mut together = [0; 3];
        for thread in 0..threads {
            let place = one_of(thread, threads);
            let one = answered(&simulate_thread(place, service, (0, 1000), edit));
            for (sum, count) in together.iter_mut().zip(one) {
                *sum += count;
            }
        }
        assert_eq!(together[..], alone, "over {threads} threads");
    }
}

#[test]
fn a_crowd_that_ends_at_once_is_seen_to_in_portions_and_sends_nothing_more() {
    let recorded = simulate(
        |sent_ns| sent_ns + MS,
        (0, 1000),
        |plan| {
            groups(
                plan,
                json!([
                    {"name": "crowd", "users": 3000, "duration_ms": 100, "think": {"kind": "constant", "ms": 98}},
                    {"name": "stays", "users": 1, "think": {"kind": "constant", "ms": 1}},
                ]),
            );
        },
    );
    // Each of the crowd connects in 1 ms, is answered at 2 ms and would send again at 100 ms.
    assert_eq!(answered(&recorded)[0], 3000);
    assert_eq!(recorded.counters.abandoned, 0);
}
