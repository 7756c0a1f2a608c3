//! When each user of a closed loop starts and ends: pure functions of its number.

/// Users come, or go, evenly spread over a time, or in so many equal groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ramp {
    pub span_ns: u64,
    /// `None`: linear, one user after the other.
    pub steps: Option<u32>,
}

impl Ramp {
    /// How far into the ramp user `index` of `users` has its place: the first at 0, all others
    /// before the end.
    fn place_ns(self, index: u32, users: u32) -> u64 {
        let users = u128::from(users.max(1));
        let span = u128::from(self.span_ns);
        let place = match self.steps.map(u128::from) {
            None => span * u128::from(index) / users,
            Some(steps) => span * (u128::from(index) * steps / users) / steps.max(1),
        };
        place as u64
    }

    /// Start of user `index`, after the start of the run: the first at once.
    pub fn start_ns(self, index: u32, users: u32) -> u64 {
        self.place_ns(index, users)
    }

    /// End of user `index`, after the start of the run: the last to come is the first to go, and
    /// the first stays until `end_ns`.
    pub fn end_ns(self, index: u32, users: u32, end_ns: u64) -> u64 {
        end_ns.saturating_sub(self.place_ns(index, users))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn starts_rise_and_stay_within_the_ramp(users in 1u32..2_000_000, span_ns in 0u64..1 << 50, index in 0u32..2_000_000, steps in proptest::option::of(1u32..50)) {
            let index = index % users;
            let ramp = Ramp { span_ns, steps };
            prop_assert!(ramp.start_ns(index, users) <= span_ns);
            prop_assert!(index == 0 || ramp.start_ns(index - 1, users) <= ramp.start_ns(index, users));
            prop_assert_eq!(ramp.start_ns(0, users), 0);
            let end_ns = span_ns + 5;
            prop_assert!(ramp.end_ns(index, users, end_ns) >= end_ns - span_ns);
            prop_assert_eq!(ramp.end_ns(index, users, end_ns), end_ns - ramp.start_ns(index, users));
        }
    }

    #[test]
    fn steps_are_groups_of_equal_size() {
        let ramp = Ramp {
            span_ns: 400,
            steps: Some(4),
        };
        let starts: Vec<u64> = (0..8).map(|index| ramp.start_ns(index, 8)).collect();
        assert_eq!(starts, vec![0, 0, 100, 100, 200, 200, 300, 300]);
        let ends: Vec<u64> = (0..8).map(|index| ramp.end_ns(index, 8, 1000)).collect();
        assert_eq!(ends, vec![1000, 1000, 900, 900, 800, 800, 700, 700]);
    }
}
