//! What the kernel refuses only when the whole host has run out of it, so that no test may bring it
//! about: simulated at the driver, where every driver hands over the kernel's own word.

use super::*;
use crate::measure::counters::ErrorKind;

/// No attempt before 200 ms is let through; the word is the type's parameter, since a simulated
/// kernel is a plain function.
fn refusing<const CODE: i32>(at_ns: u64) -> Option<i32> {
    (at_ns < 200 * MS).then_some(CODE)
}

fn under(refusal: Refusal, edit: impl FnOnce(&mut Value)) -> Recorded {
    REFUSAL.set(refusal);
    let recorded = simulate(|sent_ns| sent_ns + 10 * MS, (0, 1000), edit);
    REFUSAL.set(|_| None);
    recorded
}

fn failures(recorded: &Recorded) -> Vec<(ErrorKind, u64)> {
    recorded.counters.errors.clone().into_iter().collect()
}

#[test]
fn a_full_table_of_open_files_is_backed_off_from_counted_and_said() {
    // Each of four users tries at 0, 10, 30, 70 and 150 ms and fails, and at 310 ms succeeds.
    let refusals: [(Refusal, ErrorKind); 5] = [
        (refusing::<{ libc::ENFILE }>, ErrorKind::Descriptors),
        (refusing::<{ libc::EMFILE }>, ErrorKind::Descriptors),
        (
            refusing::<{ libc::EADDRNOTAVAIL }>,
            ErrorKind::AddressUnavailable,
        ),
        (refusing::<{ libc::ENOBUFS }>, ErrorKind::ConnectOther),
        (refusing::<{ libc::ENETUNREACH }>, ErrorKind::ConnectOther),
    ];
    for (refusal, kind) in refusals {
        let recorded = under(refusal, |_| {});
        let counters = &recorded.counters;
        assert_eq!(failures(&recorded), [(kind, 4 * 5)]);
        assert_eq!(counters.connections.attempts, 4 * 6);
        assert_eq!(counters.connections.opened, 4);
        assert_eq!(
            (counters.emfile, counters.eaddrnotavail),
            match kind {
                ErrorKind::Descriptors => (20, 0),
                ErrorKind::AddressUnavailable => (0, 20),
                _ => (0, 0),
            }
        );
        // Connected at 311 ms, then a response every 10 ms.
        assert_eq!(counters.completed, 4 * 68, "{kind:?}");
    }
}

#[test]
fn an_open_load_without_descriptors_fails_its_requests_and_goes_on() {
    let recorded = under(refusing::<{ libc::ENFILE }>, |plan| {
        open(plan, "constant", 100);
        plan["load"]["max_users"] = 50.into();
        plan["load"]["connections"] = 2.into();
    });
    let counters = &recorded.counters;
    let failed: u64 = failures(&recorded).iter().map(|(_, count)| count).sum();
    assert_eq!(failures(&recorded), [(ErrorKind::Descriptors, failed)]);
    // Due every 10 ms: those of the first 200 ms find no connection, all others do.
    assert_eq!(failed, 20);
    assert!(counters.emfile >= failed);
    assert_eq!(counters.offered, 100);
    assert_eq!(counters.sent, 80);
}

#[test]
fn what_the_clients_own_kernel_does_not_take_is_counted_as_the_clients_failure() {
    SEND_REFUSAL.set(|at_ns| (at_ns < 50 * MS).then_some(libc::EBUSY));
    let recorded = simulate(|sent_ns| sent_ns + 10 * MS, (0, 1000), |_| {});
    SEND_REFUSAL.set(|_| None);
    // Each of four users connects anew, in a millisecond, after each of the requests that were refused.
    let refused = recorded.counters.connections.opened - 4;
    assert_eq!(failures(&recorded), [(ErrorKind::Client, refused)]);
    assert_eq!(refused, 4 * 49);
    let reason = &recorded.counters.reasons[&ErrorKind::Client];
    assert!(
        reason.starts_with("the load generator could not"),
        "{reason}"
    );
    assert_eq!(
        recorded.counters.in_flight_integral_ns,
        i128::from(4 * 950 * MS)
    );
}
