//! How the behaviour changes with time: stall windows, warm-up and slow-down. Pure functions of the
//! time since the server began to listen, so that they are tested without a clock.

use super::values::{Fields, duration_ns, number_from, positive_duration_ns};

/// Freezes of the whole server, or of every n-th connection as one of n workers that hold them
/// would cause: no request begins or ends in `[k·every, k·every + length)`, k = 1, 2, …
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    every_ns: u64,
    for_ns: u64,
    /// One connection in so many freezes; 1: all of them.
    one_in: u32,
}

impl Stall {
    /// Reads `every=10s,for=1s[,connections=1/8]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Fields::parse(text, &["every", "for", "connections"])?;
        let every_ns = positive_duration_ns(fields.need("every")?)?;
        let for_ns = positive_duration_ns(fields.need("for")?)?;
        if for_ns >= every_ns {
            return Err(format!(
                "'{text}' would stall all the time: for= must be shorter than every="
            ));
        }
        let one_in = fields.take("connections").map_or(Ok(1), one_in)?;
        Ok(Self {
            every_ns,
            for_ns,
            one_in,
        })
    }

    /// The earliest time at or after `elapsed_ns` at which this connection is in no stall.
    pub fn release_ns(&self, elapsed_ns: u64, connection: u32) -> u64 {
        if !connection.is_multiple_of(self.one_in) {
            return elapsed_ns;
        }
        let begin = elapsed_ns - elapsed_ns % self.every_ns;
        if begin > 0 && elapsed_ns < begin + self.for_ns {
            begin + self.for_ns
        } else {
            elapsed_ns
        }
    }
}

/// Reads `1/8`: one in eight.
fn one_in(text: &str) -> Result<u32, String> {
    let count = text.strip_prefix("1/").and_then(|count| count.parse().ok());
    count.filter(|count| *count > 0).ok_or_else(|| {
        format!("connections={text} is no part of them: write connections=1/8 for one in eight")
    })
}

/// What a curve multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppliesTo {
    Work,
    Delay,
    Both,
    /// The high one of `--delay bimodal` alone.
    Tail,
}

impl AppliesTo {
    fn parse(text: Option<&str>) -> Result<Self, String> {
        match text {
            None | Some("work") => Ok(Self::Work),
            Some("delay") => Ok(Self::Delay),
            Some("both") => Ok(Self::Both),
            Some("tail") => Ok(Self::Tail),
            Some(other) => Err(format!(
                "of={other} is unknown: write of=work, of=delay, of=both or of=tail"
            )),
        }
    }

    pub fn to_work(self) -> bool {
        matches!(self, Self::Work | Self::Both)
    }

    /// `tail`: of a delay that is the high one of a bimodal.
    pub fn to_delay(self, tail: bool) -> bool {
        matches!(self, Self::Delay | Self::Both) || (self == Self::Tail && tail)
    }
}

/// A server that gets faster: the factor falls exponentially from `from` at the start to exactly 1
/// after `over`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warmup {
    from: f64,
    over_ns: u64,
    pub of: AppliesTo,
}

impl Warmup {
    /// Reads `from=10,over=60s[,of=work|delay|both|tail]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Fields::parse(text, &["from", "over", "of"])?;
        let from = number_from(fields.need("from")?, 1.0, "from")?;
        let over_ns = positive_duration_ns(fields.need("over")?)?;
        Ok(Self {
            from,
            over_ns,
            of: AppliesTo::parse(fields.take("of"))?,
        })
    }

    /// `from^(1 − t/over)` until `over`, then 1.
    pub fn factor(&self, elapsed_ns: u64) -> f64 {
        if elapsed_ns >= self.over_ns {
            return 1.0;
        }
        self.from
            .powf(1.0 - elapsed_ns as f64 / self.over_ns as f64)
    }
}

/// A server that gets slower, as one that leaks does: the factor is `1 + per_minute · minutes`,
/// from `after` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    per_minute: f64,
    after_ns: u64,
    pub of: AppliesTo,
}

impl Slowdown {
    /// Reads `per-minute=0.05[,after=30s][,of=work|delay|both|tail]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Fields::parse(text, &["per-minute", "after", "of"])?;
        let per_minute = number_from(fields.need("per-minute")?, 0.0, "per-minute")?;
        let after_ns = fields.take("after").map_or(Ok(0), duration_ns)?;
        Ok(Self {
            per_minute,
            after_ns,
            of: AppliesTo::parse(fields.take("of"))?,
        })
    }

    pub fn factor(&self, elapsed_ns: u64) -> f64 {
        1.0 + self.per_minute * elapsed_ns.saturating_sub(self.after_ns) as f64 / 60e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_stall_holds_what_falls_into_it_until_its_end() {
        let stall = Stall::parse("every=10s,for=1s").unwrap();
        assert_eq!(
            stall.release_ns(0, 3),
            0,
            "the server does not begin with a stall"
        );
        assert_eq!(stall.release_ns(10 * S - 1, 3), 10 * S - 1);
        assert_eq!(stall.release_ns(10 * S, 3), 11 * S);
        assert_eq!(stall.release_ns(11 * S - 1, 3), 11 * S);
        assert_eq!(stall.release_ns(11 * S, 3), 11 * S);
        assert_eq!(stall.release_ns(25 * S, 3), 25 * S);
        assert_eq!(stall.release_ns(70 * S + 5, 3), 71 * S);
    }

    #[test]
    fn a_stall_of_one_connection_in_eight_leaves_the_others_alone() {
        let stall = Stall::parse("every=10s,for=1s,connections=1/8").unwrap();
        let held = (0..64).filter(|one| stall.release_ns(10 * S, *one) == 11 * S);
        assert_eq!(held.count(), 8);
        let free = (0..64).filter(|one| stall.release_ns(10 * S, *one) == 10 * S);
        assert_eq!(free.count(), 56);
    }

    #[test]
    fn the_tail_alone_can_slow_down() {
        let of = Slowdown::parse("per-minute=1,of=tail").unwrap().of;
        assert!(of.to_delay(true) && !of.to_delay(false) && !of.to_work());
    }

    #[test]
    fn nonsense_stalls_are_refused() {
        for text in [
            "every=10s",
            "for=1s",
            "every=1s,for=1s",
            "every=0s,for=0s",
            "every=10s,for=-1s",
            "every=10s;for=1s",
            "every=10s,for=1s,connections=8",
            "every=10s,for=1s,connections=1/0",
            "every=10s,for=1s,connections=2/8",
        ] {
            assert!(Stall::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn warm_up_falls_from_its_factor_to_one() {
        let warmup = Warmup::parse("from=10,over=60s").unwrap();
        assert!((warmup.factor(0) - 10.0).abs() < 1e-9);
        assert!((warmup.factor(30 * S) - 10f64.sqrt()).abs() < 1e-9);
        assert!((warmup.factor(60 * S) - 1.0).abs() < 1e-9);
        assert!((warmup.factor(600 * S) - 1.0).abs() < 1e-9);
        assert!(warmup.of.to_work() && !warmup.of.to_delay(false));
        for text in [
            "from=0.5,over=60s",
            "from=10",
            "from=10,over=0s",
            "from=x,over=1s",
            "from=2,over=1s,of=all",
        ] {
            assert!(Warmup::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn slow_down_grows_by_the_minute() {
        let slowdown = Slowdown::parse("per-minute=0.05,of=both").unwrap();
        assert!((slowdown.factor(0) - 1.0).abs() < 1e-12);
        assert!((slowdown.factor(120 * S) - 1.1).abs() < 1e-12);
        assert!(slowdown.of.to_work() && slowdown.of.to_delay(false));
        let later = Slowdown::parse("per-minute=1,after=60s").unwrap();
        assert!((later.factor(60 * S) - 1.0).abs() < 1e-12);
        assert!((later.factor(120 * S) - 2.0).abs() < 1e-12);
        assert!(Slowdown::parse("per-minute=-1").is_err());
    }

    proptest! {
        #[test]
        fn a_release_is_never_early_and_never_inside_a_stall(every in 2u64..1_000_000, part in 0.01f64..0.99, at in 0u64..1_000_000_000) {
            let for_ns = ((every as f64 * part) as u64).clamp(1, every - 1);
            let stall = Stall { every_ns: every, for_ns, one_in: 1 };
            let release = stall.release_ns(at, 5);
            prop_assert!(release >= at && release - at <= for_ns);
            prop_assert_eq!(stall.release_ns(release, 5), release);
        }

        #[test]
        fn warm_up_is_monotone(from in 1.0f64..1000.0, a in 0u64..100_000_000_000, b in 0u64..100_000_000_000) {
            let warmup = Warmup { from, over_ns: 60 * S, of: AppliesTo::Work };
            let (early, late) = (a.min(b), a.max(b));
            prop_assert!(warmup.factor(early) >= warmup.factor(late) - 1e-9 && warmup.factor(late) >= 1.0 - 1e-9);
        }
    }
}
