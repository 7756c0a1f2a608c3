//! Refuses populations that cannot be run, and what does not go together with them.

use super::{MAX_USERS, check_ramp, check_think, duration};
use crate::check::PlanError;
use crate::plan::{Load, Plan, PopulationPlan};

const MAX_POPULATIONS: usize = 1_000;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let Load::Closed {
        users,
        populations,
        think,
        ramp_up_ms,
        ramp_up_steps,
        ramp_down_ms,
        ramp_down_steps,
    } = &plan.load
    else {
        return Ok(());
    };
    refuse_if! {
        users.is_some() != populations.is_empty() =>
            "load.users and load.populations: expected exactly one of them, a number of users or a list of groups";
    }
    if populations.is_empty() {
        return Ok(());
    }
    refuse_if! {
        populations.len() > MAX_POPULATIONS =>
            "load.populations holds {}, expected at most {MAX_POPULATIONS}", populations.len();
        *ramp_up_ms > 0.0
            || *ramp_down_ms > 0.0
            || ramp_up_steps.is_some()
            || ramp_down_steps.is_some() =>
            "load.populations is set, expected no load.ramp_up and no load.ramp_down beside it: each population has a ramp-up of its own, and a duration_ms";
        plan.stop.iterations_per_user.is_some() =>
            "load.populations is set, expected no stop.iterations_per_user beside it: each population has its own";
    }
    check_think("load.think", think)?;
    for (place, one) in populations.iter().enumerate() {
        let here = format!("load.populations[{place}]");
        refuse_if! {
            one.name.is_empty()
                || populations[..place]
                    .iter()
                    .any(|other| other.name == one.name) =>
                "{here}.name is {:?}, expected a name that no other population has", one.name;
        }
        check_one(&here, one, plan)?;
    }
    let users: u64 = populations.iter().map(|one| u64::from(one.users)).sum();
    refuse_if! {
        users > MAX_USERS.into() =>
            "load.populations have {users} users together, expected at most {MAX_USERS}";
    }
    let stop = &plan.stop;
    let bounded = stop.after_ms.is_some() || stop.total_requests.is_some();
    let endless =
        |one: &&PopulationPlan| one.duration_ms.is_none() && one.iterations_per_user.is_none();
    if let Some(endless) = populations.iter().find(endless).filter(|_| !bounded) {
        refuse! {
            "the population {:?} has no end, expected its duration_ms or iterations_per_user, or stop.after_ms or total_requests: a run is always bounded", endless.name
        }
    }
    check_scenarios(plan, populations)
}

fn check_one(here: &str, one: &PopulationPlan, plan: &Plan) -> Result<(), PlanError> {
    refuse_if! { one.users == 0 => "{here}.users is 0, expected 1 to {MAX_USERS}"; }
    duration(&format!("{here}.start_ms"), one.start_ms, true)?;
    check_ramp(
        &format!("{here}.ramp_up"),
        one.ramp_up_ms,
        one.ramp_up_steps,
    )?;
    if let Some(span_ms) = one.duration_ms {
        duration(&format!("{here}.duration_ms"), span_ms, false)?;
    }
    refuse_if! {
        one.iterations_per_user == Some(0) =>
            "{here}.iterations_per_user is 0, expected at least 1";
    }
    if let Some(think) = &one.think {
        check_think(&format!("{here}.think"), think)?;
    }
    let unknown = |names: &[String], known: &[&str]| {
        let mut names = names.iter();
        names.find(|name| !known.contains(&name.as_str())).cloned()
    };
    let scenarios: Vec<&str> = plan.scenarios.iter().map(|one| one.name.as_str()).collect();
    if let Some(name) = unknown(&one.scenarios, &scenarios) {
        refuse! { "{here}.scenarios names {name:?}, expected one of: {}", scenarios.join(", ") }
    }
    let feeders: Vec<&str> = plan.feeders.iter().map(|one| one.name.as_str()).collect();
    let Some(named) = &one.feeders else {
        return Ok(());
    };
    if let Some(name) = unknown(named, &feeders) {
        refuse! { "{here}.feeders names {name:?}, expected some of: {}", feeders.join(", ") }
    }
    let others = feeders
        .iter()
        .filter(|name| !named.iter().any(|drawn| drawn == *name));
    for name in others {
        let mut walked = plan
            .scenarios
            .iter()
            .filter(|scenario| one.walks(&scenario.name));
        let uses = walked.find(|scenario| {
            serde_json::to_string(scenario).is_ok_and(|text| text.contains(&format!("${{{name}.")))
        });
        if let Some(scenario) = uses {
            refuse! {
                "{here}.feeders leaves out {name:?}, but its scenario {:?} sends values of it: expected it among them", scenario.name
            }
        }
    }
    Ok(())
}

/// Each scenario is walked by somebody, and those who share one make the same pauses.
fn check_scenarios(plan: &Plan, populations: &[PopulationPlan]) -> Result<(), PlanError> {
    for scenario in &plan.scenarios {
        let name = &scenario.name;
        let mut who = populations.iter().filter(|one| one.walks(name));
        let Some(first) = who.next() else {
            refuse! { "the scenario {name:?} is walked by no population, expected it among the scenarios of one" }
        };
        if let Some(other) = who.find(|other| other.think != first.think) {
            refuse! {
                "the populations {:?} and {:?} walk the scenario {name:?} with different think: expected a scenario for each, or the pause in its steps", first.name, other.name
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::check::read_plan;

    fn read(edit: impl FnOnce(&mut Value)) -> Result<(), String> {
        let mut plan = json!({
            "version": 1, "target": {"url": "http://h:1"},
            "load": {"model": "closed", "populations": [
                {"name": "few", "users": 2, "iterations_per_user": 3, "scenarios": ["a"]},
                {"name": "many", "users": 9, "duration_ms": 50, "scenarios": ["b"]},
            ]},
            "scenarios": [{"name": "a", "steps": [{"path": "/a"}]}, {"name": "b", "steps": [{"path": "/b"}]}],
            "stop": {},
        });
        edit(&mut plan);
        read_plan(&plan.to_string())
            .map(drop)
            .map_err(|error| error.0)
    }

    #[test]
    fn what_cannot_be_run_is_refused_by_a_sentence_that_names_the_place() {
        assert_eq!(read(|_| ()), Ok(()));
        type Edit = fn(&mut Value);
        let cases: [(Edit, &str); 14] = [
            (
                |plan| plan["load"]["users"] = 3.into(),
                "exactly one of them",
            ),
            (
                |plan| plan["load"]["populations"] = json!([]),
                "exactly one of them",
            ),
            (
                |plan| plan["load"]["ramp_down_ms"] = 5.into(),
                "no load.ramp_down",
            ),
            (
                |plan| plan["stop"]["iterations_per_user"] = 5.into(),
                "each population has its own",
            ),
            (
                |plan| plan["load"]["populations"][1]["name"] = "few".into(),
                "no other population has",
            ),
            (
                |plan| plan["load"]["populations"][1]["users"] = 0.into(),
                "populations[1].users is 0",
            ),
            (
                |plan| plan["load"]["populations"][0]["users"] = 16_000_000.into(),
                "16000009 users together",
            ),
            (
                |plan| plan["load"]["populations"][1]["start_ms"] = (-1).into(),
                "populations[1].start_ms is -1",
            ),
            (
                |plan| plan["load"]["populations"][1]["duration_ms"] = Value::Null,
                "\"many\" has no end",
            ),
            (
                |plan| plan["load"]["populations"][0]["iterations_per_user"] = 0.into(),
                "iterations_per_user is 0",
            ),
            (
                |plan| plan["load"]["populations"][0]["scenarios"][0] = "c".into(),
                "names \"c\", expected one of: a, b",
            ),
            (
                |plan| plan["load"]["populations"][0]["scenarios"][0] = "b".into(),
                "\"a\" is walked by no population",
            ),
            (
                |plan| {
                    plan["load"]["populations"][0]["scenarios"] = json!([]);
                    plan["load"]["populations"][0]["think"] = json!({"kind": "constant", "ms": 5});
                },
                "\"few\" and \"many\" walk the scenario \"b\" with different think",
            ),
            (
                |plan| {
                    plan["feeders"] = json!([{"name": "f", "file": "f.csv", "order": "sequence", "at_end": "recycle"}]);
                    plan["load"]["populations"][1]["feeders"] = json!([]);
                    plan["scenarios"][1]["steps"][0]["path"] = "/${f.id}".into();
                },
                "leaves out \"f\", but its scenario \"b\"",
            ),
        ];
        for (edit, expected) in cases {
            let refusal = read(edit).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
