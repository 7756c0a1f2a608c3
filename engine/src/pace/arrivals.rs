//! When each arrival of one thread is due: a cursor over the schedule that a [`Rate`] makes. It
//! reads no clock, and a copy of it goes the same way, so that what is due can be counted ahead.
//!
//! Constant: arrival k of all threads is due when the integral of the rate first exceeds k; a thread
//! takes those that are its own ([`Share`]), so that the threads of all engines together make
//! exactly the schedule of one. Poisson: each thread draws a process of its own at its part of the
//! rate; the sum of independent Poisson processes is the Poisson process of the summed rate (superposition), and no
//! thread has to draw what others send. A rate that varies is reached by the change of time: unit
//! exponentials are laid on the integral of the rate (Cox and Lewis, 1966).

use std::sync::Arc;

use rand::SeedableRng;
use rand::distr::Distribution;
use rand::rngs::SmallRng;
use rand_distr::Exp1;

use super::rate::Rate;
use super::share::Share;

/// How the gaps between arrivals are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    Constant,
    Poisson,
    /// The fault of a client that was asked for Poisson arrivals and sends evenly spaced ones.
    Even,
}

/// The arrivals of one thread, one after the other.
#[derive(Debug, Clone)]
pub struct Arrivals {
    rate: Arc<Rate>,
    progress: Progress,
    share: Share,
    /// Arrivals of all threads for one of this thread's.
    one_in: f64,
    /// `u64::MAX` when no more come.
    next_ns: u64,
}

#[derive(Debug, Clone)]
enum Progress {
    /// The next one, among those of this thread.
    Numbered {
        next: u64,
    },
    Poisson {
        level: f64,
        rng: SmallRng,
    },
}

impl Arrivals {
    pub fn new(rate: Arc<Rate>, spacing: Spacing, share: Share, seed: u64) -> Self {
        let progress = match spacing {
            Spacing::Constant | Spacing::Even => Progress::Numbered { next: 0 },
            Spacing::Poisson => Progress::Poisson {
                level: 0.0,
                rng: SmallRng::seed_from_u64(
                    seed.wrapping_mul(0xd134_2543_de82_ef95)
                        .wrapping_add(share.stream()),
                ),
            },
        };
        let mut arrivals = Self {
            rate,
            progress,
            one_in: share.one_in(),
            share,
            next_ns: 0,
        };
        if let Progress::Poisson { level, rng } = &mut arrivals.progress {
            let gap: f64 = Exp1.sample(rng);
            *level = gap * arrivals.one_in;
        }
        arrivals.settle();
        arrivals
    }

    /// When the next arrival is due, after the start; `u64::MAX` when no more come.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Goes on to the arrival after the next.
    #[inline]
    pub fn advance(&mut self) {
        match &mut self.progress {
            Progress::Numbered { next } => *next += 1,
            Progress::Poisson { level, rng } => {
                let gap: f64 = Exp1.sample(rng);
                *level += gap * self.one_in;
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        let level = match &self.progress {
            Progress::Numbered { next } => self.share.number(*next) as f64,
            Progress::Poisson { level, .. } => *level,
        };
        self.next_ns = self.rate.when_ns(level).unwrap_or(u64::MAX);
    }

    /// How many of the arrivals from the next on are due before this time.
    pub fn due_before(&self, elapsed_ns: u64) -> u64 {
        if self.next_ns >= elapsed_ns {
            return 0;
        }
        let mut ahead = self.clone();
        let mut count = 0;
        while ahead.next_ns < elapsed_ns {
            ahead.advance();
            count += 1;
        }
        count
    }

    /// When the last phase ends, after the start.
    pub fn end_ns(&self) -> u64 {
        self.rate.end_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::rate::tests::{phase, phases};
    use crate::pace::share::Part;
    use crate::pace::share::tests::{one_of, parts, shares};
    use proptest::prelude::*;

    fn all(rate: &Arc<Rate>, spacing: Spacing, thread: usize, threads: usize) -> Vec<u64> {
        of(rate, spacing, one_of(thread, threads))
    }

    fn of(rate: &Arc<Rate>, spacing: Spacing, share: Share) -> Vec<u64> {
        let mut arrivals = Arrivals::new(Arc::clone(rate), spacing, share, 7);
        let mut due = Vec::new();
        while arrivals.next_ns() != u64::MAX {
            due.push(arrivals.next_ns());
            arrivals.advance();
        }
        due
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn threads_together_make_exactly_the_constant_schedule_of_one(phases in phases(), threads in 1usize..9) {
            let rate = Arc::new(Rate::new(&phases));
            let one = all(&rate, Spacing::Constant, 0, 1);
            let mut union: Vec<u64> = (0..threads).flat_map(|thread| all(&rate, Spacing::Constant, thread, threads)).collect();
            union.sort_unstable();
            prop_assert!(one.is_sorted());
            prop_assert_eq!(&one, &union);
            // As many as the integral says: the one at its beginning is the first.
            let slack = f64::from(rate.total().fract() < 1e-3);
            prop_assert!((one.len() as f64 - rate.total().ceil()).abs() <= slack);
        }

        /// Interleaved by phase: whatever the weights, engines send what one would.
        #[test]
        fn engines_together_make_exactly_the_constant_schedule_of_one(phases in phases(), parts in parts()) {
            let rate = Arc::new(Rate::new(&phases));
            let mut union: Vec<u64> = shares(&parts).into_iter().flat_map(|share| of(&rate, Spacing::Constant, share)).collect();
            union.sort_unstable();
            prop_assert_eq!(union, all(&rate, Spacing::Constant, 0, 1));
        }

        #[test]
        fn poisson_arrivals_rise_and_end_with_the_phases(phases in phases(), threads in 1usize..5) {
            let rate = Arc::new(Rate::new(&phases));
            let due: Vec<Vec<u64>> = (0..threads).map(|thread| all(&rate, Spacing::Poisson, thread, threads)).collect();
            prop_assert!(due.iter().all(|due| due.is_sorted() && due.last().is_none_or(|last| *last <= rate.end_ns())));
            // Six standard deviations of the count.
            let count: usize = due.iter().map(Vec::len).sum();
            prop_assert!((count as f64 - rate.total()).abs() < 6.0 * rate.total().sqrt() + 6.0, "{} of {}", count, rate.total());
        }

        #[test]
        fn counting_ahead_changes_nothing(phases in phases(), at in 0u64..60_000_000_000) {
            let rate = Arc::new(Rate::new(&phases));
            for spacing in [Spacing::Constant, Spacing::Poisson] {
                let arrivals = Arrivals::new(Arc::clone(&rate), spacing, one_of(1, 3), 9);
                let before = arrivals.due_before(at);
                let mut walked = arrivals.clone();
                for _ in 0..before {
                    prop_assert!(walked.next_ns() < at);
                    walked.advance();
                }
                prop_assert!(walked.next_ns() >= at);
            }
        }
    }

    #[test]
    fn a_second_at_a_thousand_holds_a_thousand() {
        let rate = Arc::new(Rate::new(&[phase(1.0, 1000.0, 1000.0)]));
        let due = all(&rate, Spacing::Constant, 0, 1);
        assert_eq!(due.len(), 1000);
        assert!((0..1000).all(|k| due[k] == k as u64 * 1_000_000));
    }

    /// The sum of what engines of any weights draw is one Poisson process of the whole rate: its gaps
    /// are exponential and independent.
    #[test]
    fn poisson_arrivals_of_engines_add_up_to_those_of_one() {
        let rate = Arc::new(Rate::new(&[phase(20.0, 500.0, 1500.0)]));
        let parts = [
            Part::new(&[0, 2, 3, 5, 6], 7),
            Part::new(&[1], 7),
            Part::new(&[4], 7),
        ];
        let mut due: Vec<u64> = shares(&parts)
            .into_iter()
            .flat_map(|share| of(&rate, Spacing::Poisson, share))
            .collect();
        due.sort_unstable();
        let seen: Vec<f64> = due
            .windows(2)
            .map(|pair| rate.expected(pair[1]) - rate.expected(pair[0]))
            .collect();
        let count = seen.len() as f64;
        let mut sorted = seen.clone();
        sorted.sort_by(f64::total_cmp);
        let distance = sorted.iter().zip(1..).fold(0.0, |most: f64, (gap, rank)| {
            most.max((f64::from(rank) / count + (-gap).exp_m1()).abs())
        });
        // 20,000 expected, six standard deviations; the KS distance exceeded once in a million.
        assert!(
            (count - rate.total()).abs() < 6.0 * rate.total().sqrt(),
            "{count}"
        );
        assert!(distance < 2.69 / count.sqrt(), "{distance}");
        // The correlation of neighbours: five standard deviations.
        let lag: f64 = seen
            .windows(2)
            .map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0))
            .sum();
        assert!((lag / count).abs() < 5.0 / count.sqrt(), "{}", lag / count);
    }

    #[test]
    fn another_seed_draws_other_gaps_and_threads_do_not_share_theirs() {
        let rate = Arc::new(Rate::new(&[phase(1.0, 1000.0, 1000.0)]));
        let first = |seed, thread| {
            Arrivals::new(Arc::clone(&rate), Spacing::Poisson, one_of(thread, 2), seed).next_ns()
        };
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
    }
}
