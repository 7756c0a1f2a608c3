//! `prony-engine run` with a script in JavaScript that blocks of a scenario call: values go in and
//! out, requests are changed, responses read, users failed, the run ended; on both drivers.

mod run_support;

use std::sync::{Arc, Mutex};

use run_support::{Ended, Server, drivers, plan, run};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

type Seen = Arc<Mutex<Vec<String>>>;

/// Answers with the number of the request, and keeps the requests.
fn server() -> (Server, Seen) {
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let mut kept = kept.lock().unwrap();
            kept.push(request);
            let body = format!("{{\"n\": {}}}", kept.len());
            let length = body.len();
            drop(kept);
            peer.send(&format!(
                "HTTP/1.1 200 OK\r\nX-Id: 7\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
        }
    });
    (server, seen)
}

const SCRIPT: &str = r#"
exports.begin = (context, ee, done) => { context.vars.name = 'a ' + context.vars.first; done(); };
exports.sign = (request, context, ee, next) => {
  request.headers = { 'X-Signed': context.vars.name };
  request.json.turn = context.vars.turn;
  next();
};
exports.look = (request, response, context, ee, next) => {
  context.vars.turn = JSON.parse(response.body).n + Number(response.headers['x-id']);
  ee.emit('counter', 'looked', 1);
  next();
};
exports.fail = (context, ee, done) => done(new Error('no luck'));
exports.hang = () => { for (;;) {} };
"#;

fn call(kind: &str, function: &str, more: &Value, give: &Value, take: &Value) -> Value {
    let names = |pairs: &Value| -> Vec<Value> {
        let pairs = pairs.as_array().unwrap().iter();
        pairs.map(|pair| pair[0].clone()).collect()
    };
    let mut task =
        json!({"kind": kind, "functions": [function], "give": names(give), "take": names(take)});
    let more = more.as_object().unwrap().clone();
    task.as_object_mut().unwrap().extend(more);
    json!({"call": {"task": task, "give": give, "take": take}})
}

fn step(function: &str) -> Value {
    call("function", function, &json!({}), &json!([]), &json!([]))
}

/// Two users, one after the other, who walk these steps once.
fn walked(driver: &str, steps: &Value, edit: impl FnOnce(&mut Value)) -> (Ended, Vec<String>) {
    let file = NamedTempFile::with_suffix(".js").unwrap();
    std::fs::write(file.path(), SCRIPT).unwrap();
    let (server, seen) = server();
    let origin = format!("http://{}", server.address);
    let around = json!({"variables": {}, "target": origin, "origin": origin, "headers": {}, "cookies": {},
        "user_agent": "A", "timeout_ms": 1000, "env": {}});
    let plan = plan(server.address, driver, |plan| {
        plan["script"] = json!({"file": file.path(), "args": [around.to_string()]});
        plan["load"] = json!({"model": "closed", "users": 1});
        plan["scenarios"] = json!([{"name": "s", "variables": [["name", "null"], ["turn", "null"]], "steps": steps}]);
        plan["stop"] = json!({"iterations_per_user": 1});
        edit(plan);
    });
    let ended = run(&plan);
    let seen = seen.lock().unwrap().clone();
    (ended, seen)
}

#[test]
fn a_scenario_calls_functions_before_between_and_after_its_requests() {
    let values = json!([["name", "${name}"], ["turn", "${turn}"], ["first", "\"b\""]]);
    let kept = json!([["name", "name"], ["turn", "turn"]]);
    let request = json!({"method": "POST", "has_body": true, "compressed": false, "params": {"url": "/p/{{ name }}", "json": {}}});
    let sent = json!([
        ["name", "name"],
        ["turn", "turn"],
        ["request.path", "path"],
        ["request.headers", "lines"],
        ["request.body", "body"]
    ]);
    let mut response = values.clone();
    let parts = [
        json!(["response.head", "${head}"]),
        json!(["response.body", "${text}"]),
    ];
    response.as_array_mut().unwrap().extend(parts);
    let steps = json!([
        call("function", "begin", &json!({}), &values, &kept),
        {"loop": {"count": 2}, "steps": [
            call("before", "sign", &request, &values, &sent),
            {"name": "p", "method": "POST", "path": "/${path}", "header_lines": "${lines}", "body": "${body}", "capture": [
                {"name": "head", "regex": "(?s)\\A.*", "in": "head", "always": true, "default": ""},
                {"name": "text", "regex": "(?s)\\A.*", "always": true, "default": ""}]},
            call("after", "look", &request, &response, &kept)]},
        {"name": "last", "path": "/last/${turn}"}]);
    for driver in drivers() {
        let (ended, seen) = walked(driver, &steps, |_| {});
        assert_eq!(seen.len(), 3, "{driver}: {seen:?}");
        assert!(
            seen[0].starts_with("POST /p/a%20b HTTP/1.1\r\n"),
            "{}",
            seen[0]
        );
        assert!(seen[0].contains(
            "\r\nx-signed: a b\r\ncontent-type: application/json\r\nContent-Length: 2\r\n\r\n"
        ));
        assert!(seen[1].ends_with("\r\n\r\n{\"turn\":8}"), "{}", seen[1]);
        assert!(
            seen[2].starts_with("GET /last/9 HTTP/1.1\r\n"),
            "{}",
            seen[2]
        );
        let finished = ended.finished();
        assert_eq!(finished["script"]["counters"], json!({"looked": 2}));
        assert_eq!(finished["reason"], "iterations");
    }
}

#[test]
fn a_function_that_fails_ends_its_user_and_not_the_run() {
    for (steps, sent) in [
        (
            json!([{"name": "a", "path": "/a"}, step("fail"), {"name": "b", "path": "/b"}]),
            3,
        ),
        (json!([step("fail"), {"name": "b", "path": "/b"}]), 0),
    ] {
        for driver in drivers() {
            let (ended, seen) = walked(driver, &steps, |plan| {
                plan["load"] = json!({"model": "open", "session": "user", "max_users": 3, "connections": 0,
                    "phases": [{"duration_ms": 300, "from_per_s": 10, "to_per_s": 10}]});
                plan["stop"] = json!({});
            });
            assert_eq!(seen.len(), sent, "{driver}");
            let finished = ended.finished();
            assert_eq!(finished["script"]["counters"], json!({"errors.no luck": 3}));
            assert_eq!(finished["totals"]["sessions_begun"], 3);
            assert_eq!(finished["totals"]["sessions_completed"], 0);
            assert_eq!(finished["reason"], "schedule");
        }
    }
}

#[test]
fn a_function_that_does_not_end_ends_the_run() {
    let steps = json!([{"name": "a", "path": "/a"}, step("hang"), {"name": "b", "path": "/b"}]);
    for driver in drivers() {
        let (ended, _) = walked(driver, &steps, |plan| {
            plan["script"]["call_timeout_ms"] = 1_500.into(); // other calls end by then, also on a busy host
        });
        let finished = ended.finished();
        assert_eq!(finished["reason"], "script", "{driver}");
        let error = finished["script"]["error"].as_str().unwrap();
        assert!(error.contains("hang() was ended after 1.5 s"), "{error}");
    }
}

#[test]
fn calls_without_a_script_and_scripts_that_cannot_be_called_are_refused() {
    let steps = json!([step("fail"), {"name": "a", "path": "/a"}]);
    let (ended, _) = walked("epoll", &steps, |plan| {
        plan.as_object_mut().unwrap().remove("script");
    });
    assert!(
        ended.stderr.contains("expected a script that it calls"),
        "{}",
        ended.stderr
    );
    let lua = NamedTempFile::with_suffix(".lua").unwrap();
    let (ended, _) = walked("epoll", &steps, |plan| {
        plan["script"]["file"] = lua.path().to_str().unwrap().into();
    });
    assert!(
        ended.stderr.contains("expected JavaScript"),
        "{}",
        ended.stderr
    );
}
