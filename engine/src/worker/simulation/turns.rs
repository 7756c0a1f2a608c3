//! Users who rest between turns: what is sent when, and a window that is the sum of its turns.

use super::*;
use crate::measure::schedule::Turn;

fn turns(of_ms: &[[u64; 3]]) -> WorkerCommand {
    let turn = |[begins_ns, opens_ns, ends_ns]: [u64; 3]| Turn {
        begins_ns,
        opens_ns,
        ends_ns,
    };
    let turns = of_ms.iter().map(|ms| turn(ms.map(|ms| START_NS + ms * MS)));
    WorkerCommand::Turns {
        id: 1,
        turns: turns.collect(),
    }
}

fn sends_within(from_ms: u64, to_ms: u64) -> usize {
    let within = |at_ns: &&u64| (from_ms * MS..to_ms * MS).contains(*at_ns);
    driver::SENDS.with_borrow(|sends| sends.iter().filter(within).count())
}

#[test]
fn a_window_of_turns_holds_what_was_in_them_and_nobody_sends_between_them() {
    driver::SENDS.with_borrow_mut(Vec::clear);
    // Practice, two turns that follow each other, and one after a break.
    let of_ms = [
        [300, 320, 320],
        [500, 520, 620],
        [620, 640, 740],
        [900, 910, 1000],
    ];
    COMMAND.set(Some((200 * MS, turns(&of_ms))));
    let recorded = simulate(
        |sent_ns| sent_ns + 5 * MS,
        (5_000, 6_000),
        |plan| plan["stop"] = json!({"after_ms": 1300}),
    );
    // Four users, a response every 5 ms: the edges are at responses.
    let measured_ms = 100 + 100 + 90;
    assert_eq!(recorded.counters.completed, 4 * measured_ms / 5);
    assert_eq!(
        recorded.counters.users_integral_ns,
        u128::from(4 * measured_ms * MS)
    );
    assert_eq!(recorded.gaps.finish().total, 0);
    // Nobody has rested before the practice, which ends at 320 ms.
    for (from_ms, to_ms) in [(321, 500), (741, 900), (1001, 1300)] {
        assert_eq!(sends_within(from_ms, to_ms), 0, "{from_ms} to {to_ms} ms");
    }
    assert_eq!(sends_within(500, 501), 4);
    assert_eq!(sends_within(900, 901), 4);
}

#[test]
fn who_rests_has_got_its_response_and_its_time_is_told() {
    driver::SENDS.with_borrow_mut(Vec::clear);
    let at_ns = START_NS + 103 * MS;
    COMMAND.set(Some((100 * MS, WorkerCommand::Rest { at_ns })));
    let recorded = simulate(|sent_ns| sent_ns + 5 * MS, (0, 1000), |_| {});
    // The responses that were under way came, and nothing was sent after them.
    assert_eq!(sends_within(103, 1000), 0);
    assert_eq!(recorded.counters.sent, recorded.counters.completed);
    let lives_ns = recorded.spent(LifePart::Cycle) + recorded.spent(LifePart::Connect);
    assert_eq!(lives_ns, 4 * 1000 * MS);
}
