//! Reads the values that options and query keys carry: durations, shares, distributions,
//! `key=value` lists. Pure functions from text to value or to one sentence; it knows nothing of
//! what the values are used for.

use std::fmt::Write as _;

/// A day: longer times are taken for a typing error.
const LONGEST_NS: f64 = 86_400e9;

/// How long a request waits before it is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    None,
    Fixed {
        ns: u64,
    },
    Exponential {
        mean_ns: u64,
    },
    /// `exp(N(ln median, sigma))`.
    LogNormal {
        median_ns: u64,
        sigma: f64,
    },
    /// `high_ns` with probability `share_high`, else `low_ns`.
    Bimodal {
        low_ns: u64,
        high_ns: u64,
        share_high: f64,
    },
}

impl Delay {
    /// Whether what was drawn is the high one of a bimodal.
    pub fn is_tail(&self, drawn_ns: u64) -> bool {
        matches!(self, Self::Bimodal { low_ns, high_ns, .. } if drawn_ns == *high_ns && low_ns != high_ns)
    }
}

/// A duration such as `150ms`, `1.5s`, `50us`, `2m` or `0`, in nanoseconds.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| c.is_ascii_alphabetic() || c == 'µ')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let wanted = || {
        format!(
            "'{text}' is not a duration: write a number with its unit, e.g. 50us, 150ms, 1.5s or 2m"
        )
    };
    let value: f64 = number.trim().parse().map_err(|_| wanted())?;
    let factor = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" if value == 0.0 => 1.0,
        _ => return Err(wanted()),
    };
    let ns = value * factor;
    if value.is_sign_negative() && value != 0.0 {
        return Err(format!("'{text}' is negative: a duration is 0 or more"));
    }
    if !ns.is_finite() || ns > LONGEST_NS {
        return Err(format!("'{text}' is longer than a day: give less than 24h"));
    }
    Ok(ns.round() as u64)
}

/// A duration that must be more than zero.
pub fn positive_duration_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text)? {
        0 => Err(format!("'{text}' is zero: give a duration of more than 0")),
        ns => Ok(ns),
    }
}

/// A share between 0 and 1.
pub fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        Ok(value) => Err(format!(
            "the share {value} is outside 0..1: give a part of all requests, e.g. 0.02 for 2 %"
        )),
        Err(_) => Err(format!(
            "'{text}' is not a share: give a number from 0 to 1, e.g. 0.02 for 2 %"
        )),
    }
}

/// `share=0.01`, or the bare number `0.01`.
pub fn lone_share(text: &str) -> Result<f64, String> {
    if !text.contains('=') {
        return share(text);
    }
    let mut fields = Fields::parse(text, &["share"])?;
    share(fields.need("share")?)
}

/// A finite number that is not below `least`.
pub fn number_from(text: &str, least: f64, name: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= least => Ok(value),
        _ => Err(format!(
            "{name}={text} is not possible: give a number of at least {least}"
        )),
    }
}

/// A whole number within `range`.
pub fn whole(text: &str, range: std::ops::RangeInclusive<u64>, name: &str) -> Result<u64, String> {
    match text.trim().parse::<u64>() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(format!(
            "{name} {text} is not possible: give a whole number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}

/// `yes`/`no` (also `true`/`false`, `1`/`0`; empty means yes, as in `?chunked`).
pub fn flag(text: &str) -> Result<bool, String> {
    match text {
        "" | "1" | "yes" | "true" => Ok(true),
        "0" | "no" | "false" => Ok(false),
        other => Err(format!("'{other}' is neither yes nor no")),
    }
}

/// `none`, `fixed:150ms`, `exp:10ms`, `lognormal:10ms,0.5`, `bimodal:5ms,50ms,0.1`, or a bare
/// duration (fixed).
pub fn delay(text: &str) -> Result<Delay, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let parts: Vec<&str> = if rest.is_empty() {
        Vec::new()
    } else {
        rest.split(',').collect()
    };
    let fixed = |ns: u64| {
        if ns == 0 {
            Delay::None
        } else {
            Delay::Fixed { ns }
        }
    };
    match (kind, parts.as_slice()) {
        ("none", []) => Ok(Delay::None),
        ("fixed", [ns]) => Ok(fixed(duration_ns(ns)?)),
        ("exp" | "exponential", [mean]) => Ok(Delay::Exponential {
            mean_ns: positive_duration_ns(mean)?,
        }),
        ("lognormal", [median, sigma]) => Ok(Delay::LogNormal {
            median_ns: positive_duration_ns(median)?,
            sigma: number_from(sigma, 0.0, "sigma")?,
        }),
        ("bimodal", [low, high, share_high]) => Ok(Delay::Bimodal {
            low_ns: duration_ns(low)?,
            high_ns: duration_ns(high)?,
            share_high: share(share_high)?,
        }),
        (bare, []) if bare.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => {
            Ok(fixed(duration_ns(bare)?))
        }
        _ => Err(format!(
            "'{text}' is not a delay: write none, fixed:150ms, exp:10ms, lognormal:10ms,0.5 (median, sigma) or \
             bimodal:5ms,50ms,0.1 (low, high, share of high)"
        )),
    }
}

/// The fields of a `key=value,key=value` text whose keys have been checked.
#[derive(Debug)]
pub struct Fields<'a> {
    text: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    /// Splits `text`; a key that is not in `known`, or given twice, is refused with the list of
    /// known ones.
    pub fn parse(text: &'a str, known: &[&str]) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',') {
            let listed = known.iter().fold(String::new(), |mut all, key| {
                let _ = write!(all, "{}{key}=", if all.is_empty() { "" } else { ", " });
                all
            });
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("'{part}' is not key=value: known here: {listed}"));
            };
            let key = key.trim();
            if !known.contains(&key) {
                return Err(format!("unknown key '{key}': known here: {listed}"));
            }
            if pairs.iter().any(|(seen, _)| *seen == key) {
                return Err(format!("'{key}' is given twice"));
            }
            pairs.push((key, value.trim()));
        }
        Ok(Self { text, pairs })
    }

    /// The value of an optional key.
    pub fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.pairs.iter().position(|(name, _)| *name == key)?;
        Some(self.pairs.swap_remove(at).1)
    }

    /// The value of a key that must be there.
    pub fn need(&mut self, key: &str) -> Result<&'a str, String> {
        self.take(key)
            .ok_or_else(|| format!("'{}' lacks {key}=", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_in_every_unit() {
        for (text, ns) in [
            ("50us", 50_000),
            ("150ms", 150_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("0", 0),
            ("0ms", 0),
            ("7ns", 7),
            ("1h", 3_600_000_000_000),
            (" 5 ms", 5_000_000),
        ] {
            assert_eq!(duration_ns(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn nonsense_durations_are_refused_with_a_sentence() {
        for text in [
            "",
            "5",
            "ms",
            "-1ms",
            "1e400s",
            "nan s",
            "25h",
            "5 parsecs",
            "--3ms",
        ] {
            let message = duration_ns(text).unwrap_err();
            assert!(
                message.contains(text.trim()) && message.contains(':'),
                "{text}: {message}"
            );
        }
        assert!(positive_duration_ns("0s").is_err());
    }

    #[test]
    fn shares_stay_between_0_and_1() {
        assert_eq!(lone_share("share=0.02"), Ok(0.02));
        assert_eq!(lone_share("1"), Ok(1.0));
        for text in [
            "share=1.01",
            "-0.1",
            "NaN",
            "share=",
            "half",
            "part=0.1",
            "share=0.1,share=0.2",
        ] {
            assert!(lone_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn delays_of_every_kind() {
        assert_eq!(delay("none"), Ok(Delay::None));
        assert_eq!(delay("fixed:150ms"), Ok(Delay::Fixed { ns: 150_000_000 }));
        assert_eq!(delay("150ms"), Ok(Delay::Fixed { ns: 150_000_000 }));
        assert_eq!(delay("0"), Ok(Delay::None));
        assert_eq!(
            delay("exp:10ms"),
            Ok(Delay::Exponential {
                mean_ns: 10_000_000
            })
        );
        assert_eq!(
            delay("lognormal:10ms,0.5"),
            Ok(Delay::LogNormal {
                median_ns: 10_000_000,
                sigma: 0.5
            })
        );
        assert_eq!(
            delay("bimodal:5ms,50ms,0.1"),
            Ok(Delay::Bimodal {
                low_ns: 5_000_000,
                high_ns: 50_000_000,
                share_high: 0.1
            })
        );
        for text in [
            "",
            "fixed",
            "fixed:",
            "exp:0ms",
            "exp:-1ms",
            "lognormal:10ms",
            "lognormal:1ms,-1",
            "gamma:1ms",
        ] {
            assert!(delay(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_name_the_known_keys() {
        let message = Fields::parse("evry=1s", &["every", "for"]).unwrap_err();
        assert_eq!(message, "unknown key 'evry': known here: every=, for=");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in "\\PC{0,40}") {
            let _ = duration_ns(&text);
            let _ = lone_share(&text);
            let _ = delay(&text);
            let _ = flag(&text);
            let _ = Fields::parse(&text, &["every", "for"]);
        }

        #[test]
        fn a_written_duration_is_read_back(us in 0u64..86_000_000_000) {
            prop_assert_eq!(duration_ns(&format!("{us}us")), Ok(us * 1000));
        }
    }
}
