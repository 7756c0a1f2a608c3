//! Refuses scripts beside what a script decides itself, and rates that cannot be counted.

use super::{PlanError, duration, within};
use crate::plan::{HttpVersion, Node, Plan, Reuse, Session};

const MAX_THREADS: u32 = 1_000;
/// Shorter ones would end calls on a busy host.
const MIN_CALL_TIMEOUT_MS: f64 = 100.0;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let engine_threads = plan.threads.cpus.len().max(1);
    if let Some(rates) = plan.rates {
        duration("rates.every_ms", rates.every_ms, false)?;
        refuse_if! {
            (rates.groups as usize) < engine_threads || rates.groups > MAX_THREADS =>
                "rates.groups is {}, expected {engine_threads} (the threads of the engine) to {MAX_THREADS}", rates.groups;
            rates.every_ms < 1.0 => "rates.every_ms is {}, expected at least 1", rates.every_ms;
        }
    }
    let calls = plan.scenarios.iter().any(|one| !one.calls().is_empty());
    let Some(script) = &plan.script else {
        refuse_if! { calls => "a block has call, expected a script that it calls"; }
        return Ok(());
    };
    within("script.threads", script.threads, 1..=MAX_THREADS)?;
    duration("script.call_timeout_ms", script.call_timeout_ms, false)?;
    refuse_if! {
        script.call_timeout_ms < MIN_CALL_TIMEOUT_MS =>
            "script.call_timeout_ms is {}, expected at least {MIN_CALL_TIMEOUT_MS}", script.call_timeout_ms;
    }
    // Beside a scenario it writes no requests, and nothing that the scenario does is in its way.
    if calls {
        return Ok(());
    }
    refuse_if! {
        plan.load.session() == Some(Session::User) =>
            "script is set, expected load.model closed with it, or an open load with session request";
        plan.http_version != HttpVersion::V1_1 =>
            "script is set, expected http_version 1.1 with it: the script writes the requests";
        plan.connection.reuse != Reuse::KeepAlive || plan.connection.max_requests.is_some() =>
            "script is set, expected connection.reuse keep_alive and no max_requests with it: a script that wants connections closed sends Connection: close";
    }
    let [scenario] = &plan.scenarios[..] else {
        refuse! { "script is set, expected one scenario with it" }
    };
    let [Node::Request(step)] = &scenario.steps[..] else {
        refuse! {
            "script is set, expected one step with it: method, path, headers and body before the script changes them"
        }
    };
    let walks = scenario.loops != 1 || step.repeat != 1;
    let looks = !step.capture.is_empty() || step.expect.needs_copy() || step.follow_redirects > 0;
    refuse_if! {
        walks || looks || step.expect_continue =>
            "script is set, expected a step without loops, repeat, capture, follow_redirects, expect.json, body_matches, head_matches and expect_continue with it: the script does that itself";
        plan.cookies.is_some() || plan.cache.is_some() || !plan.feeders.is_empty() =>
            "script is set, expected no cookies, no cache and no feeders with it: the script does that itself";
        step.auth.is_some()
            || step
                .body
                .as_ref()
                .is_some_and(|body| body.text.is_none() || body.chunked) =>
            "script is set, expected a step with headers and a body of plain text with it; the script writes the rest";
    }
    Ok(())
}
