//! How a plan is refused, and the bounds that several of its readers know: of durations and think
//! times. It must not know what else is in a plan.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::plan::Think;

/// A plan that cannot be run: one sentence for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError(pub String);

impl Display for PlanError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl From<String> for PlanError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

/// Refuses where one of these holds, by the sentence beside the first that does.
macro_rules! refuse_if {
    ($($holds:expr => $sentence:literal $(, $given:expr)*;)+) => {
        $(if $holds {
            return Err(format!($sentence $(, $given)*).into());
        })+
    };
}

/// Refuses by this sentence.
macro_rules! refuse {
    ($($sentence:tt)+) => { return Err(format!($($sentence)+).into()) };
}

/// Shorthand for a refusal.
pub fn refuse<T>(sentence: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError(sentence.into()))
}

/// A year: durations beyond it are a mistake in the plan.
const MAX_DURATION_MS: f64 = 366.0 * 24.0 * 3_600_000.0;

/// Checks a think time; `key`: where it stands in the plan.
pub fn check_think(key: &str, think: &Think) -> Result<(), PlanError> {
    match *think {
        Think::None => Ok(()),
        Think::Constant { ms } => duration(&format!("{key}.ms"), ms, true),
        Think::Uniform { min_ms, max_ms } => {
            duration(&format!("{key}.min_ms"), min_ms, true)?;
            duration(&format!("{key}.max_ms"), max_ms, true)?;
            refuse_if! {
                min_ms > max_ms =>
                    "{key}.min_ms is {min_ms} and max_ms is {max_ms}, expected min_ms <= max_ms";
            }
            Ok(())
        }
        Think::Exponential { mean_ms } => duration(&format!("{key}.mean_ms"), mean_ms, false),
        Think::Gaussian { mean_ms, stdev_ms } => {
            duration(&format!("{key}.mean_ms"), mean_ms, true)?;
            duration(&format!("{key}.stdev_ms"), stdev_ms, true)
        }
        Think::Poisson { mean_ms, offset_ms } => {
            duration(&format!("{key}.mean_ms"), mean_ms, false)?;
            duration(&format!("{key}.offset_ms"), offset_ms, true)
        }
    }
}

/// Checks that a number lies within these bounds; `name`: where it stands in the plan.
pub fn within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<(), PlanError> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (min, max) = bounds.into_inner();
    refuse(format!("{name} is {value}, expected {min} to {max}"))
}

/// Checks a duration; `name`: where it stands in the plan.
pub fn duration(name: &str, ms: f64, zero_allowed: bool) -> Result<(), PlanError> {
    let lowest = if zero_allowed { 0.0 } else { f64::MIN_POSITIVE };
    if ms.is_finite() && ms >= lowest && ms <= MAX_DURATION_MS {
        return Ok(());
    }
    let expected = if zero_allowed {
        "0 or more"
    } else {
        "more than 0"
    };
    refuse(format!(
        "{name} is {ms}, expected {expected} and at most a year, in milliseconds"
    ))
}
