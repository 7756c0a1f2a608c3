//! Refuses what a plan asks of HTTP and cannot have. Pure functions of the plan.

use super::{PlanError, within};
use crate::plan::{HttpVersion, Plan, Reuse, Scenario, Session, walks_branches};

/// A status line and a few fields must fit; a longer head than the upper bound is no head, and
/// reading it piece by piece takes a time that grows with its square.
const HEADER_BYTES: std::ops::RangeInclusive<u32> = 256..=1024 * 1024;

/// With less, one piece of a response as it is received would be too much.
const MIN_PARTIAL_BYTES: u64 = 64 * 1024;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    within(
        "limits.header_bytes",
        plan.limits.header_bytes,
        HEADER_BYTES,
    )?;
    let bytes = plan.limits.partial_response_bytes;
    refuse_if! {
        bytes < MIN_PARTIAL_BYTES =>
            "limits.partial_response_bytes is {bytes}, expected {MIN_PARTIAL_BYTES} or more";
    }
    if plan.http_version == HttpVersion::V1_0 {
        check_http_1_0(plan)?;
    }
    check_pipeline(plan)
}

/// Deeper pipelines measure queues in the system's buffers.
const MAX_PIPELINE: u32 = 1_024;

fn check_pipeline(plan: &Plan) -> Result<(), PlanError> {
    let depth = plan.connection.pipeline;
    refuse_if! {
        !(1..=MAX_PIPELINE).contains(&depth) =>
            "connection.pipeline is {depth}, expected 1 (no pipelining) to {MAX_PIPELINE}";
    }
    if depth == 1 {
        return Ok(());
    }
    let forks = |scenario: &Scenario| walks_branches(&scenario.steps);
    refuse_if! {
        plan.connection.reuse == Reuse::PerRequest =>
            "connection.pipeline is {depth}, but connection.reuse is per_request, and several requests need a connection that stays";
        plan.http_version == HttpVersion::V1_0 =>
            "connection.pipeline is {depth}, but http_version is 1.0, which has no pipelining";
        plan.load.session() == Some(Session::Request) =>
            "connection.pipeline is {depth}, but load.session is request, where an arrival is one request and goes out when it is due: expected session user";
        plan.scenarios.iter().any(forks) =>
            "connection.pipeline is {depth}, but a scenario has a parallel block, whose requests go out on connections of their own: expected one of the two";
    }
    Ok(())
}

fn check_http_1_0(plan: &Plan) -> Result<(), PlanError> {
    for step in plan.scenarios.iter().flat_map(Scenario::requests) {
        let (method, path) = (&step.method, &step.path);
        refuse_if! {
            step.is_chunked() =>
                "http_version is 1.0, but the step {method} {path} has a chunked body, which came with HTTP/1.1: expected neither a chunked body nor expect_continue";
            step.expect_continue =>
                "http_version is 1.0, but the step {method} {path} has expect_continue, which came with HTTP/1.1: expected neither a chunked body nor expect_continue";
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn refusal(edit: impl FnOnce(&mut Value)) -> String {
        let mut plan = json!({"version": 1, "target": {"url": "http://127.0.0.1:1"}, "load": {"model": "closed", "users": 1},
            "scenarios": [{"steps": [{"path": "/"}]}], "stop": {"total_requests": 1}});
        edit(&mut plan);
        crate::check::read_plan(&plan.to_string()).unwrap_err().0
    }

    #[test]
    fn what_http_1_0_does_not_have_is_refused() {
        for step in [
            json!({"method": "PUT", "path": "/", "body": {"text": "x", "chunked": true}}),
            json!({"method": "PUT", "path": "/", "body": "x", "expect_continue": true}),
        ] {
            let sentence = refusal(|plan| {
                plan["http_version"] = "1.0".into();
                plan["scenarios"][0]["steps"] = json!([step]);
            });
            assert!(sentence.contains("came with HTTP/1.1"), "{sentence}");
        }
        let other = refusal(|plan| plan["http_version"] = "3".into());
        assert!(other.contains("`1.0`, `1.1`, `2`"), "{other}");
    }

    #[test]
    fn where_nothing_can_go_out_together_pipelining_is_refused() {
        type Edit = fn(&mut Value);
        let cases: [(Edit, &str); 4] = [
            (
                |plan| plan["connection"]["reuse"] = "per_request".into(),
                "per_request",
            ),
            (
                |plan| plan["http_version"] = "1.0".into(),
                "http_version is 1.0",
            ),
            (
                |plan| {
                    plan["load"] = json!({"model": "open", "phases": [{"duration_ms": 1, "from_per_s": 1, "to_per_s": 1}]});
                    plan["stop"] = json!({});
                },
                "load.session is request",
            ),
            (
                |plan| plan["connection"]["pipeline"] = 0.into(),
                "1 (no pipelining)",
            ),
        ];
        for (edit, part) in cases {
            let sentence = refusal(|plan| {
                plan["connection"] = json!({"pipeline": 4});
                edit(plan);
            });
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn a_limit_of_heads_that_no_head_fits_or_that_is_none_is_refused() {
        for bytes in [0, 255, 1024 * 1024 + 1] {
            let sentence = refusal(|plan| plan["limits"] = json!({"header_bytes": bytes}));
            assert!(sentence.contains("256 to 1048576"), "{sentence}");
        }
    }
}
