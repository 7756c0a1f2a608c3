//! Think times: what is drawn from which distribution. Knows nothing of users.

use rand::Rng;
use rand_distr::{Distribution, Exp, Normal, Poisson};

use crate::plan::Think;

/// Longer draws are cut to a day: an exponential has no upper end, a run has.
const LONGEST_NS: f64 = 86_400e9;

/// A distribution ready to draw from.
#[derive(Debug, Clone, Copy)]
pub enum ThinkTime {
    None,
    Constant(u64),
    Uniform(u64, u64),
    Exponential(Exp<f64>),
    /// Truncated at 0: a negative draw is drawn again. A checked plan has mean >= 0, so at least
    /// every second draw is kept.
    Gaussian(Normal<f64>),
    /// In ms, and what is added to them, in ns.
    Poisson(Poisson<f64>, u64),
}

impl ThinkTime {
    /// From a checked plan; parameters that no distribution accepts give no think time.
    pub fn new(think: &Think) -> Self {
        let ns = |ms: f64| (ms * 1e6).round() as u64;
        match *think {
            Think::None => Self::None,
            Think::Constant { ms } => Self::Constant(ns(ms)),
            Think::Uniform { min_ms, max_ms } => Self::Uniform(ns(min_ms), ns(max_ms)),
            Think::Exponential { mean_ms } => {
                Exp::new(1.0 / (mean_ms * 1e6)).map_or(Self::None, Self::Exponential)
            }
            Think::Gaussian { mean_ms, stdev_ms } => {
                Normal::new(mean_ms * 1e6, stdev_ms * 1e6).map_or(Self::None, Self::Gaussian)
            }
            Think::Poisson { mean_ms, offset_ms } => Poisson::new(mean_ms)
                .map_or(Self::None, |drawn| Self::Poisson(drawn, ns(offset_ms))),
        }
    }

    /// Draws one think time in nanoseconds; `None` when users do not think.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> Option<u64> {
        match self {
            Self::None => None,
            other => Some(other.draw_ns(rng)),
        }
    }

    #[inline(never)]
    fn draw_ns(&self, rng: &mut impl Rng) -> u64 {
        match self {
            Self::None => 0,
            Self::Constant(ns) => *ns,
            Self::Uniform(min, max) => rng.random_range(*min..=*max),
            Self::Exponential(distribution) => distribution.sample(rng).min(LONGEST_NS) as u64,
            Self::Poisson(distribution, offset_ns) => {
                let ns = (distribution.sample(rng) * 1e6).min(LONGEST_NS) as u64;
                offset_ns + ns
            }
            Self::Gaussian(distribution) => loop {
                let ns = distribution.sample(rng);
                if ns >= 0.0 {
                    break ns.min(LONGEST_NS) as u64;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    fn mean_ms(think: Think) -> f64 {
        let mut rng = SmallRng::seed_from_u64(7);
        let time = ThinkTime::new(&think);
        let draws = 200_000;
        let sum: f64 = (0..draws)
            .map(|_| time.draw(&mut rng).unwrap() as f64)
            .sum();
        sum / f64::from(draws) / 1e6
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        assert_eq!(mean_ms(Think::Constant { ms: 2.5 }), 2.5);
        let uniform = mean_ms(Think::Uniform {
            min_ms: 1.0,
            max_ms: 3.0,
        });
        assert!((uniform - 2.0).abs() < 0.02, "{uniform}");
        let exponential = mean_ms(Think::Exponential { mean_ms: 4.0 });
        assert!((exponential - 4.0).abs() < 0.05, "{exponential}");
        let poisson = mean_ms(Think::Poisson {
            mean_ms: 4.0,
            offset_ms: 1.0,
        });
        assert!((poisson - 5.0).abs() < 0.05, "{poisson}");
        // The half-normal's mean: sd * sqrt(2 / pi).
        let half = mean_ms(Think::Gaussian {
            mean_ms: 0.0,
            stdev_ms: 1.0,
        });
        assert!(
            (half - (2.0 / std::f64::consts::PI).sqrt()).abs() < 0.01,
            "{half}"
        );
        // Truncated at 0: mean + sd * phi(1) / Phi(1) for mean = sd.
        let truncated = mean_ms(Think::Gaussian {
            mean_ms: 1.0,
            stdev_ms: 1.0,
        });
        assert!((truncated - 1.2876).abs() < 0.01, "{truncated}");
    }

    #[test]
    fn uniform_draws_stay_within_and_reach_both_ends() {
        let mut rng = SmallRng::seed_from_u64(3);
        let time = ThinkTime::new(&Think::Uniform {
            min_ms: 2.0,
            max_ms: 4.0,
        });
        let draws: Vec<u64> = (0..10_000).map(|_| time.draw(&mut rng).unwrap()).collect();
        let (min, max) = (draws.iter().min().unwrap(), draws.iter().max().unwrap());
        assert!((2_000_000..2_010_000).contains(min), "{min}");
        assert!((3_990_000..=4_000_000).contains(max), "{max}");
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed| {
            let mut rng = SmallRng::seed_from_u64(seed);
            let time = ThinkTime::new(&Think::Exponential { mean_ms: 1.0 });
            (0..10).map(|_| time.draw(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
