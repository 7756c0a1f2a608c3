//! Refuses what a plan asks of HTTP and cannot have. Pure functions of the plan.

use super::{PlanError, refuse};
use crate::plan::{HttpVersion, Plan};

/// A status line and a few fields must fit; a longer head than the upper bound is no head, and reading it piece by piece takes a
/// time that grows with its square.
const HEADER_BYTES: std::ops::RangeInclusive<u32> = 256..=1024 * 1024;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let bytes = plan.limits.header_bytes;
    if !HEADER_BYTES.contains(&bytes) {
        return refuse(format!(
            "limits.header_bytes is {bytes}, expected {} to {}",
            HEADER_BYTES.start(),
            HEADER_BYTES.end()
        ));
    }
    if plan.http_version == HttpVersion::V1_0 {
        check_http_1_0(plan)?;
    }
    Ok(())
}

fn check_http_1_0(plan: &Plan) -> Result<(), PlanError> {
    for step in plan.scenarios.iter().flat_map(|scenario| &scenario.steps) {
        let chunked = step.body.as_ref().is_some_and(|body| body.chunked);
        if chunked || step.expect_continue {
            let what = if chunked {
                "a chunked body"
            } else {
                "expect_continue"
            };
            return refuse(format!(
                "http_version is 1.0, but the step {} {} has {what}, which came with HTTP/1.1: expected neither a chunked body nor expect_continue",
                step.method, step.path
            ));
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
        let other = refusal(|plan| plan["http_version"] = "2".into());
        assert!(other.contains("`1.0` or `1.1`"), "{other}");
    }

    #[test]
    fn a_limit_of_heads_that_no_head_fits_or_that_is_none_is_refused() {
        for bytes in [0, 255, 1024 * 1024 + 1] {
            let sentence = refusal(|plan| plan["limits"] = json!({"header_bytes": bytes}));
            assert!(sentence.contains("256 to 1048576"), "{sentence}");
        }
    }
}
