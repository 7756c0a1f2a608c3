use super::*;
use proptest::prelude::*;

pub fn phase(seconds: f64, from_per_s: f64, to_per_s: f64) -> RateStretch {
    RateStretch {
        duration_ns: (seconds * 1e9) as u64,
        from_per_s,
        to_per_s,
    }
}

/// Up to five phases of up to 20 s: steps, ramps from and to zero, pauses.
pub fn phases() -> impl Strategy<Value = Vec<RateStretch>> {
    let rate = prop_oneof![Just(0.0), 0.5..2000.0f64];
    let one = (1u64..20_000_000_000, rate.clone(), rate).prop_map(
        |(duration_ns, from_per_s, to_per_s)| RateStretch {
            duration_ns,
            from_per_s,
            to_per_s,
        },
    );
    proptest::collection::vec(one, 1..6)
}

/// The integral by Simpson's rule, which is exact for a linear rate.
fn by_hand(phases: &[RateStretch], elapsed_ns: u64) -> f64 {
    let mut left = elapsed_ns as f64;
    let mut sum = 0.0;
    for phase in phases {
        let length = phase.duration_ns as f64;
        let t = left.clamp(0.0, length);
        let at = |t: f64| phase.from_per_s + (phase.to_per_s - phase.from_per_s) * t / length;
        sum += (at(0.0) + 4.0 * at(t / 2.0) + at(t)) / 6.0 * t * 1e-9;
        left -= t;
    }
    sum
}

proptest! {
    #[test]
    fn the_integral_is_that_of_the_rate_and_never_falls(phases in phases(), a in 0u64..120_000_000_000, b in 0u64..120_000_000_000) {
        let rate = Rate::new(&phases);
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(rate.expected(a) <= rate.expected(b));
        prop_assert!((rate.expected(a) - by_hand(&phases, a)).abs() < 1e-6 * rate.total().max(1.0));
        prop_assert_eq!(rate.expected(0), 0.0);
        prop_assert_eq!(rate.expected(rate.end_ns()), rate.total());
    }

    #[test]
    fn the_inverse_undoes_the_integral(phases in phases(), share in 0.0..1.0f64) {
        let rate = Rate::new(&phases);
        let count = share * rate.total();
        if let Some(at) = rate.when_ns(count) {
            // A nanosecond of rounding at the highest rate.
            prop_assert!((rate.expected(at) - count).abs() < 1e-5, "{} against {}", rate.expected(at), count);
            prop_assert!(at <= rate.end_ns());
        }
        prop_assert_eq!(rate.when_ns(rate.total()), None);
    }

    /// Cutting a phase in two changes nothing.
    #[test]
    fn phases_join_without_gaps(whole in phases(), share in 0.01..0.99f64, count in 0.0..100_000.0f64) {
        let mut cut = Vec::new();
        for phase in &whole {
            let first_ns = ((phase.duration_ns as f64 * share) as u64).max(1).min(phase.duration_ns);
            let between = phase.from_per_s + (phase.to_per_s - phase.from_per_s) * first_ns as f64 / phase.duration_ns as f64;
            cut.push(RateStretch { duration_ns: first_ns, to_per_s: between, ..*phase });
            cut.push(RateStretch { duration_ns: phase.duration_ns - first_ns, from_per_s: between, ..*phase });
        }
        let (whole, cut) = (Rate::new(&whole), Rate::new(&cut));
        prop_assert_eq!(whole.end_ns(), cut.end_ns());
        prop_assert!((whole.total() - cut.total()).abs() < 1e-6 * whole.total().max(1.0));
        if let (Some(a), Some(b)) = (whole.when_ns(count), cut.when_ns(count)) {
            let (a, b) = (whole.expected(a), whole.expected(b));
            prop_assert!((a - b).abs() < 1e-4, "{} against {}", a, b);
        }
    }
}

#[test]
fn a_constant_rate_is_exact_for_hours() {
    let rate = Rate::new(&[phase(86_400.0, 10_000.0, 10_000.0)]);
    assert_eq!(rate.when_ns(0.0), Some(0));
    assert_eq!(rate.when_ns(863_999_999.0), Some(86_399_999_900_000));
    assert_eq!(rate.when_ns(864_000_000.0), None);
}

#[test]
fn a_pause_delays_what_is_due_at_its_border_to_its_end() {
    let rate = Rate::new(&[
        phase(1.0, 10.0, 10.0),
        phase(2.0, 0.0, 0.0),
        phase(1.0, 5.0, 5.0),
    ]);
    assert_eq!(rate.when_ns(9.0), Some(900_000_000));
    assert_eq!(rate.when_ns(10.0), Some(3_000_000_000));
    assert_eq!(rate.when_ns(11.0), Some(3_200_000_000));
    assert_eq!(rate.expected(2_000_000_000), 10.0);
}

#[test]
fn a_ramp_from_nothing_has_the_square_root_of_its_integral() {
    let rate = Rate::new(&[phase(10.0, 0.0, 20.0)]);
    assert_eq!(rate.total(), 100.0);
    assert_eq!(rate.when_ns(25.0), Some(5_000_000_000));
    let down = Rate::new(&[phase(10.0, 20.0, 0.0)]);
    assert_eq!(down.when_ns(75.0), Some(5_000_000_000));
}
