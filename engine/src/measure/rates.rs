//! How many requests were completed in each of many short spans, by group of users, as rates per
//! second. It knows nothing of what a group is.

use std::collections::BTreeMap;

/// Rates, each with how often it was seen.
pub type RateCounts = BTreeMap<u64, u64>;

/// The groups of one measuring thread.
#[derive(Debug)]
pub struct Rates {
    groups: Vec<Group>,
    every_ns: u64,
    next_ns: u64,
    samples: RateCounts,
}

#[derive(Debug, Clone)]
struct Group {
    completed: u64,
    from_ns: u64,
}

impl Rates {
    pub fn new(groups: usize, every_ns: u64, start_ns: u64) -> Self {
        let group = Group {
            completed: 0,
            from_ns: start_ns,
        };
        Self {
            groups: vec![group; groups.max(1)],
            every_ns,
            next_ns: start_ns.saturating_add(every_ns),
            samples: RateCounts::new(),
        }
    }

    /// When the next spans end.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// A request of this user of the thread was completed: users are dealt out over the groups.
    #[inline]
    pub fn count(&mut self, index: u32) {
        let group = index as usize % self.groups.len();
        self.groups[group].completed += 1;
    }

    /// Ends the spans that are over. One in which nothing was completed goes on, so that no rate is 0.
    pub fn sample(&mut self, now_ns: u64) {
        if now_ns < self.next_ns {
            return;
        }
        for group in &mut self.groups {
            let span_ns = now_ns.saturating_sub(group.from_ns);
            if group.completed > 0 && span_ns > 0 {
                let per_s = group.completed as f64 * 1e9 / span_ns as f64;
                *self.samples.entry(per_s as u64).or_default() += 1;
                group.completed = 0;
                group.from_ns = now_ns;
            }
        }
        self.next_ns = now_ns.saturating_add(self.every_ns);
    }

    /// What was seen so far; from then on it begins anew.
    pub fn take(&mut self) -> RateCounts {
        std::mem::take(&mut self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_a_rate_of_its_own_and_idle_spans_join_the_next() {
        let mut rates = Rates::new(2, 100, 0);
        (0..10).for_each(|_| rates.count(0));
        rates.count(1);
        rates.sample(99);
        assert!(rates.take().is_empty());
        rates.sample(100);
        assert_eq!(rates.take(), [(100_000_000, 1), (10_000_000, 1)].into());
        rates.sample(200);
        rates.count(2);
        rates.sample(300);
        assert_eq!(rates.take(), [(5_000_000, 1)].into());
    }
}
