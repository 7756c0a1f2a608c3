//! The total of requests, shared by all threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The requests that may still be sent. Threads take them in portions that shrink towards the end:
/// the total is exact, and no thread sits on a share that others wait for.
#[derive(Debug)]
pub struct Quota {
    left: Option<AtomicU64>,
    threads: u64,
}

const LARGEST_PORTION: u64 = 256;

impl Quota {
    pub fn new(total: Option<u64>, threads: u64) -> Self {
        Self {
            left: total.map(AtomicU64::new),
            threads: threads.max(1),
        }
    }

    /// Takes a portion; 0 when none is left.
    pub fn take(&self) -> u64 {
        let Some(left) = &self.left else {
            return u64::MAX;
        };
        let portion = |now: u64| (now / (16 * self.threads)).clamp(1, LARGEST_PORTION);
        let less = |now: u64| now.checked_sub(portion(now));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        before.map_or(0, portion)
    }

    pub fn is_used_up(&self) -> bool {
        self.left
            .as_ref()
            .is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_add_up_to_the_total_over_threads() {
        let quota = Quota::new(Some(100_003), 4);
        let taken: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mine = 0;
                        loop {
                            match quota.take() {
                                0 => break mine,
                                portion => mine += portion,
                            }
                        }
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(taken, 100_003);
        assert!(quota.is_used_up());
        assert_eq!(Quota::new(None, 1).take(), u64::MAX);
    }
}
