//! When each user starts: a pure function of its number.

/// Start of user `index` of `users`, in nanoseconds after the start of the run: evenly spread over the ramp, the first at once.
pub fn start_ns(index: u32, users: u32, ramp_up_ns: u64) -> u64 {
    let users = u128::from(users.max(1));
    (u128::from(ramp_up_ns) * u128::from(index) / users) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn starts_rise_and_stay_within_the_ramp(users in 1u32..2_000_000, ramp in 0u64..1 << 50, index in 0u32..2_000_000) {
            let index = index % users;
            prop_assert!(start_ns(index, users, ramp) <= ramp);
            prop_assert!(index == 0 || start_ns(index - 1, users, ramp) <= start_ns(index, users, ramp));
            prop_assert_eq!(start_ns(0, users, ramp), 0);
        }
    }
}
