//! The scenarios of a plan, compiled: requests, captures, feeders, the way through them. Errors
//! name the scenario, the step and the place. It reads the plan's files and nothing else.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::assemble::{Assembly, names};
use super::capture::Look;
use super::cookies::{CookieHost, Jar};
use super::feeder::Feeder;
use super::names::{Numbered, check_name};
use super::program::Program;
use super::redirect::TargetOrigin;
use super::reported::Reported;
use super::request::Request;
use super::resources::Resources;
use super::template::{Scope, Template};
use super::vars::{Shared, ValueCounts};
use super::walk::Walk;
use crate::pace::share::Part;
use crate::plan::{CookiePlan, Plan, Scenario, Step};
use crate::refusal::PlanError;

/// One step, ready to be written and looked at.
#[derive(Debug)]
pub struct CompiledStep {
    pub request: Request,
    /// `None`: nothing of its response is kept.
    pub look: Option<Look>,
    /// The captured values without which it is not sent.
    pub needs: Vec<usize>,
    /// Its row among the figures per step.
    pub figure: usize,
    /// Rows of the feeder that its target takes values of.
    pub rows: Option<u32>,
    /// Where it follows redirects: the row of all requests that belong to one of its own.
    pub chain_figure: Option<usize>,
}

/// A server that requests are written for.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// Its scheme, and its host and port as written in its URL.
    pub origin: &'a TargetOrigin,
    /// Without brackets: what cookies and certificates are for.
    pub host: &'a str,
}

impl Server<'_> {
    fn for_cookies(&self) -> CookieHost {
        CookieHost::new(self.host, self.origin.secure)
    }
}

/// A row of the figures per step: steps of one scenario with the same name share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepName {
    pub scenario: String,
    pub step: String,
    /// It stands for several requests.
    pub transaction: bool,
}

/// The compiled scenarios of a plan.
#[derive(Debug)]
pub struct Scenarios {
    pub steps: Vec<CompiledStep>,
    pub walk: Walk,
    /// Of scenarios with blocks or loops; `None` when none has any.
    pub program: Option<Program>,
    /// What comes next is decided anew before each request.
    pub decides: bool,
    /// Whether a user's cache begins anew with each iteration.
    pub forgets_cache: bool,
    /// The cookies that a user begins with; `None`: those it has.
    pub given_cookies: Option<Jar>,
    /// Whether a user's cookies begin anew with each iteration.
    pub forgets_cookies: bool,
    /// Number of a variable and its value for a user who starts.
    pub variables: Vec<(usize, Template)>,
    pub shared: Shared,
    pub figures: Vec<StepName>,
    /// The values of a user; `None` when users have none.
    pub shape: Option<ValueCounts>,
    pub reported: Reported,
}

impl Scenarios {
    /// From a checked plan, for these servers: the target and the others of the plan, in their order.
    pub fn compile(plan: &Plan, servers: &[Server<'_>]) -> Result<Self, PlanError> {
        let mut scope = Scope::default();
        let mut shared = Shared {
            part: Part::of(plan),
            ..Shared::default()
        };
        for feeder in &plan.feeders {
            let (read, columns) = Feeder::read(feeder, &shared.part)?;
            shared.feeders.push(read);
            scope.feeders.push((feeder.name.clone(), columns));
        }
        // Variables first: their numbers distinguish them from what is forgotten.
        for (name, _) in plan
            .scenarios
            .iter()
            .flat_map(|scenario| &scenario.variables)
        {
            scope.capture(name);
        }
        let variable_count = scope.captured.len();
        let numbered = numbered(plan);
        for scenario in &plan.scenarios {
            for name in names(&scenario.steps, &numbered) {
                scope.capture(&name);
            }
        }
        // Where requests may be passed over, what comes next is decided anew before each of them.
        let passes_over = plan.cache.is_some_and(|cache| cache.fresh);
        let decides = passes_over || plan.scenarios.iter().any(Scenario::needs_program);
        let programmed = decides || plan.scenarios.iter().any(Scenario::has_loops);
        let mut assembly = Assembly::new(&numbered);
        let mut variables = Vec::new();
        let mut steps = Vec::new();
        let mut figures: Vec<StepName> = Vec::new();
        for scenario in &plan.scenarios {
            scope.visible.clear();
            variables.extend(of_user(scenario, &mut scope)?);
            if decides {
                // What comes before what is not known where there are jumps: a request whose values
                // are not there is not sent.
                let set = names(&scenario.steps, &numbered).into_iter();
                let set: Vec<usize> = set.map(|name| scope.capture(&name)).collect();
                scope.visible.extend(set);
            }
            for (place, step) in scenario.requests().into_iter().enumerate() {
                let wrong = |why: String| {
                    PlanError(format!(
                        "scenario {:?}, step {} ({}): {why}",
                        scenario.name,
                        place + 1,
                        name_of(step)
                    ))
                };
                let version = plan.http_version;
                let server = servers[usize::from(step.target)];
                let cookies = plan.cookies.as_ref();
                let cookies = cookies.map(|_| Arc::new(server.for_cookies()));
                let mut request = Request::compile(
                    step,
                    &server.origin.authority,
                    version,
                    cookies.clone(),
                    plan.cache,
                    &mut scope,
                )
                .map_err(wrong)?;
                let expect = &step.expect;
                let slot = |name: &str| scope.capture(name);
                let mut look = Look::compile(&step.capture, expect, cookies, &numbered, slot)
                    .map_err(wrong)?;
                look.cache = plan.cache.filter(|_| step.method == "GET");
                look.fill(expect, &mut scope).map_err(wrong)?;
                if let Some(plan) = &step.resources {
                    let slot = scope.capture(&plan.into);
                    let resources = Resources::compile(plan, server.origin).map_err(wrong)?;
                    request.page = Some(slot);
                    look.resources = Some((slot, resources));
                }
                scope.visible.extend(look.sets());
                let (name, follows) = (name_of(step), step.follow_redirects > 0);
                let figure = row(&mut figures, scenario, &name, false);
                steps.push(CompiledStep {
                    needs: request.needs(),
                    rows: request.rows(&shared),
                    request,
                    look: (!look.is_idle()).then_some(look),
                    figure,
                    chain_figure: follows.then(|| row(&mut figures, scenario, &name, true)),
                });
            }
            if programmed {
                let mut figure = |name: &str| row(&mut figures, scenario, name, true);
                assembly
                    .scenario(scenario, &mut scope, &mut figure)
                    .map_err(|why| PlanError(format!("scenario {:?}: {why}", scenario.name)))?;
            }
        }
        shared.sequences = (0..scope.sequences()).map(|_| AtomicU64::new(0)).collect();
        let uses_vars = steps
            .iter()
            .any(|step| step.request.uses_vars() || step.look.is_some())
            || programmed;
        let reported = Reported::new(&plan.report, &scope.captured)?;
        let shape = ValueCounts {
            captured: scope.captured.len(),
            variables: variable_count,
            counters: scope.user_sequences(),
            feeders: shared.feeders.len(),
        };
        Ok(Self {
            steps,
            walk: Walk::new(&plan.scenarios, &plan.walked(), plan.scenario_choice),
            forgets_cache: plan.cache.is_some_and(|cache| cache.each_iteration),
            given_cookies: given_cookies(plan.cookies.as_ref(), servers),
            forgets_cookies: plan
                .cookies
                .as_ref()
                .is_some_and(|cookies| cookies.each_iteration),
            program: programmed.then(|| assembly.finish()),
            decides,
            variables,
            shared,
            figures,
            shape: (uses_vars || shape.feeders > 0).then_some(shape),
            reported,
        })
    }
}

/// `None` where a user begins with none and keeps what it has.
fn given_cookies(plan: Option<&CookiePlan>, servers: &[Server<'_>]) -> Option<Jar> {
    let plan = plan.filter(|plan| plan.each_iteration || !plan.given.is_empty())?;
    let mut jar = Jar::default();
    for cookie in &plan.given {
        let host = servers[usize::from(cookie.target)].for_cookies();
        jar.give(&cookie.name, &cookie.value, &cookie.path, &host);
    }
    Some(jar)
}

impl Scenarios {
    /// Whether what a user does later may depend on the response to this step.
    pub fn depends_on(&self, step: &CompiledStep) -> bool {
        let Some(look) = &step.look else {
            return false;
        };
        let compares = |step: &CompiledStep| step.look.as_ref().is_some_and(Look::compares_values);
        let reads_any = self.decides || self.steps.iter().any(compares);
        let needed = |slot| self.steps.iter().any(|step| step.needs.contains(&slot));
        look.compares_values() || look.sets().any(|slot| reads_any || needed(slot))
    }
}

/// Which numbered names are referred to; asked for only where a capture gives such.
fn numbered(plan: &Plan) -> Numbered {
    let mut steps = plan.scenarios.iter().flat_map(Scenario::requests);
    if !steps.any(|step| step.capture.iter().any(|capture| capture.which == -1)) {
        return Numbered::default();
    }
    Numbered::new(serde_json::to_string(&plan.scenarios).unwrap_or_default())
}

/// The variables of a scenario, of which a later one may use an earlier one.
fn of_user(scenario: &Scenario, scope: &mut Scope) -> Result<Vec<(usize, Template)>, PlanError> {
    let mut found = Vec::new();
    for (name, value) in &scenario.variables {
        let wrong = |why: String| PlanError(format!("scenario {:?}: {why}", scenario.name));
        check_name(name).map_err(wrong)?;
        let text = Template::of(value, &format!("variables {name}"), scope).map_err(wrong)?;
        let slot = scope.capture(name);
        scope.visible.push(slot);
        found.push((slot, text));
    }
    Ok(found)
}

/// The place of this row, new or known.
fn row(rows: &mut Vec<StepName>, scenario: &Scenario, step: &str, transaction: bool) -> usize {
    let name = StepName {
        scenario: scenario.name.clone(),
        step: step.to_owned(),
        transaction,
    };
    let known = rows.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        rows.push(name);
        rows.len() - 1
    })
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
        let origin = TargetOrigin {
            secure: false,
            authority: "h:1".to_owned(),
        };
        let server = Server {
            origin: &origin,
            host: "h",
        };
        Scenarios::compile(&plan, &[server]).map_err(|error| error.0)
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
