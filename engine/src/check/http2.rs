//! Refuses what a plan asks of HTTP/2 and cannot have. Pure functions of the plan.

use super::{PlanError, in_share, within};
use crate::pace::share::Part;
use crate::plan::{Close, HttpVersion, Load, Plan, Reuse, Scenario};

const MAX_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// Every connection begins with this window, and none has less.
const MIN_CONNECTION_WINDOW_BYTES: u32 = 65_535;
const MAX_TABLE_BYTES: u32 = 65_536;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let alpn = plan.target.tls.as_ref().map_or(&[][..], |tls| &tls.alpn);
    let offers_h2 = alpn.iter().any(|name| name == "h2");
    if plan.http_version != HttpVersion::V2 {
        refuse_if! {
            plan.http2.is_some() => "http2 is set, expected http_version 2 with it";
            offers_h2 => "target.tls.alpn offers h2, expected http_version 2 with it";
        }
        return Ok(());
    }
    let usual = crate::plan::Tls::default();
    refuse_if! {
        !alpn.is_empty() && alpn != usual.alpn && !offers_h2 =>
            "http_version is 2, but target.tls.alpn does not offer h2";
        plan.connection.pipeline > 1 =>
            "connection.pipeline is {}, but http_version is 2, which has streams: expected 1, and users who share connections (http2.connections)", plan.connection.pipeline;
        plan.connection.close == Close::Wait =>
            "connection.close is wait, but http_version is 2, whose connections have no last response: expected client or reset";
        !plan.injected_faults.is_empty() =>
            "injected_faults is set, expected http_version 1.1 or 1.0 with it";
    }
    for step in plan.scenarios.iter().flat_map(Scenario::requests) {
        let (method, path) = (&step.method, &step.path);
        refuse_if! {
            step.is_chunked() =>
                "http_version is 2, but the step {method} {path} has a chunked body, which HTTP/2 does not have: expected neither a chunked body nor expect_continue";
            step.expect_continue =>
                "http_version is 2, but the step {method} {path} has expect_continue, which is for HTTP/1.1 here: expected neither a chunked body nor expect_continue";
        }
    }
    check_http2(plan)
}

fn check_http2(plan: &Plan) -> Result<(), PlanError> {
    let http2 = plan.http2.clone().unwrap_or_default();
    let (stream, connection) = (http2.stream_window_bytes, http2.connection_window_bytes);
    within("http2.stream_window_bytes", stream, 1..=MAX_WINDOW_BYTES)?;
    let bounds = MIN_CONNECTION_WINDOW_BYTES..=MAX_WINDOW_BYTES;
    within("http2.connection_window_bytes", connection, bounds)?;
    let table = http2.header_table_bytes;
    refuse_if! {
        table > MAX_TABLE_BYTES =>
            "http2.header_table_bytes is {table}, expected at most {MAX_TABLE_BYTES}";
    }
    let Some(connections) = http2.connections else {
        return Ok(());
    };
    let threads = plan.threads.cpus.len().max(1) as u64;
    if Part::of(plan).count(connections.into()) < threads {
        let here = in_share(plan);
        refuse! { "http2.connections is {connections}, expected {threads} or more (one per thread{here})" }
    }
    if let Load::Closed {
        users: Some(users), ..
    } = plan.load
        && connections > users
    {
        refuse! { "http2.connections is {connections}, expected at most load.users, {users}" }
    }
    refuse_if! {
        plan.connection.reuse != Reuse::KeepAlive || plan.connection.max_requests.is_some() =>
            "http2.connections is set, expected connection.reuse keep_alive and no max_requests with it: who shares a connection cannot close it";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn refusal(edit: impl FnOnce(&mut Value)) -> Option<String> {
        let mut plan = json!({"version": 1, "target": {"url": "http://127.0.0.1:1"}, "http_version": "2",
            "load": {"model": "closed", "users": 4}, "threads": {"cpus": [0, 1]},
            "scenarios": [{"steps": [{"path": "/"}]}], "stop": {"total_requests": 1}});
        edit(&mut plan);
        crate::check::read_plan(&plan.to_string())
            .err()
            .map(|error| error.0)
    }

    #[test]
    fn what_http_2_does_not_have_is_refused() {
        type Edit = fn(&mut Value);
        let cases: [(Edit, &str); 14] = [
            (|plan| plan["http_version"] = "1.1".into(), "http_version 2"),
            (
                |plan| plan["http2"]["connections"] = 1.into(),
                "one per thread",
            ),
            (
                |plan| plan["http2"]["connections"] = 5.into(),
                "at most load.users",
            ),
            (
                |plan| plan["http2"]["stream_window_bytes"] = 0.into(),
                "stream_window_bytes",
            ),
            (
                |plan| plan["http2"]["connection_window_bytes"] = 65_534.into(),
                "65535",
            ),
            (
                |plan| plan["http2"]["header_table_bytes"] = 65_537.into(),
                "65536",
            ),
            (
                |plan| plan["connection"]["pipeline"] = 2.into(),
                "which has streams",
            ),
            (
                |plan| plan["connection"]["reuse"] = "per_request".into(),
                "cannot close it",
            ),
            (
                |plan| plan["connection"]["max_requests"] = 3.into(),
                "cannot close it",
            ),
            (
                |plan| plan["injected_faults"] = json!(["late_timers"]),
                "injected_faults",
            ),
            (
                |plan| plan["target"] = json!({"url": "https://a", "tls": {"alpn": ["http/1.0"]}}),
                "offer h2",
            ),
            (
                |plan| plan["script"] = json!({"file": "a.lua"}),
                "http_version 1.1",
            ),
            (
                |plan| {
                    plan["scenarios"][0]["steps"][0] = json!({"method": "PUT", "path": "/", "body": {"text": "x", "chunked": true}})
                },
                "chunked body",
            ),
            (
                |plan| {
                    plan["scenarios"][0]["steps"][0] =
                        json!({"method": "PUT", "path": "/", "body": "x", "expect_continue": true})
                },
                "expect_continue",
            ),
        ];
        for (edit, part) in cases {
            let sentence = refusal(|plan| {
                plan["http2"] = json!({"connections": 2});
                edit(plan);
            });
            let sentence = sentence.expect(part);
            assert!(sentence.contains(part), "{sentence}");
        }
        let offered = refusal(|plan| {
            plan["http_version"] = "1.1".into();
            plan["target"] = json!({"url": "https://a", "tls": {"alpn": ["h2"]}});
        });
        assert!(offered.unwrap().contains("offers h2"));
    }

    #[test]
    fn a_plan_of_http_2_passes() {
        assert_eq!(
            refusal(|plan| plan["http2"] = json!({"connections": 4})),
            None
        );
        assert_eq!(
            refusal(|plan| plan["connection"]["reuse"] = "per_request".into()),
            None
        );
        assert_eq!(
            refusal(|plan| plan["target"]["url"] = "https://a".into()),
            None
        );
    }
}
