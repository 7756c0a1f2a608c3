//! What the functions of a script count, over all interpreters of a run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use prony_script::Figures;

/// More names than this are a defect of the script; what comes under further ones is counted together.
const MAX_NAMES: usize = 1_000;
/// Likewise of different values of a histogram: further ones are rounded to two digits.
const MAX_VALUES: usize = 20_000;
const OTHERS: &str = "(other names)";

#[derive(Debug, Default)]
pub struct Counts(Mutex<Figures>);

impl Counts {
    fn with<T>(&self, act: impl FnOnce(&mut Figures) -> T) -> T {
        // A thread that panicked with the lock in hand has left counts that are still counts.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn figures(&self) -> Figures {
        self.with(|figures| figures.clone())
    }

    pub fn count(&self, name: String, by: f64) {
        self.with(|figures| *of(&mut figures.counters, name) += whole(by));
    }

    pub fn rate(&self, name: String) {
        self.with(|figures| *of(&mut figures.rates, name) += 1);
    }

    pub fn record(&self, name: String, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.with(|figures| {
            let values = of(&mut figures.histograms, name);
            let mut tenths = (value * 10.0).round() as i64;
            if values.len() >= MAX_VALUES && !values.contains_key(&tenths) {
                tenths = two_digits(tenths);
            }
            *values.entry(tenths).or_insert(0) += 1;
        });
    }
}

/// What is counted under a name.
fn of<T: Default>(named: &mut BTreeMap<String, T>, name: String) -> &mut T {
    let name = if named.len() < MAX_NAMES || named.contains_key(&name) {
        name
    } else {
        OTHERS.to_owned()
    };
    named.entry(name).or_default()
}

/// A count as it is added: what is no positive number is nothing.
fn whole(by: f64) -> u64 {
    if by.is_finite() && by > 0.0 {
        by.round() as u64
    } else {
        0
    }
}

fn two_digits(tenths: i64) -> i64 {
    let digits = tenths.unsigned_abs().checked_ilog10().unwrap_or(0);
    let step = 10_i64.pow(digits.saturating_sub(1).min(17));
    tenths / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_sums_and_values_keep_a_tenth() {
        let counts = Counts::default();
        counts.count("a".to_owned(), 2.0);
        counts.count("a".to_owned(), 1.0);
        counts.count("a".to_owned(), f64::NAN);
        counts.rate("r".to_owned());
        counts.record("h".to_owned(), 1.25);
        counts.record("h".to_owned(), 1.3);
        let figures = counts.figures();
        assert_eq!(figures.counters["a"], 3);
        assert_eq!(figures.rates["r"], 1);
        assert_eq!(figures.histograms["h"], BTreeMap::from([(13, 2)]));
    }

    #[test]
    fn names_and_values_without_end_take_bounded_memory() {
        let counts = Counts::default();
        for number in 0..2 * MAX_NAMES {
            counts.count(number.to_string(), 1.0);
        }
        for number in 0..2 * MAX_VALUES {
            counts.record("h".to_owned(), number as f64);
        }
        let figures = counts.figures();
        assert_eq!(figures.counters.len(), MAX_NAMES + 1);
        assert_eq!(figures.counters[OTHERS], MAX_NAMES as u64);
        let values = &figures.histograms["h"];
        assert!(values.len() < MAX_VALUES + 1_000);
        assert_eq!(values.values().sum::<u64>(), 2 * MAX_VALUES as u64);
        assert_eq!((two_digits(123_456), two_digits(-7)), (120_000, -7));
    }
}
