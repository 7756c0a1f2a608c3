//! Time of whatever has begun and not ended, without asking each of them.

/// How many run, and when they began, as one sum: their time up to any moment is known at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Running {
    count: i64,
    /// Σ ends − Σ begins. Signed, so that the order in which they are reported does not matter.
    sum_ns: i128,
}

impl Running {
    #[inline]
    pub fn begin(&mut self, at_ns: u64) {
        self.count += 1;
        self.sum_ns -= i128::from(at_ns);
    }

    /// One that runs ends; its time is kept.
    #[inline]
    pub fn end(&mut self, at_ns: u64) {
        self.count -= 1;
        self.sum_ns += i128::from(at_ns);
    }

    /// One that runs ends, and leaves nothing: what remains is the time of those that still run.
    #[inline]
    pub fn forget(&mut self, began_ns: u64) {
        self.end(began_ns);
    }

    pub fn count(&self) -> i64 {
        self.count
    }

    /// Σ time up to this moment.
    pub fn until(&self, at_ns: u64) -> i128 {
        self.sum_ns + i128::from(self.count) * i128::from(at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The sum is that of asking each of them.
        #[test]
        fn agrees_with_asking_each(
            spans in proptest::collection::vec((0u64..1_000, 0u64..1_000), 0..40), at_ns in 2_000u64..3_000,
        ) {
            let (mut times, mut ages) = (Running::default(), Running::default());
            let (mut spent_ns, mut open_ns) = (0i128, 0i128);
            for (place, (begin_ns, took_ns)) in spans.iter().enumerate() {
                times.begin(*begin_ns);
                ages.begin(*begin_ns);
                if place % 3 == 0 {
                    open_ns += i128::from(at_ns - begin_ns);
                } else {
                    times.end(begin_ns + took_ns);
                    ages.forget(*begin_ns);
                    spent_ns += i128::from(*took_ns);
                }
            }
            prop_assert_eq!(times.until(at_ns), spent_ns + open_ns);
            prop_assert_eq!(ages.until(at_ns), open_ns);
            prop_assert_eq!(times.count(), spans.len().div_ceil(3) as i64);
        }
    }
}
