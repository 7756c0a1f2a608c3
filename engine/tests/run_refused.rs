//! What is refused together: every row of the table that ends docs/engine.md, by one sentence and exit
//! code 2, before anything is sent.

mod run_support;

use std::collections::BTreeSet;
use std::fs;

use run_support::run;
use serde_json::{Value, json};

const DOCS: &str = include_str!("../../docs/engine.md");

/// A row of the table by its first words, keys of a plan that belong to it, and what the sentence names.
type Case = (&'static str, Value, &'static str);

fn open(keys: &Value) -> Value {
    let phases = json!([{"duration_ms": 100, "from_per_s": 1, "to_per_s": 1}]);
    let mut load = json!({"model": "open", "phases": phases});
    put(&mut load, keys);
    json!({"load": load, "stop": {}})
}

fn put(into: &mut Value, keys: &Value) {
    for (key, value) in keys.as_object().unwrap() {
        into[key] = value.clone();
    }
}

fn all(parts: &[&Value]) -> Value {
    let mut joined = json!({});
    for part in parts {
        put(&mut joined, part);
    }
    joined
}

fn steps(steps: &Value) -> Value {
    json!({"scenarios": [{"steps": steps}]})
}

/// One step that sends something, with these keys besides.
fn sending(keys: &Value) -> Value {
    let mut step = json!({"method": "PUT", "path": "/"});
    put(&mut step, keys);
    steps(&json!([step]))
}

fn cases(folder: &std::path::Path) -> Vec<Case> {
    let file = |name: &str, bytes: u64| {
        let path = folder.join(name);
        fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        path
    };
    let script = json!({"script": {"file": file("empty.lua", 0)}});
    let feeder = |order: &str, at_end: Option<&str>| {
        let path = folder.join("rows.csv");
        fs::write(&path, "id\n1\n").unwrap();
        json!({"feeders": [{"name": "f", "file": path, "order": order, "at_end": at_end}]})
    };
    let with_script = |keys: &Value| all(&[&script, keys]);
    let pipeline = json!({"connection": {"pipeline": 2}});
    let old = json!({"http_version": "1.0"});
    let request = open(&json!({"session": "request"}));
    let group = json!([{"name": "a", "users": 1, "duration_ms": 5}]);
    let faults = json!({"injected_faults": ["even_arrivals"]});
    let secure = json!({"target": {"url": "https://127.0.0.1:1", "tls": {"insecure": true}}});
    let others = json!({"other_targets": [{"url": "http://127.0.0.1:2"}]});
    let two = json!([{"path": "/"}, {"path": "/b"}]);
    let continued = json!({"body": "x", "expect_continue": true});
    let chunked = json!({"body": {"text": "x", "chunked": true}});
    let mut found = vec![
        (
            "`pipeline` and a `parallel` block",
            json!({"connection": {"pipeline": 2}, "scenarios": [{"steps": [
                {"parallel": {"at_once": 2}, "steps": [{"path": "/"}]}]}]}),
            "has a parallel block",
        ),
        (
            "`pipeline` and `per_request`",
            json!({"connection": {"pipeline": 2, "reuse": "per_request"}}),
            "per_request",
        ),
        (
            "`pipeline` and an open load",
            all(&[&pipeline, &request]),
            "session user",
        ),
        (
            "a script and an open load",
            with_script(&open(&json!({"session": "user"}))),
            "session request",
        ),
        (
            "an open load and feeders",
            all(&[&open(&json!({})), &feeder("sequence", Some("stop"))]),
            "recycle",
        ),
        (
            "an open load and feeders",
            all(&[
                &open(&json!({})),
                &json!({"stop": {"iterations_per_user": 1}}),
            ]),
            "closed load",
        ),
        (
            "populations and the load's ramps",
            json!({"load": {"model": "closed", "ramp_up_ms": 5, "populations": group}}),
            "load.ramp_up",
        ),
        (
            "populations and the load's ramps",
            json!({"load": {"model": "closed", "populations": group}, "stop": {"iterations_per_user": 1}}),
            "iterations_per_user",
        ),
        (
            "`follow_redirects` and",
            sending(&json!({"body": "x", "expect_continue": true, "follow_redirects": 1})),
            "one of them",
        ),
        (
            "`follow_redirects` and",
            sending(&json!({"body": {"file": file("streamed", 2 << 20)}, "follow_redirects": 1})),
            "at most 1 MiB",
        ),
        (
            "`injected_faults` and",
            all(&[&faults, &json!({"driver": "io_uring"})]),
            "epoll",
        ),
        ("`injected_faults` and", all(&[&faults, &secure]), "http"),
        ("`even_arrivals` and", faults.clone(), "Poisson"),
        (
            "`even_arrivals` and",
            all(&[&faults, &open(&json!({"arrivals": "constant"}))]),
            "Poisson",
        ),
        (
            "`per_session` and",
            json!({"connection": {"reuse": "per_session"}}),
            "session user",
        ),
        (
            "`per_session` and",
            all(&[&request, &json!({"connection": {"reuse": "per_session"}})]),
            "session user",
        ),
        (
            "`other_targets` and",
            all(&[&others, &json!({"connection": {"pipeline": 2}})]),
            "connection.pipeline",
        ),
        (
            "`other_targets` and",
            all(&[&others, &with_script(&json!({}))]),
            "a script writes",
        ),
        (
            "`other_targets` and",
            all(&[&others, &json!({"target": {"url": "unix:/s"}})]),
            "a Unix socket",
        ),
        (
            "`ramp_down_ms` without",
            json!({"load": {"model": "closed", "users": 1, "ramp_down_ms": 10}, "stop": {"total_requests": 1}}),
            "stop.after_ms",
        ),
        (
            "`ramp_down_ms` without",
            json!({"load": {"model": "closed", "users": 1, "ramp_up_ms": 150, "ramp_down_ms": 100}, "stop": {"after_ms": 200}}),
            "both ramps",
        ),
    ];
    for keys in [pipeline, sending(&continued), sending(&chunked)] {
        found.push((
            "`pipeline`, or `expect_continue`",
            all(&[&old, &keys]),
            "http_version is 1.0",
        ));
    }
    let second = json!({"http_version": "2"});
    for (keys, word) in [
        (json!({"connection": {"pipeline": 2}}), "which has streams"),
        (
            all(&[&open(&json!({"arrivals": "poisson"})), &faults]),
            "http_version 1.1 or 1.0",
        ),
        (with_script(&json!({})), "script"),
        (sending(&continued), "expect_continue"),
        (sending(&chunked), "chunked body"),
    ] {
        found.push((
            "`pipeline`, a script, `injected_faults`",
            all(&[&second, &keys]),
            word,
        ));
    }
    let shared = json!({"http_version": "2", "http2": {"connections": 1}});
    for keys in [
        json!({"connection": {"reuse": "per_request"}}),
        json!({"connection": {"max_requests": 5}}),
        all(&[
            &open(&json!({"session": "user"})),
            &json!({"connection": {"reuse": "per_session"}}),
        ]),
    ] {
        found.push((
            "`http2.connections` and",
            all(&[&shared, &keys]),
            "http2.connections",
        ));
    }
    for keys in [
        json!({"connection": {"reuse": "per_request"}}),
        json!({"connection": {"max_requests": 5}}),
        old,
        sending(&json!({"auth": {"bearer": "a"}})),
        sending(&continued),
        sending(&chunked),
        sending(&json!({"body": {"base64": "eA=="}})),
    ] {
        found.push((
            "a script and `per_request`",
            with_script(&keys),
            "script is set",
        ));
    }
    for keys in [
        json!({"scenarios": [{"name": "a", "steps": [{"path": "/"}]}, {"name": "b", "steps": [{"path": "/"}]}]}),
        steps(&two),
        json!({"scenarios": [{"loops": 2, "steps": [{"path": "/"}]}]}),
        sending(&json!({"repeat": 2})),
        sending(&json!({"capture": [{"name": "id", "regex": "(x)"}]})),
        sending(&json!({"expect": {"json": [{"pointer": "/a"}]}})),
        sending(&json!({"expect": {"body_matches": ["x"]}})),
        json!({"cookies": true}),
        json!({"cache": {}}),
        feeder("random", None),
        sending(&json!({"follow_redirects": 1})),
    ] {
        found.push((
            "a script and several scenarios",
            with_script(&keys),
            "script is set",
        ));
    }
    for (keys, word) in [
        (steps(&two), "one step"),
        (
            json!({"scenarios": [{"loops": 2, "steps": [{"path": "/"}]}]}),
            "sent once",
        ),
        (
            steps(&json!([{"loop": {"count": 2}, "steps": [{"path": "/"}]}])),
            "without blocks",
        ),
        (
            open(&json!({"session": "request", "think": {"kind": "constant", "ms": 1}})),
            "load.think",
        ),
        (json!({"cache": {"fresh": true}}), "cache.fresh"),
    ] {
        found.push(("`session` = `request` and", all(&[&request, &keys]), word));
    }
    found
}

#[test]
fn every_documented_combination_is_refused_by_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let table = DOCS
        .split("## What is still refused together")
        .nth(1)
        .unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter(|line| !line.starts_with("combination"))
        .collect();
    let mut shown = BTreeSet::new();
    for (row, keys, word) in cases(folder.path()) {
        let place = rows.iter().position(|one| one.starts_with(row));
        shown.insert(place.unwrap_or_else(|| panic!("docs/engine.md has no row {row}")));
        let mut plan = run_support::plan("127.0.0.1:1".parse().unwrap(), "auto", |_| {});
        put(&mut plan, &keys);
        let ended = run(&plan);
        assert_eq!(ended.code, Some(2), "{row}: {keys}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(
            ended.stderr.contains(word),
            "{row}: {keys}: {}",
            ended.stderr
        );
    }
    let untested: Vec<&str> = (0..rows.len())
        .filter(|place| !shown.contains(place))
        .map(|place| rows[place])
        .collect();
    assert_eq!(untested, Vec::<&str>::new());
}
