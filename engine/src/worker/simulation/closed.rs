//! A closed load: service times, think times, stalls and timeouts, and who is there when.

use super::*;

#[test]
fn a_fixed_service_time_gives_exactly_that() {
    let recorded = simulate(|sent_ns| sent_ns + 5 * MS, (0, 1000), |_| {});
    // Connected at 1 ms, then a response every 5 ms: the 199th at 996 ms.
    assert_eq!(recorded.counters.completed, 4 * 199);
    assert_eq!(recorded.counters.sent, 4 * 200);
    assert_eq!(recorded.service_time.count(), 4 * 199);
    let (min, max) = (
        recorded.service_time.min_ns(),
        recorded.service_time.max_ns(),
    );
    assert!(min.unwrap() > 4_990_000 && max.unwrap() < 5_010_000);
    assert_eq!(
        recorded.counters.service_time_ns,
        u128::from(4 * 199 * 5 * MS)
    );
    assert_eq!(recorded.gaps.finish().total, 0);
    // 99 ms of responses in the first row, 20 responses of each user in the others.
    assert_eq!(recorded.rows[..3], [(0, 76), (1, 80), (2, 80)]);
}

#[test]
fn littles_law_holds_exactly_over_a_window_that_cuts_requests() {
    let recorded = simulate(|sent_ns| sent_ns + 7 * MS, (103, 303), |_| {});
    // Four users, always in flight, over 200 ms: by the counter of what is in flight, and by the
    // clipped cycles.
    assert_eq!(
        recorded.counters.in_flight_integral_ns,
        i128::from(4 * 200 * MS)
    );
    assert_eq!(recorded.spent(LifePart::Cycle), 4 * 200 * MS);
    // Sent at 1, 8, 15 ... ms: at 103 ms for 4 ms, at 303 ms for 1 ms.
    let ages = (
        recorded.edges.in_flight_age_open_ns,
        recorded.edges.in_flight_age_close_ns,
    );
    assert_eq!(ages, (i128::from(4 * 4 * MS), i128::from(4 * MS)));
}

#[test]
fn thinking_belongs_to_the_cycle_and_not_to_what_is_in_flight() {
    let recorded = simulate(
        |sent_ns| sent_ns + 4 * MS,
        (200, 800),
        |plan| plan["load"]["think"] = json!({"kind": "constant", "ms": 6}),
    );
    assert_eq!(recorded.spent(LifePart::Cycle), 4 * 600 * MS);
    let in_flight = recorded.counters.in_flight_integral_ns as f64 / (4 * 600 * MS) as f64;
    assert!((in_flight - 0.4).abs() < 0.01, "{in_flight}");
    // A timer fires at most a tick (1024 ns) late.
    let overshoot = recorded.counters.think_actual_ns - recorded.counters.think_drawn_ns;
    assert!(overshoot <= u128::from(recorded.counters.think_count * 1024));
    assert_eq!(
        recorded.counters.think_drawn_ns,
        u128::from(recorded.counters.think_count * 6 * MS)
    );
}

#[test]
fn a_stall_is_one_gap_of_its_exact_length_even_over_the_ends_of_rows() {
    // Nobody is answered from 250 ms to 420 ms; a row ends at 300 ms and another at 400 ms.
    let service = |sent_ns: u64| {
        let response_ns = sent_ns + 2 * MS;
        if (250 * MS..420 * MS).contains(&response_ns) {
            420 * MS
        } else {
            response_ns
        }
    };
    let recorded = simulate(service, (100, 900), |_| {});
    let found = recorded.gaps.finish();
    let (gaps, total) = (found.longest, found.total);
    assert_eq!(total, 1);
    let gap = gaps[0];
    assert_eq!(
        (gap.from_ns - START_NS, gap.to_ns - START_NS, gap.in_flight),
        (249 * MS, 420 * MS, 4)
    );
}

#[test]
fn a_request_that_times_out_keeps_its_time_and_ends_the_connection() {
    let service = |sent_ns: u64| {
        if sent_ns < 10 * MS {
            u64::MAX / 2
        } else {
            sent_ns + MS
        }
    };
    let recorded = simulate(service, (0, 1000), |plan| {
        plan["timeouts"] = json!({"connect_ms": 100, "request_ms": 50})
    });
    assert_eq!(recorded.counters.errors.values().sum::<u64>(), 4);
    assert_eq!(recorded.counters.connections.opened, 8);
    let longest = recorded.service_time.max_ns().unwrap();
    assert!((50 * MS..51 * MS).contains(&longest), "{longest}");
    assert_eq!(
        recorded.service_time.count(),
        recorded.counters.completed + 4
    );
}

#[test]
fn a_ramp_starts_users_at_even_steps() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 1000),
        |plan| plan["load"]["ramp_up_ms"] = 400.into(),
    );
    // Users start at 0, 100, 200 and 300 ms and connect in one: each is in flight from a
    // millisecond after its start.
    let expected = (999 + 899 + 799 + 699) * MS;
    let off = recorded
        .counters
        .in_flight_integral_ns
        .abs_diff(i128::from(expected));
    assert!(off <= 4 * 1024, "{off}");
}

#[test]
fn users_of_a_closed_load_end_over_the_ramp_down() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 1000),
        |plan| {
            plan["load"]["ramp_down_ms"] = 400.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 10});
        },
    );
    // The last of four ends 300 ms before the first: at 700, 800, 900 and 1000 ms, a request under
    // way being finished.
    let cycle_ns = (700 + 800 + 900 + 1000) * MS;
    let off = recorded.spent(LifePart::Cycle).abs_diff(cycle_ns);
    assert!(off <= 4 * 11 * MS, "{off}");
    assert_eq!(recorded.counters.abandoned, 0);
}

#[test]
fn who_thinks_when_the_total_is_used_up_thinks_until_the_stop() {
    // The stop does not know of the last response and comes later: no pause ends before it.
    let recorded = simulate(
        |sent_ns| sent_ns + 4 * MS,
        (0, 500),
        |plan| {
            plan["load"]["think"] = json!({"kind": "constant", "ms": 6});
            plan["stop"]["total_requests"] = 20.into();
        },
    );
    let counters = &recorded.counters;
    assert_eq!((counters.sent, counters.completed), (20, 20));
    assert_eq!(counters.think_count, 16, "pauses before requests");
    let finished_ms = recorded.finished_ns.unwrap() / MS;
    assert!((45..=46).contains(&finished_ms), "{finished_ms}");
    assert_eq!(recorded.edges.users, 4);
    assert_eq!(counters.users_integral_ns, u128::from(4 * 500 * MS));
}
