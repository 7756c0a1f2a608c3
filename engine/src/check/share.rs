//! Refuses a share of a load that is none, and loads that several engines cannot offer together.

use super::{PlanError, within};
use crate::plan::Plan;

/// More do not make weights any better.
const MAX_SLOTS: u32 = 1_000_000;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let Some(share) = &plan.share else {
        return Ok(());
    };
    within("share.of", share.of, 1..=MAX_SLOTS)?;
    let rises = share.slots.is_sorted_by(|one, next| one < next);
    refuse_if! {
        share.slots.is_empty() || !rises || share.slots.iter().any(|slot| *slot >= share.of) =>
            "share.slots is {:?}, expected rising numbers, each below share.of, {}", share.slots, share.of;
    }
    let alone = [
        ("script", plan.script.is_some()),
        ("rates", plan.rates.is_some()),
    ];
    for (name, given) in alone {
        refuse_if! {
            given => "{name} is set beside share, expected one of them: it is for one engine";
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::check::read_plan;

    fn refusal(edit: impl FnOnce(&mut Value)) -> String {
        let mut plan = json!({"version": 1, "target": {"url": "http://h:1"},
            "load": {"model": "closed", "users": 4}, "scenarios": [{"steps": [{"path": "/"}]}],
            "stop": {"after_ms": 1000}, "share": {"slots": [0, 2], "of": 3}});
        edit(&mut plan);
        read_plan(&plan.to_string())
            .map(drop)
            .map_or_else(|error| error.0, |()| String::new())
    }

    #[test]
    fn slots_are_some_of_those_there_are() {
        assert_eq!(refusal(|_| ()), "");
        for slots in [json!([]), json!([2, 0]), json!([1, 1]), json!([0, 3])] {
            let sentence = refusal(|plan| plan["share"]["slots"] = slots);
            assert!(sentence.contains("each below share.of, 3"), "{sentence}");
        }
        let sentence = refusal(|plan| plan["share"]["of"] = 0.into());
        assert!(sentence.contains("share.of is 0"), "{sentence}");
    }

    #[test]
    fn what_is_for_one_engine_is_not_shared() {
        let sentence = refusal(|plan| plan["rates"] = json!({"groups": 1, "every_ms": 100}));
        assert!(
            sentence.starts_with("rates is set beside share"),
            "{sentence}"
        );
    }

    #[test]
    fn each_thread_has_a_place_in_the_share() {
        let sentence = refusal(|plan| {
            plan["load"] = json!({"model": "open", "max_users": 2,
                "phases": [{"duration_ms": 10, "from_per_s": 5, "to_per_s": 5}]});
            plan["threads"] = json!({"cpus": [0, 1]});
        });
        assert!(
            sentence.contains("one per thread, in the share of this engine"),
            "{sentence}"
        );
    }
}
