//! The slowest requests of a window, each with the time at which it was sent. A thread keeps so many
//! of its own in a heap; those of all threads are put together at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request; one with the longer service time is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    pub service_ns: u64,
    /// When it was sent.
    pub start_ns: u64,
}

/// The slowest requests of one thread since its window opened.
#[derive(Debug)]
pub struct Slowest {
    most: usize,
    /// The fastest of them on top.
    kept: BinaryHeap<Reverse<Slow>>,
}

impl Slowest {
    pub fn new(most: u32) -> Self {
        Self {
            most: most as usize,
            kept: BinaryHeap::new(),
        }
    }

    #[inline]
    pub fn see(&mut self, start_ns: u64, service_ns: u64) {
        let slow = Slow {
            service_ns,
            start_ns,
        };
        if self.kept.len() < self.most {
            self.kept.push(Reverse(slow));
        } else if let Some(mut fastest) = self.kept.peek_mut()
            && fastest.0 < slow
        {
            *fastest = Reverse(slow);
        }
    }

    /// Those of the window that ends; from here on those of the next one.
    pub fn take(&mut self) -> Vec<Slow> {
        self.kept.drain().map(|Reverse(slow)| slow).collect()
    }
}

/// The slowest of these, slowest first: `share` of `requests`, at least one, `most` at most.
pub fn slowest_of(mut all: Vec<Slow>, requests: u64, share: f64, most: u32) -> Vec<Slow> {
    all.sort_unstable_by_key(|slow| Reverse(*slow));
    let wanted = (requests as f64 * share).ceil() as usize;
    all.truncate(wanted.min(most as usize));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(most: u32, service_ns: impl IntoIterator<Item = u64>) -> Vec<Slow> {
        let mut slowest = Slowest::new(most);
        for (start_ns, service_ns) in service_ns.into_iter().enumerate() {
            slowest.see(start_ns as u64, service_ns);
        }
        let taken = slowest.take();
        assert_eq!(slowest.take(), []);
        taken
    }

    fn times(slow: &[Slow]) -> Vec<u64> {
        slow.iter().map(|one| one.service_ns).collect()
    }

    #[test]
    fn the_slowest_of_all_threads_are_those_that_a_sort_finds() {
        let threads: Vec<Vec<u64>> = (0..3u64)
            .map(|thread| {
                (0..5_000u64)
                    .map(|at| at * 7_919 % 5_003 + thread)
                    .collect()
            })
            .collect();
        let kept = threads.iter().flat_map(|one| seen(200, one.clone()));
        let found = slowest_of(kept.collect(), 15_000, 0.01, 200);
        let mut every: Vec<u64> = threads.concat();
        every.sort_unstable_by_key(|service_ns| Reverse(*service_ns));
        assert_eq!(times(&found), every[..150]);
        for one in found {
            let at = one.start_ns as usize;
            assert!(threads.iter().any(|thread| thread[at] == one.service_ns));
        }
    }

    #[test]
    fn the_threads_together_keep_no_more_than_was_asked_for() {
        let kept = (0..3).flat_map(|_| seen(10, 0..1_000));
        let found = slowest_of(kept.collect(), 3_000, 0.5, 10);
        assert_eq!(
            times(&found),
            [999, 999, 999, 998, 998, 998, 997, 997, 997, 996]
        );
    }

    #[test]
    fn fewer_are_kept_than_the_share_where_they_are_too_many() {
        let found = slowest_of(seen(10, 0..1_000), 1_000, 0.5, 10);
        assert_eq!(
            times(&found),
            [999, 998, 997, 996, 995, 994, 993, 992, 991, 990]
        );
    }

    #[test]
    fn a_share_is_rounded_up() {
        assert_eq!(times(&slowest_of(seen(10, [3, 9, 5]), 3, 0.01, 10)), [9]);
        assert_eq!(slowest_of(seen(10, []), 0, 0.01, 10), []);
    }
}
