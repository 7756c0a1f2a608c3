//! How many different targets the requests of a step had, to be compared with what its feeder holds.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Sum;

/// Per step; that many are not few.
pub const MAX_DISTINCT: usize = 1024;

/// By step, the rows of its feeder and digests of targets.
#[derive(Debug, Clone, Default)]
pub struct UrlCounts(BTreeMap<usize, (u32, BTreeSet<u64>)>);

impl UrlCounts {
    pub fn count(&mut self, step: usize, rows: u32, target: &[u8]) {
        let seen = &mut self.0.entry(step).or_insert((rows, BTreeSet::new())).1;
        if seen.len() < MAX_DISTINCT {
            let mut hasher = DefaultHasher::new();
            target.hash(&mut hasher);
            seen.insert(hasher.finish());
        }
    }

    /// Step, rows and different targets.
    pub fn all(&self) -> impl Iterator<Item = (usize, u32, usize)> + '_ {
        self.0
            .iter()
            .map(|(step, (rows, seen))| (*step, *rows, seen.len()))
    }
}

impl Sum for UrlCounts {
    fn add(&mut self, other: &Self) {
        for (step, (rows, theirs)) in &other.0 {
            let seen = &mut self.0.entry(*step).or_insert((*rows, BTreeSet::new())).1;
            let room = MAX_DISTINCT - seen.len();
            let new: Vec<u64> = theirs.difference(seen).take(room).copied().collect();
            seen.extend(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_counted_once_and_ever_new_ones_take_no_memory() {
        let mut here = UrlCounts::default();
        let mut there = UrlCounts::default();
        for number in 0..5000 {
            here.count(0, 7, format!("/{}", number % 10).as_bytes());
            there.count(0, 7, format!("/{}", number % 15).as_bytes());
            here.count(1, 9, format!("/{number}").as_bytes());
            there.count(1, 9, format!("/b/{number}").as_bytes());
        }
        here.add(&there);
        let found: Vec<_> = here.all().collect();
        assert_eq!(found, [(0, 7, 15), (1, 9, MAX_DISTINCT)]);
    }
}
