//! An open load: latency from the intended send, the schedule that is kept or not, and its arrivals.

use super::*;

#[test]
fn a_freeze_of_a_second_gives_every_latency_from_nought_to_a_second() {
    // The case of wrk2: 1000 requests a second, and from 1 s to 2 s the server is silent.
    let service = |sent_ns: u64| {
        if (1000 * MS..2000 * MS).contains(&sent_ns) {
            2000 * MS
        } else {
            sent_ns + MS
        }
    };
    // The first requests of all may wait for their connections.
    let recorded = simulate(service, (100, 2900), |plan| open(plan, "constant", 1000));
    assert_eq!(recorded.counters.offered, 2800);
    assert_eq!(recorded.counters.sent, 2800);
    assert_eq!((recorded.counters.blocked, recorded.edges.overdue), (0, 0));
    let latency = recorded.open_load.latency.filled().unwrap();
    assert_eq!(latency.len(), 2800);
    // Due at 1000, 1001, … 1999 ms: 1000, 999, … 1 ms. The histogram distinguishes three digits.
    for ms in [2, 10, 100, 500, 900, 999] {
        let longer = latency.count_between(ms * MS + MS / 2, u64::MAX);
        assert!(longer.abs_diff(1000 - ms) <= 1, "{longer} above {ms}.5 ms");
    }
    // A closed loop of as many users as it takes saw one long request each.
    let closed = simulate(service, (100, 1900), |plan| {
        plan["stop"]["after_ms"] = 3000.into()
    });
    assert_eq!(
        closed
            .service_time
            .filled()
            .unwrap()
            .count_between(2 * MS, u64::MAX),
        0
    );
    assert_eq!(closed.gaps.finish().total, 1);
}

#[test]
fn sends_are_late_by_no_more_than_a_look() {
    let recorded = simulate(
        |sent_ns| sent_ns + MS,
        (100, 2900),
        |plan| open(plan, "constant", 1000),
    );
    // Polled every 100 ns in the simulation, up to 1024 ns when a timer's tick is waited for.
    assert_eq!(recorded.open_load.send_lag.count(), 2800);
    assert!(recorded.open_load.send_lag.max_ns().unwrap() <= 1200);
    // Latency is the lag and the service time.
    assert!(recorded.open_load.latency.max_ns().unwrap() <= MS + 3000);
}

#[test]
fn the_integral_of_what_is_in_flight_is_littles_product_in_an_open_load_too() {
    let recorded = simulate(
        |sent_ns| sent_ns + 7 * MS,
        (103, 2303),
        |plan| open(plan, "poisson", 500),
    );
    // By the counter of what is in flight, against arrivals x service time; the borders cut
    // requests that cancel on average.
    let by_counter = recorded.counters.in_flight_integral_ns as f64;
    let by_product = recorded.counters.service_time_ns as f64;
    assert!(
        (by_counter / by_product - 1.0).abs() < 0.02,
        "{by_counter} {by_product}"
    );
}

#[test]
fn poisson_arrivals_pass_the_test_at_the_asked_rate_and_constant_ones_would_not() {
    let recorded = simulate(
        |sent_ns| sent_ns + MS,
        (0, 3000),
        |plan| open(plan, "poisson", 1000),
    );
    let (count, distance) = (
        recorded.arrival_gaps.count(),
        recorded.arrival_gaps.distance().unwrap(),
    );
    assert_eq!(count, recorded.counters.sent - 1);
    // Exceeded once in a hundred seeds; this seed is fixed.
    assert!(distance < 1.63 / (count as f64).sqrt(), "{distance}");
}

#[test]
fn a_schedule_that_nobody_can_follow_is_counted_to_the_last_request() {
    // Two places, and a server that never answers: two are sent, one is blocked every 10 ms.
    let recorded = simulate(
        |_| u64::MAX / 2,
        (0, 1000),
        |plan| {
            open(plan, "constant", 100);
            plan["load"]["max_users"] = 2.into();
            plan["load"]["connections"] = 2.into();
        },
    );
    assert_eq!(
        (
            recorded.counters.sent,
            recorded.counters.blocked,
            recorded.counters.offered
        ),
        (2, 98, 100)
    );
}

#[test]
fn a_phase_may_have_fewer_places_than_the_next() {
    // Nobody is ever answered: one is under way in the first 500 ms, then three, then as many as
    // there are places.
    let recorded = simulate(
        |_| u64::MAX / 2,
        (0, 1500),
        |plan| {
            open(plan, "constant", 100);
            plan["load"]["max_users"] = 5.into();
            plan["load"]["connections"] = 5.into();
            let phase = |most: Value| json!({"duration_ms": 500, "from_per_s": 100, "to_per_s": 100, "max_users": most});
            plan["load"]["phases"] = json!([phase(1.into()), phase(3.into()), phase(Value::Null)]);
        },
    );
    let counters = &recorded.counters;
    assert_eq!(
        (counters.sent, counters.blocked, counters.offered),
        (5, 145, 150)
    );
}

#[test]
fn a_pause_that_the_total_leaves_without_a_request_is_not_a_request_unsent() {
    let recorded = simulate(
        |sent_ns| sent_ns + MS,
        (0, 1000),
        |plan| {
            open(plan, "constant", 1000);
            plan["load"]["session"] = "user".into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 50});
            plan["scenarios"] = json!([{"steps": [{"path": "/a"}, {"path": "/b"}]}]);
            plan["stop"]["total_requests"] = 30.into();
        },
    );
    // Thirty users come within 30 ms, and each thinks for 50 before a request that nobody may send.
    assert_eq!((recorded.counters.sent, recorded.edges.overdue), (30, 0));
    assert_eq!(
        (recorded.counters.think_count, recorded.edges.users),
        (0, 30)
    );
}
