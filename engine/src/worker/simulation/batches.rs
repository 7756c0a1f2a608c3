//! Responses that were fetched together, and a client whose sends take time: what a response is
//! charged with must not depend on its place in the batch.

use super::*;

const SEND_COST_NS: u64 = 1_000;
const USERS: u64 = 64;

/// All responses come together, every 10 ms, so long before a multiple of 10 ms.
fn together<const EARLY_NS: u64>(sent_ns: u64) -> u64 {
    let shifted_ns = sent_ns + EARLY_NS;
    shifted_ns - shifted_ns % (10 * MS) + 10 * MS - EARLY_NS
}

fn with_slow_sends(service: Service, edit: impl FnOnce(&mut Value)) -> Recorded {
    SEND_NS.set(SEND_COST_NS);
    let recorded = simulate(service, (100, 900), |plan| {
        plan["load"]["users"] = USERS.into();
        edit(plan);
    });
    SEND_NS.set(0);
    recorded
}

/// Σ over the users of one batch: from each send, which waits for those before it, to the next batch.
fn service_of_a_batch_ns() -> u64 {
    (0..USERS)
        .map(|before| 10 * MS - before * SEND_COST_NS)
        .sum()
}

#[test]
fn responses_of_one_batch_came_when_it_was_fetched_whatever_was_sent_since() {
    // Four groups of 16 sends follow each batch, the first of them before most of its responses are handled.
    let recorded = with_slow_sends(together::<{ 5 * MS }>, |_| {});
    assert_eq!(recorded.counters.completed, 80 * USERS);
    let expected_ns = 80 * service_of_a_batch_ns();
    assert_eq!(recorded.counters.service_time_ns, u128::from(expected_ns));
    // In flight is counted without knowing single requests: the window begins and ends amid two
    // equal batches.
    assert_eq!(
        recorded.counters.in_flight_integral_ns,
        i128::from(expected_ns)
    );
}

#[test]
fn the_parts_of_a_request_do_not_hold_the_sends_of_others() {
    let recorded = with_slow_sends(together::<{ 5 * MS }>, |plan| plan["parts"] = true.into());
    // Each response comes in one piece: there is nothing between its first and its last byte (a
    // histogram holds no less than 1 ns).
    assert_eq!(recorded.parts.receive.max_ns(), Some(1));
    let expected_ns = 80 * service_of_a_batch_ns();
    assert_eq!(recorded.counters.service_time_ns, u128::from(expected_ns));
}

#[test]
fn responses_that_came_before_a_cut_are_counted_before_it_however_slow_the_client() {
    // Every tenth batch comes 20 µs before the end of a row, and the sends after it take 64 µs.
    let recorded = with_slow_sends(together::<20_000>, |_| {});
    assert_eq!(recorded.counters.completed, 80 * USERS);
    // The window opens and closes at the end of a row, which therefore has two segments.
    let completed: Vec<u64> = recorded.rows[1..8].iter().map(|row| row.1).collect();
    assert_eq!(completed, [USERS * 10; 7]);
}

#[test]
fn what_came_while_the_client_was_sending_lay_in_its_socket_until_the_next_look() {
    SEND_NS.set(MS);
    let recorded = simulate(
        |sent_ns| sent_ns + MS / 10,
        (100, 900),
        |plan| plan["load"]["users"] = 2.into(),
    );
    SEND_NS.set(0);
    // Both are sent within 2 ms; the first response comes 1.9 ms before the end of that, the second
    // 0.9 ms. A histogram of two digits is right to within 1 %.
    let found = &recorded.receive_delay;
    assert_eq!(found.reads, recorded.counters.completed);
    assert_eq!(found.delays.count(), found.reads);
    let (min_ns, max_ns) = (found.delays.min_ns(), found.delays.max_ns());
    assert!((891_000..909_001).contains(&min_ns.unwrap()), "{min_ns:?}");
    assert!(
        (1_881_000..1_919_001).contains(&max_ns.unwrap()),
        "{max_ns:?}"
    );
}
