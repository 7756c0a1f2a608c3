//! Durations in an HdrHistogram of constant size. Knows nothing of what they are durations of.

use hdrhistogram::Histogram;

use super::Sum;

/// The longest duration distinguished: an hour. A longer one is recorded as this and counted as saturated.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Durations from 1 ns to 1 h, with so many digits: three for what is compared, as service times are; two,
/// in a tenth of the memory, for what is only watched.
#[derive(Debug, Clone, Default)]
pub struct Durations<const DIGITS: u8 = 3> {
    histogram: Option<Box<Histogram<u64>>>,
    saturated: u64,
}

impl<const DIGITS: u8> Durations<DIGITS> {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if ns > LONGEST_NS {
            self.saturated += 1;
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(ns.max(1));
        } else {
            self.record_first(ns);
        }
    }

    /// Memory is taken with the first sample: most segments of an idle thread have none.
    #[cold]
    fn record_first(&mut self, ns: u64) {
        // The bounds are valid for every number of digits, so this never fails.
        if let Ok(mut histogram) = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS) {
            histogram.saturating_record(ns.max(1));
            self.histogram = Some(Box::new(histogram));
        }
    }

    /// These without others that are all among them; `None` where they are not.
    pub fn without(&self, others: &Self) -> Option<Self> {
        let mut rest = self.clone();
        if let Some(theirs) = &others.histogram {
            rest.histogram.as_mut()?.subtract(theirs.as_ref()).ok()?;
        }
        rest.saturated = self.saturated.checked_sub(others.saturated)?;
        Some(rest)
    }

    pub fn count(&self) -> u64 {
        self.histogram
            .as_ref()
            .map_or(0, |histogram| histogram.len())
    }

    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The value below which this share of the samples lies; `None` without samples.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        self.filled()
            .map(|histogram| histogram.value_at_quantile(quantile))
    }

    pub fn mean_ns(&self) -> Option<u64> {
        self.filled()
            .map(|histogram| histogram.mean().round() as u64)
    }

    pub fn min_ns(&self) -> Option<u64> {
        self.filled().map(|histogram| histogram.min())
    }

    pub fn max_ns(&self) -> Option<u64> {
        self.filled().map(|histogram| histogram.max())
    }

    /// The histogram itself, for writing it out.
    pub fn filled(&self) -> Option<&Histogram<u64>> {
        self.histogram
            .as_deref()
            .filter(|histogram| !histogram.is_empty())
    }
}

impl<const DIGITS: u8> Sum for Durations<DIGITS> {
    fn add(&mut self, other: &Self) {
        self.saturated += other.saturated;
        match (&mut self.histogram, &other.histogram) {
            (Some(mine), Some(theirs)) => {
                // Same bounds and digits: nothing can be out of range.
                let _ = mine.add(theirs.as_ref());
            }
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_kept_at_the_end_and_counted() {
        let mut durations: Durations = Durations::default();
        assert_eq!((durations.count(), durations.max_ns()), (0, None));
        durations.record(0);
        durations.record(LONGEST_NS * 2);
        assert_eq!((durations.count(), durations.saturated()), (2, 1));
        assert_eq!(durations.min_ns(), Some(1));
        assert!(durations.max_ns().unwrap().abs_diff(LONGEST_NS) < LONGEST_NS / 1000);
    }

    #[test]
    fn sums_hold_all_samples() {
        let (mut a, mut b): (Durations, Durations) = Default::default();
        a.add(&b);
        assert_eq!(a.count(), 0);
        for ns in 1..=1000 {
            b.record(ns * 1000);
        }
        a.add(&b);
        a.add(&b);
        assert_eq!(a.count(), 2000);
        assert_eq!(a.quantile_ns(0.5).unwrap() / 1000, 500);
    }

    #[test]
    fn what_is_taken_away_must_be_there() {
        let (mut all, mut some): (Durations, Durations) = Default::default();
        [1_000, 2_000, 2_000]
            .into_iter()
            .for_each(|ns| all.record(ns));
        assert_eq!(all.without(&some).unwrap().count(), 3);
        some.record(2_000);
        assert_eq!(all.without(&some).unwrap().count(), 2);
        assert!(some.without(&all).is_none());
        assert!(Durations::default().without(&some).is_none());
    }

    #[test]
    fn very_many_samples_overflow_nothing() {
        let mut durations: Durations = Durations::default();
        (1..=1000).for_each(|ms| durations.record(ms * 1_000_000));
        for _ in 0..40 {
            durations.add(&durations.clone());
        }
        assert_eq!(durations.count(), 1000 << 40);
        assert_eq!(durations.quantile_ns(0.5).unwrap() / 1_000_000, 500);
        assert_eq!(durations.mean_ns().unwrap() / 1_000_000, 500);
    }
}
