//! How late the kernel wakes a thread, learnt from its own waits: by so much earlier a wait for an
//! arrival has to end. Pure: no clock is read here.

/// Before anything is known.
const FIRST_NS: u64 = 50_000;
const MIN_NS: u64 = 10_000;
/// A host that is later than this is disturbed, not slow: waiting shorter would not help.
const MAX_NS: u64 = 200_000;
/// A wake-up that is later than the estimate raises it by this part of itself, ...
const RAISE_PART: u64 = 8;
/// ... and any other lowers it by so much less that, in the long run, one in a hundred is later.
const LATER_ONE_IN: u64 = 100;

/// An estimate of the 99th percentile of the lateness of wake-ups (stochastic approximation:
/// Robbins and Monro, 1951), in constant memory and at constant cost.
#[derive(Debug, Clone, Copy)]
pub struct Lateness {
    ns: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { ns: FIRST_NS }
    }
}

impl Lateness {
    /// A wait ended so long after the time that was asked for.
    pub fn observe(&mut self, late_ns: u64) {
        let step_ns = self.ns / RAISE_PART;
        let next_ns = if late_ns > self.ns {
            self.ns + step_ns
        } else {
            self.ns - step_ns / (LATER_ONE_IN - 1)
        };
        self.ns = next_ns.clamp(MIN_NS, MAX_NS);
    }

    pub fn ns(self) -> u64 {
        self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn about_one_wake_up_in_a_hundred_is_later_than_the_estimate() {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut lateness = Lateness::default();
        let mut later = 0;
        for number in 0..200_000 {
            let late_ns = rng.random_range(20_000..60_000);
            later += u64::from(number >= 100_000 && late_ns > lateness.ns());
            lateness.observe(late_ns);
        }
        assert!((500..1500).contains(&later), "{later} of 100,000");
        assert!((55_000..70_000).contains(&lateness.ns()), "{lateness:?}");
    }

    #[test]
    fn a_single_long_delay_changes_little_and_the_bounds_hold() {
        let mut lateness = Lateness::default();
        lateness.observe(u64::MAX);
        assert_eq!(lateness.ns(), FIRST_NS + FIRST_NS / RAISE_PART);
        for _ in 0..100 {
            lateness.observe(1_000_000_000);
        }
        assert_eq!(lateness.ns(), MAX_NS);
        for _ in 0..10_000 {
            lateness.observe(0);
        }
        assert_eq!(lateness.ns(), MIN_NS);
    }
}
