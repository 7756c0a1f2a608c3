//! Figures as `done` is given them: values with their counts, seen through the methods of wrk's
//! statistics objects.

use mlua::{MetaMethod, UserData, UserDataFields, UserDataMethods, Value};
use prony_script::Samples;

/// Samples as a script sees them.
#[derive(Debug, Clone, Default)]
pub struct Stats(pub Samples);

impl Stats {
    fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 {
            return 0.0;
        }
        let sum: f64 = self
            .0
            .iter()
            .map(|(value, count)| *value as f64 * *count as f64)
            .sum();
        sum / count as f64
    }

    /// Of the sample (n − 1).
    fn stdev(&self) -> f64 {
        let count = self.count();
        if count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self
            .0
            .iter()
            .map(|(value, count)| (*value as f64 - mean).powi(2) * *count as f64)
            .sum();
        (squares / (count - 1) as f64).sqrt()
    }

    /// The smallest value with at least so many percent of the samples at or below it.
    fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent / 100.0 * self.count() as f64 + 0.5).round() as u64;
        let mut seen = 0;
        for (value, count) in &self.0 {
            seen += count;
            if seen >= rank {
                return *value;
            }
        }
        0
    }
}

impl UserData for Stats {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        let first = |stats: &Stats| stats.0.first().map_or(0, |(value, _)| *value);
        let last = |stats: &Stats| stats.0.last().map_or(0, |(value, _)| *value);
        fields.add_field_method_get("min", move |_, this| Ok(first(this) as f64));
        fields.add_field_method_get("max", move |_, this| Ok(last(this) as f64));
        fields.add_field_method_get("mean", |_, this| Ok(this.mean()));
        fields.add_field_method_get("stdev", |_, this| Ok(this.stdev()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percent: f64| {
            Ok(this.percentile(percent) as f64)
        });
        methods.add_meta_method(MetaMethod::Index, |lua, _, key: Value| {
            super::thread::unknown(lua, key)
        });
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.0.len() as f64));
        methods.add_meta_method(MetaMethod::Call, |_, this, place: usize| {
            let (value, count) = place
                .checked_sub(1)
                .and_then(|index| this.0.get(index))
                .copied()
                .unwrap_or_default();
            Ok((value as f64, count as f64))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_samples() {
        let stats = Stats(vec![(10, 2), (20, 1), (40, 1)]);
        assert_eq!(stats.mean(), 20.0);
        assert_eq!(stats.stdev(), (600.0f64 / 3.0).sqrt());
        assert_eq!(stats.percentile(50.0), 20);
        assert_eq!(stats.percentile(99.0), 40);
        assert_eq!(Stats::default().percentile(50.0), 0);
        assert_eq!(Stats::default().stdev(), 0.0);
    }
}
