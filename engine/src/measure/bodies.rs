//! Counts of sampled bodies by step and digest, to be compared with the preflight response.

use std::collections::BTreeMap;

use super::Sum;

/// Digests of a step that are counted one by one; the body of a step with more changes.
const MAX_DISTINCT: usize = 16;

/// Counts per step and digest; without a digest of all further ones.
#[derive(Debug, Clone, Default)]
pub struct BodyCounts(BTreeMap<(usize, Option<u64>), u64>);

impl BodyCounts {
    pub fn count(&mut self, step: usize, digest: Option<u64>, count: u64) {
        let of_step = (step, None)..=(step, Some(u64::MAX));
        let known =
            self.0.contains_key(&(step, digest)) || self.0.range(of_step).count() < MAX_DISTINCT;
        *self.0.entry((step, digest.filter(|_| known))).or_default() += count;
    }

    pub fn all(&self) -> impl Iterator<Item = (usize, Option<u64>, u64)> + '_ {
        self.0
            .iter()
            .map(|((step, digest), count)| (*step, *digest, *count))
    }
}

impl Sum for BodyCounts {
    fn add(&mut self, other: &Self) {
        for ((step, digest), count) in &other.0 {
            self.count(*step, *digest, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_add_up_by_step_and_ever_new_ones_take_no_memory() {
        let mut bodies = BodyCounts::default();
        for digest in 0..1000 {
            bodies.count(0, Some(digest), 1);
            bodies.count(1, Some(7), 1);
        }
        let mut sum = BodyCounts::default();
        sum.add(&bodies);
        sum.add(&bodies);
        let found: Vec<_> = sum.all().collect();
        assert!(found.len() <= 2 * (MAX_DISTINCT + 1));
        assert_eq!(found[0].1, None, "further ones come first");
        assert_eq!(found.last(), Some(&(1, Some(7), 2000)));
        assert_eq!(found.iter().map(|(_, _, count)| count).sum::<u64>(), 4000);
    }
}
