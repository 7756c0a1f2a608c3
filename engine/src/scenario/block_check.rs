//! What a block may say: one kind, and only the lists that belong to it. Errors are sentences; it knows
//! nothing of what is made of a block.

use super::fork::MAX_AT_ONCE;
use crate::plan::{BLOCK_KEYS, Block, Choice, Pace, Parallel};
use crate::refusal::{check_think, within};

/// Exactly one kind, and the lists that belong to it.
pub(super) fn check_block(block: &Block) -> Result<(), String> {
    let given = serde_json::to_value(block).unwrap_or_default();
    let kinds = BLOCK_KEYS.into_iter();
    let kinds: Vec<&str> = kinds.filter(|key| given.get(key).is_some()).collect();
    let [kind] = kinds.as_slice() else {
        refuse! { "a block has the keys {}, expected exactly one of them", kinds.join(", ") }
    };
    let alone = matches!(*kind, "pause" | "pace" | "set" | "call" | "note");
    if alone != block.steps.is_empty() {
        let expected = if alone {
            "no steps"
        } else {
            "at least one step"
        };
        refuse! { "the block {kind} expects {expected}" }
    }
    refuse_if! {
        !block.otherwise.is_empty() && *kind != "if" =>
            "the block {kind} has else, which only if has";
        !block.weights.is_empty() && block.choice != Some(Choice::Random) =>
            "weights stand with choice: random only";
        matches!(block.once, Some(false)) || matches!(block.group, Some(false)) =>
            "the block {kind} is false, expected true";
    }
    if let Some(share) = &block.share {
        within("share.percent", share.percent, 0.0..=100.0).map_err(|error| error.0)?;
    }
    if let Some(pace) = &block.pace {
        check_pace(pace)?;
    }
    if let Some(parallel) = &block.parallel {
        check_parallel(parallel)?;
    }
    if let Some(think) = &block.pause {
        check_think("pause", think).map_err(|error| error.0)?;
    }
    Ok(())
}

fn check_pace(pace: &Pace) -> Result<(), String> {
    refuse_if! {
        pace.per_min.is_some() != pace.phases.is_empty() =>
            "pace has both per_min and phases, or none, expected one of them";
    }
    if let Some(per_min) = pace.per_min
        && !(0.001..=6e7).contains(&per_min)
    {
        refuse! { "pace.per_min is {per_min}, expected 0.001 to 60,000,000" }
    }
    for phase in &pace.phases {
        let rates = [phase.from_per_s, phase.to_per_s];
        let lasts = (1e-3..=1e10).contains(&phase.duration_ms);
        refuse_if! {
            !lasts || !rates.iter().all(|rate| (0.0..=1e6).contains(rate)) =>
                "pace.phases has one of {} ms from {} to {} per second, expected a time above 0 and rates from 0 to 1,000,000", phase.duration_ms, phase.from_per_s, phase.to_per_s;
        }
    }
    Ok(())
}

fn check_parallel(parallel: &Parallel) -> Result<(), String> {
    within("parallel.at_once", parallel.at_once, 1..=MAX_AT_ONCE).map_err(|error| error.0)?;
    refuse_if! {
        parallel.each.is_none() && (parallel.element.is_some() || parallel.as_json) =>
            "parallel has as or as_json without each, expected each: NAME beside it";
    }
    Ok(())
}
