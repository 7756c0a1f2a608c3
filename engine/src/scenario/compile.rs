//! The scenarios of a plan, compiled: requests, captures, feeders, the way through them. Errors name the scenario, the step and the
//! place. It reads the plan's files and nothing else.

use std::sync::atomic::AtomicU64;

use super::capture::Look;
use super::feeder::Feeder;
use super::request::Request;
use super::template::Scope;
use super::vars::{Shape, Shared};
use super::walk::Walk;
use crate::check::PlanError;
use crate::plan::{Plan, Step};

/// One step, ready to be written and looked at.
#[derive(Debug)]
pub struct CompiledStep {
    pub request: Request,
    /// `None`: nothing of its answer is kept.
    pub look: Option<Look>,
    /// The captured values without which it is not sent.
    pub needs: Vec<usize>,
    /// Its row among the figures per step.
    pub figure: usize,
}

/// A row of the figures per step: steps of one scenario with the same name share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepName {
    pub scenario: String,
    pub step: String,
}

/// See the module.
#[derive(Debug)]
pub struct Scenarios {
    pub steps: Vec<CompiledStep>,
    pub walk: Walk,
    pub shared: Shared,
    pub figures: Vec<StepName>,
    /// The values of a user; `None` when users have none.
    pub shape: Option<Shape>,
}

impl Scenarios {
    /// From a checked plan. `authority` is the target's host and port as written in its URL.
    pub fn compile(plan: &Plan, authority: &str) -> Result<Self, PlanError> {
        let mut scope = Scope::default();
        let mut shared = Shared::default();
        for feeder in &plan.feeders {
            let (read, columns) = Feeder::read(feeder)?;
            shared.feeders.push(read);
            scope.feeders.push((feeder.name.clone(), columns));
        }
        let all = plan.scenarios.iter().flat_map(|scenario| &scenario.steps);
        for capture in all.flat_map(|step| &step.capture) {
            scope.capture(&capture.name);
        }
        let mut steps = Vec::new();
        let mut figures: Vec<StepName> = Vec::new();
        for scenario in &plan.scenarios {
            scope.visible.clear();
            for (place, step) in scenario.steps.iter().enumerate() {
                let wrong = |why: String| {
                    PlanError(format!(
                        "scenario {:?}, step {} ({}): {why}",
                        scenario.name,
                        place + 1,
                        name_of(step)
                    ))
                };
                let version = plan.http_version;
                let request = Request::compile(step, authority, version, plan.cookies, &mut scope)
                    .map_err(wrong)?;
                let look = Look::compile(&step.capture, &step.expect.json, plan.cookies, |name| {
                    scope.capture(name)
                })
                .map_err(wrong)?;
                scope.visible.extend(look.sets());
                let name = StepName {
                    scenario: scenario.name.clone(),
                    step: name_of(step),
                };
                let figure = figures.iter().position(|known| *known == name);
                let figure = figure.unwrap_or_else(|| {
                    figures.push(name);
                    figures.len() - 1
                });
                steps.push(CompiledStep {
                    needs: request.needs(),
                    request,
                    look: (!look.is_idle()).then_some(look),
                    figure,
                });
            }
        }
        shared.sequences = (0..scope.sequences()).map(|_| AtomicU64::new(0)).collect();
        let uses_vars = steps
            .iter()
            .any(|step| step.request.uses_vars() || step.look.is_some());
        let shape = Shape {
            captured: scope.captured.len(),
            counters: scope.user_sequences(),
            feeders: shared.feeders.len(),
        };
        Ok(Self {
            steps,
            walk: Walk::new(&plan.scenarios, plan.scenario_choice),
            shared,
            figures,
            shape: (uses_vars || shape.feeders > 0).then_some(shape),
        })
    }
}

/// A step's name, or else its method and path.
fn name_of(step: &Step) -> String {
    step.name
        .clone()
        .unwrap_or_else(|| format!("{} {}", step.method, step.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn compile(edit: impl FnOnce(&mut Value)) -> Result<Scenarios, String> {
        let mut plan = json!({"version": 1, "target": {"url": "http://h:1"}, "load": {"model": "closed", "users": 1},
            "scenarios": [{"name": "crud", "steps": [{"name": "add", "path": "/a", "capture": [{"name": "id", "json": "/id"}]},
                {"name": "get", "path": "/a/${id}"}]}], "stop": {"total_requests": 1}});
        edit(&mut plan);
        let plan = crate::check::read_plan(&plan.to_string()).map_err(|error| error.0)?;
        Scenarios::compile(&plan, "h:1").map_err(|error| error.0)
    }

    #[test]
    fn values_go_from_earlier_steps_to_later_ones() {
        let scenarios = compile(|_| {}).unwrap();
        assert_eq!(scenarios.steps[1].needs, [0]);
        assert!(scenarios.steps[0].look.is_some() && scenarios.steps[1].look.is_none());
        assert!(scenarios.shape.is_some());
        let backwards = compile(|plan| {
            plan["scenarios"][0]["steps"]
                .as_array_mut()
                .unwrap()
                .reverse();
        })
        .unwrap_err();
        assert!(backwards.contains("scenario \"crud\", step 1 (get): path, character 4: ${id} is not captured by an earlier step"), "{backwards}");
    }

    #[test]
    fn an_unknown_name_is_refused_with_what_is_known() {
        let unknown = compile(|plan| plan["scenarios"][0]["steps"][1]["path"] = "/a/${idd}".into())
            .unwrap_err();
        assert!(
            unknown.contains("step 2 (get)") && unknown.contains("expected one of: id, sequence"),
            "{unknown}"
        );
    }

    #[test]
    fn a_plain_scenario_gives_its_users_nothing_to_keep() {
        let plain = compile(|plan| {
            plan["scenarios"] = json!([{"steps": [{"path": "/"}, {"path": "/${uuid}"}]}]);
        })
        .unwrap();
        assert_eq!(plain.shape, None);
        assert!(plain.walk.is_plain());
        assert_eq!(plain.figures[1].step, "GET /${uuid}");
    }

    #[test]
    fn steps_of_one_name_share_their_figures() {
        let shared = compile(|plan| {
            plan["scenarios"] = json!([{"steps": [{"name": "a", "path": "/1"}, {"name": "a", "path": "/2"}]},
                {"name": "other", "steps": [{"name": "a", "path": "/1"}]}]);
        })
        .unwrap();
        let figures: Vec<usize> = shared.steps.iter().map(|step| step.figure).collect();
        assert_eq!(figures, [0, 0, 1]);
    }
}
