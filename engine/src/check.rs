//! Refuses a plan that cannot be run, in one sentence that says what was found and what was expected.
//! Pure functions of the plan; it must not know of sockets or threads.

mod http2;
mod population;
mod protocol;
mod scenario;
mod script;
mod share;

use crate::fault::Fault;
use crate::pace::share::Part;
use crate::plan::{
    ArrivalSpacing, DriverChoice, FeederEnd, Load, Plan, RatePhase, Reuse, Scenario, Session,
    Think, VERSION, Window,
};
pub use crate::refusal::{PlanError, refuse};
use crate::refusal::{check_think, duration, within};

/// More users than this do not fit the indices that the engine keeps per user.
pub const MAX_USERS: u32 = 16_000_000;
const MAX_PHASES: usize = 10_000;
/// Slow requests that a thread keeps: 1.6 MB.
const MAX_SLOWEST: u32 = 100_000;
/// More than a network can carry.
const MAX_RATE_PER_S: f64 = 1e8;

/// Reads one plan from its JSON line and checks it.
pub fn read_plan(line: &str) -> Result<Plan, PlanError> {
    refuse_if! {
        line.trim().is_empty() =>
            "no plan was given: the first line on stdin must be the plan, one JSON object";
    }
    let plan = Plan::from_json(line)
        .map_err(|error| PlanError(format!("the plan cannot be read: {error}")))?;
    check(&plan)?;
    Ok(plan)
}

/// Checks what the types cannot say.
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    refuse_if! {
        plan.version != VERSION =>
            "version is {}, but this engine speaks version {VERSION} of the contract", plan.version;
    }
    let cpus = plan.threads.cpus.len();
    refuse_if! { cpus > 1024 => "threads.cpus lists {cpus} CPUs, expected at most 1024"; }
    share::check(plan)?;
    population::check(plan)?;
    check_load(plan)?;
    scenario::check(plan)?;
    script::check(plan)?;
    check_stop(plan)?;
    if let Window::Fixed {
        warmup_ms,
        duration_ms,
    } = plan.window
    {
        duration("window.warmup_ms", warmup_ms, true)?;
        duration("window.duration_ms", duration_ms, false)?;
    }
    duration("timeouts.connect_ms", plan.timeouts.connect_ms, false)?;
    if let Some(tls_ms) = plan.timeouts.tls_ms {
        duration("timeouts.tls_ms", tls_ms, false)?;
    }
    duration("timeouts.request_ms", plan.timeouts.request_ms, false)?;
    duration("interval_ms", plan.interval_ms, false)?;
    refuse_if! {
        plan.interval_ms < 10.0 => "interval_ms is {}, expected at least 10", plan.interval_ms;
        plan.marks.contains(&0) => "marks holds 0, expected counts of completed requests from 1 on";
        plan.connection.max_requests == Some(0) =>
            "connection.max_requests is 0, expected null or at least 1";
    }
    check_slowest(plan)?;
    check_faults(plan)?;
    http2::check(plan)?;
    protocol::check(plan)
}

fn check_slowest(plan: &Plan) -> Result<(), PlanError> {
    let Some(slowest) = plan.slowest else {
        return Ok(());
    };
    let (share, most) = (slowest.share, slowest.most);
    refuse_if! {
        !(share > 0.0 && share <= 1.0) =>
            "slowest.share is {share}, expected above 0 and at most 1";
    }
    within("slowest.most", most, 1..=MAX_SLOWEST)
}

fn check_faults(plan: &Plan) -> Result<(), PlanError> {
    if plan.injected_faults.is_empty() {
        return Ok(());
    }
    refuse_if! {
        plan.driver == DriverChoice::IoUring =>
            "injected_faults is set, but driver is io_uring: expected epoll or auto";
    }
    let others = plan.other_targets.iter().map(|other| &other.url);
    refuse_if! {
        std::iter::once(&plan.target.url).chain(others).any(|url| url.starts_with("https:")) =>
            "injected_faults is set, but target.url is https: expected http";
    }
    let poisson = matches!(
        plan.load,
        Load::Open {
            arrivals: ArrivalSpacing::Poisson,
            ..
        }
    );
    refuse_if! {
        plan.injected_faults.contains(&Fault::EvenArrivals) && !poisson =>
            "injected_faults holds even_arrivals, expected an open load with Poisson arrivals";
    }
    Ok(())
}

fn check_load(plan: &Plan) -> Result<(), PlanError> {
    match &plan.load {
        Load::Closed {
            users,
            think,
            ramp_up_ms,
            ramp_up_steps,
            ramp_down_ms,
            ramp_down_steps,
            populations: _,
        } => {
            if let Some(users) = *users {
                within("load.users", users, 1..=MAX_USERS)?;
            }
            check_ramp("load.ramp_up", *ramp_up_ms, *ramp_up_steps)?;
            check_ramp("load.ramp_down", *ramp_down_ms, *ramp_down_steps)?;
            refuse_if! {
                *ramp_down_ms > 0.0
                    && plan
                        .stop
                        .after_ms
                        .is_none_or(|after_ms| ramp_up_ms + ramp_down_ms > after_ms) =>
                    "load.ramp_down_ms is {ramp_down_ms}, which ends at stop.after_ms: expected that to be set, and both ramps to fit into it";
            }
            check_think("load.think", think)
        }
        Load::Open {
            phases,
            session,
            think,
            max_users,
            connections,
            deadline_ms,
            ..
        } => {
            check_phases(phases)?;
            let threads = plan.threads.cpus.len().max(1) as u32;
            let part = Part::of(plan);
            let here = in_share(plan);
            let lacks_places = |users: u32| part.count(users.into()) < threads.into();
            for (index, phase) in phases.iter().enumerate() {
                if let Some(most) = phase.max_users
                    && (lacks_places(most) || most > *max_users)
                {
                    refuse! {
                        "load.phases[{index}].max_users is {most}, expected {threads} (one per thread{here}) to load.max_users, {max_users}"
                    }
                }
            }
            refuse_if! {
                lacks_places(*max_users) || *max_users > MAX_USERS =>
                    "load.max_users is {max_users}, expected {threads} (one per thread{here}) to {MAX_USERS}";
                connections > max_users =>
                    "load.connections is {connections}, expected at most load.max_users, {max_users}";
            }
            if let Some(deadline_ms) = deadline_ms {
                duration("load.deadline_ms", *deadline_ms, false)?;
            }
            refuse_if! {
                plan.feeders.iter().any(|feeder| feeder.at_end == Some(FeederEnd::Stop)) =>
                    "feeders has at_end stop, but the arrivals of an open load do not stop for it: expected recycle";
                plan.stop.iterations_per_user.is_some() =>
                    "stop.iterations_per_user goes with a closed load: a user of an open one walks the scenario once";
            }
            if *session == Session::Request {
                let walks =
                    |one: &Scenario| one.steps.len() > 1 || one.has_loops() || one.needs_program();
                refuse_if! {
                    plan.scenarios.iter().any(walks) =>
                        "load.session is request, expected scenarios of one step, sent once, without blocks: with session user an arrival walks all of them";
                    plan.cache.is_some_and(|cache| cache.fresh) =>
                        "cache.fresh passes requests over, but load.session is request, where each arrival is one: expected session user";
                    *think != Think::None =>
                        "load.think is set, but load.session is request: expected think none, or session user";
                }
            }
            check_think("load.think", think)
        }
    }
}

/// Of what engine numbers are that a refusal names.
fn in_share(plan: &Plan) -> &'static str {
    match plan.share {
        None => "",
        Some(_) => ", in the share of this engine",
    }
}

fn check_ramp(name: &str, span_ms: f64, steps: Option<u32>) -> Result<(), PlanError> {
    duration(&format!("{name}_ms"), span_ms, true)?;
    match steps {
        Some(0) => refuse(format!(
            "{name}_steps is 0, expected null (one user after the other) or at least 1"
        )),
        Some(steps) if span_ms == 0.0 => refuse(format!(
            "{name}_steps is {steps}, but {name}_ms is 0: expected a time over which the steps are spread"
        )),
        _ => Ok(()),
    }
}

fn check_phases(phases: &[RatePhase]) -> Result<(), PlanError> {
    refuse_if! {
        phases.is_empty() || phases.len() > MAX_PHASES =>
            "load.phases holds {} phases, expected 1 to {MAX_PHASES}", phases.len();
    }
    let mut total_ms = 0.0;
    for (index, phase) in phases.iter().enumerate() {
        duration(
            &format!("load.phases[{index}].duration_ms"),
            phase.duration_ms,
            false,
        )?;
        total_ms += phase.duration_ms;
        for (key, rate) in [
            ("from_per_s", phase.from_per_s),
            ("to_per_s", phase.to_per_s),
        ] {
            refuse_if! {
                !(0.0..=MAX_RATE_PER_S).contains(&rate) =>
                    "load.phases[{index}].{key} is {rate}, expected 0 to {MAX_RATE_PER_S} arrivals per second";
            }
        }
    }
    duration("the sum of load.phases[].duration_ms", total_ms, false)?;
    refuse_if! {
        phases.iter().all(|phase| phase.from_per_s == 0.0 && phase.to_per_s == 0.0) =>
            "load.phases are all pauses, expected a rate above 0 in at least one";
    }
    Ok(())
}

fn check_stop(plan: &Plan) -> Result<(), PlanError> {
    let stop = &plan.stop;
    let session = plan.load.session();
    refuse_if! {
        plan.connection.reuse == Reuse::PerSession && session != Some(Session::User) =>
            "connection.reuse is per_session, expected an open load with session user: all others keep alive or open one per request";
        session.is_none()
            && plan.populations().is_empty()
            && stop.after_ms.is_none()
            && stop.total_requests.is_none()
            && stop.iterations_per_user.is_none() =>
            "stop sets no bound, expected after_ms, total_requests or iterations_per_user: a run is always bounded";
    }
    if let Some(after_ms) = stop.after_ms {
        duration("stop.after_ms", after_ms, false)?;
    }
    refuse_if! {
        stop.total_requests == Some(0) => "stop.total_requests is 0, expected at least 1";
        stop.iterations_per_user == Some(0) => "stop.iterations_per_user is 0, expected at least 1";
    }
    Ok(())
}

/// Checks the length of a commanded window.
pub fn check_window_ms(duration_ms: f64) -> Result<(), PlanError> {
    duration("duration_ms", duration_ms, false)
}

/// Most turns of a window.
const MAX_TURNS: usize = 100_000;

/// Checks commanded turns: each begins, is measured from a moment on, and ends.
pub fn check_turns(turns: &[[f64; 3]]) -> Result<(), PlanError> {
    if !(1..=MAX_TURNS).contains(&turns.len()) {
        let found = turns.len();
        refuse! { "turns has {found} entries; expected 1 to {MAX_TURNS}" }
    }
    let instants: Vec<f64> = turns.iter().flatten().copied().collect();
    for ms in &instants {
        duration("turns", *ms, true)?;
    }
    let measured = turns.iter().any(|[_, opens, ends]| opens < ends);
    let lasting = turns.iter().all(|[begins, _, ends]| begins < ends);
    refuse_if! {
        !(instants.is_sorted() && measured && lasting) =>
            "turns is not a list of [begin, measured from, end] in ascending order, with something measured";
    }
    Ok(())
}

/// Milliseconds of a checked plan in nanoseconds.
pub fn ms_to_ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"version":1,"target":{"url":"http://127.0.0.1:1"},"load":{"model":"closed","users":1},
        "scenarios":[{"steps":[{"path":"/"}]}],"stop":{"total_requests":1}}"#;

    fn refusal(edit: impl Fn(&mut serde_json::Value)) -> String {
        let mut value: serde_json::Value = serde_json::from_str(GOOD).unwrap();
        edit(&mut value);
        read_plan(&value.to_string()).unwrap_err().0
    }

    #[test]
    fn a_short_plan_gets_the_documented_defaults() {
        let plan = read_plan(GOOD).unwrap();
        assert_eq!(plan.interval_ms, 1000.0);
        assert_eq!(plan.timeouts.connect_ms, 5000.0);
        assert_eq!(plan.timeouts.request_ms, 30_000.0);
        assert_eq!(plan.window, Window::All);
        assert_eq!(plan.scenarios[0].requests()[0].method, "GET");
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_the_key_and_the_expectation() {
        let users = refusal(|plan| plan["load"]["users"] = 0.into());
        assert!(users.contains("load.users is 0"), "{users}");
        let bound = refusal(|plan| plan["stop"] = serde_json::json!({}));
        assert!(bound.contains("always bounded"), "{bound}");
        let unknown = refusal(|plan| plan["treads"] = 1.into());
        assert!(
            unknown.contains("treads") && unknown.contains("threads"),
            "{unknown}"
        );
        let negative = refusal(|plan| plan["stop"]["after_ms"] = (-1).into());
        assert!(negative.contains("stop.after_ms"), "{negative}");
        let split = refusal(|plan| {
            plan["scenarios"][0]["steps"][0]["headers"] = serde_json::json!([["A", "x\r\nB: y"]])
        });
        assert!(split.contains("line break"), "{split}");
        let path = refusal(|plan| plan["scenarios"][0]["steps"][0]["path"] = "/a b".into());
        assert!(path.contains("%20"), "{path}");
        let passed_over = refusal(|plan| {
            let phases = serde_json::json!([{"duration_ms": 1000, "from_per_s": 1, "to_per_s": 1}]);
            plan["load"] = serde_json::json!({"model": "open", "phases": phases, "session": "request", "max_users": 1});
            plan["stop"] = serde_json::json!({});
            plan["cache"] = serde_json::json!({"fresh": true});
        });
        assert!(passed_over.contains("cache.fresh"), "{passed_over}");
        let version = refusal(|plan| plan["version"] = 2.into());
        assert!(version.contains("version 1"), "{version}");
        let steps = refusal(|plan| plan["load"]["ramp_up_steps"] = 3.into());
        assert!(steps.contains("load.ramp_up_ms is 0"), "{steps}");
        let down = refusal(|plan| plan["load"]["ramp_down_ms"] = 10.into());
        assert!(down.contains("stop.after_ms"), "{down}");
        assert!(read_plan("").is_err());
        assert!(read_plan("{").is_err());
    }

    #[test]
    fn an_open_load_is_bounded_by_its_phases_and_refused_where_it_contradicts_itself() {
        let open = |edit: fn(&mut serde_json::Value)| {
            let mut value: serde_json::Value = serde_json::from_str(GOOD).unwrap();
            value["load"] = serde_json::json!({"model": "open", "phases": [{"duration_ms": 10, "from_per_s": 5, "to_per_s": 5}]});
            value["stop"] = serde_json::json!({});
            edit(&mut value);
            read_plan(&value.to_string())
                .map(drop)
                .map_err(|error| error.0)
        };
        assert_eq!(open(|_| ()), Ok(()));
        type Edit = fn(&mut serde_json::Value);
        let cases: [(Edit, &str); 8] = [
            (
                |plan| plan["load"]["phases"] = serde_json::json!([]),
                "1 to 10000",
            ),
            (
                |plan| plan["load"]["phases"][0]["to_per_s"] = (-1).into(),
                "load.phases[0].to_per_s is -1",
            ),
            (
                |plan| {
                    plan["load"]["phases"][0] =
                        serde_json::json!({"duration_ms": 5, "from_per_s": 0, "to_per_s": 0})
                },
                "all pauses",
            ),
            (
                |plan| plan["load"]["max_users"] = 0.into(),
                "load.max_users is 0",
            ),
            (
                |plan| plan["load"]["connections"] = 1001.into(),
                "at most load.max_users",
            ),
            (
                |plan| plan["load"]["think"] = serde_json::json!({"kind": "constant", "ms": 1}),
                "session user",
            ),
            (
                |plan| plan["stop"]["iterations_per_user"] = 1.into(),
                "closed load",
            ),
            (|plan| plan["load"]["users"] = 1.into(), "users"),
        ];
        for (edit, part) in cases {
            let sentence = open(edit).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
