//! Random draws: which fault a request gets and how long it waits. Everything comes from one seed,
//! so that a run can be repeated. It knows nothing of connections or clocks.

use rand::{Rng, RngCore, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::values::Delay;

/// An hour: the tail of a lognormal with a large sigma is cut here.
const LONGEST_DRAW_NS: f64 = 3600e9;

/// How a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Normal,
    Error,
    Truncate,
    WrongBody,
    Reset,
    Garbage,
    NoAnswer,
    HeaderEndless,
}

/// The injectable faults, in the order of their counters and of the draw.
pub const FAULTS: [(Outcome, &str); 7] = [
    (Outcome::Error, "errors"),
    (Outcome::Truncate, "truncate"),
    (Outcome::WrongBody, "wrong-body"),
    (Outcome::Reset, "reset"),
    (Outcome::Garbage, "garbage"),
    (Outcome::NoAnswer, "no-answer"),
    (Outcome::HeaderEndless, "header-endless"),
];

/// The share of requests that get each fault. A request gets at most one, drawn with one number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares([f64; FAULTS.len()]);

impl Shares {
    /// Sets the share of the fault called `name`; false when there is none of that name.
    pub fn set(&mut self, name: &str, share: f64) -> bool {
        match FAULTS.iter().position(|(_, known)| *known == name) {
            Some(at) => {
                self.0[at] = share;
                true
            }
            None => false,
        }
    }

    pub fn of(&self, outcome: Outcome) -> f64 {
        FAULTS
            .iter()
            .zip(self.0)
            .find(|((known, _), _)| *known == outcome)
            .map_or(0.0, |(_, share)| share)
    }

    pub fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    /// The outcome that belongs to `point`, uniform in 0..1.
    pub fn outcome_at(&self, point: f64) -> Outcome {
        let mut edge = 0.0;
        for ((outcome, _), share) in FAULTS.iter().zip(self.0) {
            edge += share;
            if point < edge {
                return *outcome;
            }
        }
        Outcome::Normal
    }
}

/// The random numbers of one thread.
#[derive(Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Threads draw from independent streams of one seed.
    pub fn new(seed: u64, thread: u64) -> Self {
        let mut source = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..thread {
            source.jump();
        }
        Self(source)
    }

    pub fn outcome(&mut self, shares: &Shares) -> Outcome {
        shares.outcome_at(self.0.random())
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    pub fn delay_ns(&mut self, delay: &Delay) -> u64 {
        let ns = match *delay {
            Delay::None => return 0,
            Delay::Fixed { ns } => return ns,
            Delay::Bimodal {
                low_ns,
                high_ns,
                share_high,
            } => {
                return if self.chance(share_high) {
                    high_ns
                } else {
                    low_ns
                };
            }
            Delay::Exponential { mean_ns } => {
                let unit: f64 = Exp1.sample(&mut self.0);
                mean_ns as f64 * unit
            }
            Delay::LogNormal { median_ns, sigma } => {
                let normal: f64 = StandardNormal.sample(&mut self.0);
                median_ns as f64 * (sigma * normal).exp()
            }
        };
        ns.min(LONGEST_DRAW_NS) as u64
    }

    /// Bytes that cannot be taken for HTTP.
    pub fn garbage(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
        if let Some(first) = bytes.first_mut() {
            *first |= 0x80;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted_draws(delay: Delay) -> Vec<u64> {
        let mut random = Random::new(7, 0);
        let mut draws: Vec<u64> = (0..100_000).map(|_| random.delay_ns(&delay)).collect();
        draws.sort_unstable();
        draws
    }

    fn near(measured: u64, expected: f64, tolerance: f64) {
        let ratio = measured as f64 / expected;
        assert!(
            (ratio - 1.0).abs() < tolerance,
            "{measured} instead of {expected}"
        );
    }

    #[test]
    fn exponential_delays_have_their_mean_and_percentiles() {
        let draws = sorted_draws(Delay::Exponential {
            mean_ns: 10_000_000,
        });
        near(draws.iter().sum::<u64>() / draws.len() as u64, 1e7, 0.02);
        near(draws[50_000], 1e7 * 2f64.ln(), 0.03);
        near(draws[99_000], 1e7 * 100f64.ln(), 0.05);
    }

    #[test]
    fn lognormal_delays_have_their_median_and_spread() {
        let draws = sorted_draws(Delay::LogNormal {
            median_ns: 10_000_000,
            sigma: 0.5,
        });
        near(draws[50_000], 1e7, 0.02);
        // The quantiles of one standard deviation either way.
        near(draws[84_134], 1e7 * 0.5f64.exp(), 0.03);
        near(draws[15_866], 1e7 * (-0.5f64).exp(), 0.03);
    }

    #[test]
    fn bimodal_and_fixed_delays() {
        let draws = sorted_draws(Delay::Bimodal {
            low_ns: 5,
            high_ns: 50,
            share_high: 0.1,
        });
        let high = draws.iter().filter(|ns| **ns == 50).count();
        assert_eq!(
            draws.iter().filter(|ns| **ns == 5).count() + high,
            draws.len()
        );
        assert!((9_500..10_500).contains(&high), "{high}");
        assert_eq!(Random::new(1, 0).delay_ns(&Delay::Fixed { ns: 9 }), 9);
        assert_eq!(Random::new(1, 0).delay_ns(&Delay::None), 0);
    }

    #[test]
    fn an_extreme_tail_is_cut_at_an_hour() {
        let draws = sorted_draws(Delay::LogNormal {
            median_ns: 1_000_000_000,
            sigma: 100.0,
        });
        assert_eq!(draws[99_999], 3_600_000_000_000);
    }

    #[test]
    fn fates_come_in_their_shares() {
        let mut shares = Shares::default();
        assert!(
            shares.set("errors", 0.02) && shares.set("reset", 0.3) && !shares.set("unknown", 0.1)
        );
        let mut random = Random::new(3, 0);
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            match random.outcome(&shares) {
                Outcome::Error => counts[0] += 1,
                Outcome::Reset => counts[1] += 1,
                Outcome::Normal => counts[2] += 1,
                other => panic!("{other:?} was never asked for"),
            }
        }
        assert!(
            (1_800..2_200).contains(&counts[0]) && (29_300..30_700).contains(&counts[1]),
            "{counts:?}"
        );
    }

    #[test]
    fn a_share_of_one_is_always_and_of_nought_never() {
        let mut shares = Shares::default();
        assert_eq!(shares.outcome_at(0.0), Outcome::Normal);
        shares.set("garbage", 1.0);
        assert_eq!(shares.outcome_at(0.0), Outcome::Garbage);
        assert_eq!(shares.outcome_at(1.0 - f64::EPSILON), Outcome::Garbage);
        assert!(
            (shares.of(Outcome::Garbage) - 1.0).abs() < 1e-12 && shares.of(Outcome::Error) == 0.0
        );
    }

    #[test]
    fn one_seed_gives_one_stream_and_threads_differ() {
        let draw = |seed, thread| {
            let mut random = Random::new(seed, thread);
            (0..5)
                .map(|_| random.delay_ns(&Delay::Exponential { mean_ns: 1_000_000 }))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }

    #[test]
    fn garbage_never_looks_like_http() {
        let mut random = Random::new(5, 0);
        for _ in 0..1000 {
            let mut bytes = [0; 32];
            random.garbage(&mut bytes);
            assert!(bytes[0] >= 0x80);
        }
    }
}
