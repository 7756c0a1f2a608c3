//! Pipelining together with everything that decides what comes next: what goes out in one piece,
//! and what waits for which response. On both drivers.

mod run_support;
mod serve_support;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use run_support::{Server, assert_counts, drivers, plan, run};
use serde_json::{Value, json};

type Groups = Arc<Mutex<Vec<Vec<String>>>>;

/// Takes what comes in one piece, keeps it, and only then answers all of it in its order.
fn in_groups(response: impl Fn(&str) -> String + Send + Sync + 'static) -> (Server, Groups) {
    let groups = Groups::default();
    let kept = Arc::clone(&groups);
    let server = Server::start(move |peer| {
        while let Some(first) = peer.request() {
            let mut group = vec![first];
            // A piece comes whole; what waits for a response never comes before one.
            let briefly = Some(Duration::from_millis(30));
            peer.stream.set_read_timeout(briefly).unwrap();
            while let Some(next) = peer.request() {
                group.push(next);
            }
            peer.stream.set_read_timeout(None).unwrap();
            let responses: String = group.iter().map(|request| response(request)).collect();
            kept.lock().unwrap().push(group);
            peer.send(&responses);
        }
    });
    (server, groups)
}

fn ok(body: &str) -> String {
    with("", body)
}

fn with(header: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{header}Content-Length: {length}\r\n\r\n{body}")
}

fn target(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

/// The targets of each piece, one after the other with a blank between.
fn targets(groups: &Groups) -> Vec<String> {
    let groups = groups.lock().unwrap();
    let line = |group: &Vec<String>| {
        let targets: Vec<&str> = group.iter().map(|request| target(request)).collect();
        targets.join(" ")
    };
    groups.iter().map(line).collect()
}

/// Runs a plan with pipelining, and checks Little's law: what was in flight is the sum of the times
/// of the requests.
fn run_deep(address: SocketAddr, driver: &str, depth: u32, edit: impl FnOnce(&mut Value)) -> Value {
    let plan = plan(address, driver, |plan| {
        plan["connection"] = json!({"pipeline": depth});
        edit(plan);
    });
    let finished = run(&plan).finished().clone();
    let totals = &finished["totals"];
    let integral = totals["in_flight_integral_s"].as_f64().unwrap();
    let sum = totals["service_time_sum_s"].as_f64().unwrap();
    let off = (integral - sum).abs();
    assert!(
        off <= 1e-6 * sum || totals["failed"] != 0,
        "{integral} {sum}"
    );
    finished
}

#[test]
fn a_request_waits_for_the_response_that_it_needs_a_value_of_and_for_no_other() {
    for driver in drivers() {
        let number = std::sync::atomic::AtomicU64::new(0);
        let (server, groups) = in_groups(move |request| {
            let next = || number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            match target(request) {
                "/login" => ok(&format!("{{\"id\":{}}}", next())),
                _ => ok("{}"),
            }
        });
        let finished = run_deep(server.address, driver, 4, |plan| {
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/login", "capture": [{"name": "id", "json": "/id"}]},
                {"path": "/a"}, {"path": "/b/${id}"}, {"path": "/c"}]);
            plan["stop"] = json!({"iterations_per_user": 3});
        });
        let expected = json!({"sent": 12, "completed": 12, "failed": 0, "connections_opened": 1});
        assert_counts(&finished["totals"], &expected);
        assert_eq!(
            targets(&groups),
            [
                "/login /a",
                "/b/0 /c /login /a",
                "/b/1 /c /login /a",
                "/b/2 /c"
            ]
        );
    }
}

#[test]
fn a_value_that_was_not_found_ends_the_iteration_and_belongs_to_no_other() {
    for driver in drivers() {
        let number = std::sync::atomic::AtomicU64::new(0);
        let (server, groups) = in_groups(move |request| {
            let odd = || number.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 2 == 1;
            match target(request) {
                "/login" if odd() => ok("{}"),
                "/login" => ok("{\"id\":5}"),
                _ => ok("{}"),
            }
        });
        let finished = run_deep(server.address, driver, 8, |plan| {
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/login", "capture": [{"name": "id", "json": "/id"}]}, {"path": "/b/${id}"}]);
            plan["stop"] = json!({"iterations_per_user": 4});
        });
        let expected = json!({"completed": 6, "failed": 2, "errors": {"capture": 2}});
        assert_counts(&finished["totals"], &expected);
        assert_eq!(
            targets(&groups),
            ["/login", "/b/5 /login", "/login", "/b/5 /login"]
        );
    }
}

#[test]
fn nothing_waits_for_a_value_that_is_only_reported() {
    for driver in drivers() {
        let number = std::sync::atomic::AtomicU64::new(0);
        let (server, groups) = in_groups(move |_| {
            let next = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            ok(&format!("{{\"id\":{next}}}"))
        });
        let finished = run_deep(server.address, driver, 4, |plan| {
            plan["scenarios"][0]["steps"] =
                json!([{"path": "/a", "capture": [{"name": "id", "json": "/id"}]}]);
            plan["report"] = json!(["id"]);
            plan["stop"] = json!({"iterations_per_user": 6});
        });
        assert_eq!(targets(&groups), ["/a /a /a /a", "/a /a"]);
        assert_eq!(finished["values"], json!({"id": "5"}));
    }
}

#[test]
fn cookies_are_those_known_at_the_time_of_writing_and_belong_to_the_path_that_was_asked_for() {
    for driver in drivers() {
        let (server, groups) = in_groups(|request| match target(request) {
            "/x/one" => with("Set-Cookie: s=1\r\n", "x"),
            _ => ok("x"),
        });
        let finished = run_deep(server.address, driver, 2, |plan| {
            plan["cookies"] = true.into();
            plan["scenarios"][0]["steps"] = json!([{"path": "/x/one"}, {"path": "/y/two"}]);
            plan["stop"] = json!({"iterations_per_user": 3});
        });
        assert_counts(&finished["totals"], &json!({"completed": 6, "failed": 0}));
        let groups = groups.lock().unwrap();
        let sent: Vec<(&str, bool)> = groups
            .iter()
            .flatten()
            .map(|request| (target(request), request.contains("Cookie: s=1\r\n")))
            .collect();
        assert_eq!(groups.len(), 3);
        assert_eq!(sent[..2], [("/x/one", false), ("/y/two", false)]);
        for later in [&sent[2..4], &sent[4..]] {
            assert_eq!(later, [("/x/one", true), ("/y/two", false)]);
        }
    }
}

#[test]
fn validators_of_a_cache_are_kept_for_the_path_that_was_asked_for() {
    for driver in drivers() {
        let (server, groups) = in_groups(|request| {
            let tag = format!("ETag: \"{}\"\r\n", target(request));
            with(&tag, "x")
        });
        run_deep(server.address, driver, 3, |plan| {
            plan["cache"] = json!({});
            plan["scenarios"][0]["steps"] = json!([{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]);
            plan["stop"] = json!({"iterations_per_user": 2});
        });
        let groups = groups.lock().unwrap();
        for request in &groups[1] {
            let tag = format!("If-None-Match: \"{}\"\r\n", target(request));
            assert!(request.contains(&tag), "{request}");
        }
        assert_eq!((groups.len(), groups[1].len()), (2, 3));
    }
}

#[test]
fn rows_loops_repeats_and_weights_go_out_in_the_order_of_the_walk() {
    for driver in drivers() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"name\nann\nbob\n").unwrap();
        let (server, groups) = in_groups(|_| ok("x"));
        let finished = run_deep(server.address, driver, 5, |plan| {
            plan["feeders"] = json!([{"name": "people", "file": file.path(), "order": "sequence", "at_end": "stop"}]);
            plan["scenarios"] = json!([{"loops": 2, "steps": [
                {"path": "/${people.name}", "repeat": 2}, {"path": "/end"}]}]);
        });
        let expected = json!({"completed": 12, "failed": 0, "connections_opened": 1});
        assert_counts(&finished["totals"], &expected);
        assert_eq!(
            targets(&groups),
            [
                "/ann /ann /end /ann /ann",
                "/end /bob /bob /end /bob",
                "/bob /end"
            ]
        );
    }
}

#[test]
fn a_pause_of_its_own_a_redirect_and_an_end_are_decided_by_the_response() {
    for driver in drivers() {
        let (server, groups) = in_groups(|request| match target(request) {
            "/away" => "HTTP/1.1 302 Found\r\nLocation: /here\r\nContent-Length: 0\r\n\r\n".into(),
            _ => ok("x"),
        });
        let finished = run_deep(server.address, driver, 9, |plan| {
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/a"}, {"path": "/away", "follow_redirects": 2},
                {"path": "/b", "think": {"kind": "constant", "ms": 2}},
                {"path": "/c", "end_on": ["body"], "expect": {"body_equals": "y"}}, {"path": "/never"}]);
            plan["stop"] = json!({"iterations_per_user": 2});
        });
        let expected =
            json!({"completed": 10, "failed": 2, "errors": {"expect_body": 2}, "think_count": 2});
        assert_counts(&finished["totals"], &expected);
        let walk = ["/a /away", "/here", "/b", "/c"];
        assert_eq!(targets(&groups), [walk, walk].concat());
        assert_counts(
            &finished["window"]["transactions"][0],
            &json!({"name": "GET /away", "completed": 2, "failed": 0}),
        );
    }
}

#[test]
fn blocks_go_together_as_far_as_they_ask_for_nothing_and_transactions_hold_their_own_requests() {
    for driver in drivers() {
        let (server, groups) = in_groups(|_| ok("{\"id\":7}"));
        let finished = run_deep(server.address, driver, 10, |plan| {
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/0"},
                {"transaction": "visit", "steps": [
                    {"loop": {"count": 3}, "steps": [{"name": "part", "path": "/p", "capture": [{"name": "id", "json": "/id"}]}]},
                    {"if": {"left": "${id}", "op": "==", "right": "7"}, "steps": [{"path": "/seven"}, {"path": "/8"}]}]},
                {"path": "/9"},
                {"pause": {"kind": "constant", "ms": 1}},
                {"path": "/10"}]);
            plan["stop"] = json!({"iterations_per_user": 2});
        });
        let expected = json!({"completed": 16, "failed": 0, "think_count": 2});
        assert_counts(&finished["totals"], &expected);
        let groups = targets(&groups);
        // The transaction begins and ends between responses, the condition asks for what was
        // captured last.
        assert_eq!(
            groups,
            [
                "/0",
                "/p /p /p",
                "/seven /8",
                "/9",
                "/10 /0",
                "/p /p /p",
                "/seven /8",
                "/9",
                "/10"
            ]
        );
        let visit = &finished["window"]["transactions"][0];
        assert_counts(
            visit,
            &json!({"name": "visit", "completed": 2, "failed": 0}),
        );
    }
}

#[test]
fn a_body_that_waits_or_is_read_while_it_goes_out_goes_by_itself() {
    for driver in drivers() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![b'z'; 1_200_000]).unwrap();
        let server = serve_support::Server::start("");
        let address: SocketAddr = server.address().parse().unwrap();
        let finished = run_deep(address, driver, 4, |plan| {
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/"}, {"path": "/"},
                {"method": "POST", "path": "/echo", "body": "asked for", "expect_continue": true, "expect": {"body_equals": "asked for"}},
                {"path": "/"},
                {"method": "POST", "path": "/echo", "body": {"file": file.path()}, "expect": {"body_bytes": 1_200_000}}]);
            plan["stop"] = json!({"iterations_per_user": 5});
        });
        let expected = json!({"completed": 25, "failed": 0, "connections_opened": 1});
        assert_counts(&finished["totals"], &expected);
        let served = server.stop();
        assert_eq!(served["bytes_received"], finished["totals"]["bytes_sent"]);
    }
}

#[test]
fn users_of_an_open_load_and_of_populations_send_their_requests_together() {
    for driver in drivers() {
        let (server, groups) = in_groups(|_| ok("x"));
        let three =
            json!([{"name": "main", "steps": [{"path": "/1"}, {"path": "/2"}, {"path": "/3"}]}]);
        let finished = run_deep(server.address, driver, 2, |plan| {
            plan["load"] = json!({"model": "open", "arrivals": "constant", "session": "user", "max_users": 9, "connections": 1,
                "phases": [{"duration_ms": 200, "from_per_s": 25, "to_per_s": 25}]});
            plan["scenarios"] = three.clone();
            plan["stop"] = json!({});
        });
        assert_counts(
            &finished["totals"],
            &json!({"offered": 15, "sent": 15, "completed": 15, "sessions_begun": 5, "sessions_completed": 5}),
        );
        assert_eq!(finished["window"]["latency"]["count"], 15);
        let mut sent = targets(&groups);
        sent.sort();
        assert_eq!(sent, [["/1 /2"; 5], ["/3"; 5]].concat());

        let (server, groups) = in_groups(|_| ok("x"));
        let finished = run_deep(server.address, driver, 3, |plan| {
            plan["load"] = json!({"model": "closed", "populations": [
                {"name": "few", "users": 1, "iterations_per_user": 2}, {"name": "many", "users": 2, "iterations_per_user": 1}]});
            plan["scenarios"] = three.clone();
            plan["stop"] = json!({});
        });
        assert_counts(&finished["totals"], &json!({"completed": 12, "failed": 0}));
        assert_eq!(targets(&groups), ["/1 /2 /3"; 4]);
    }
}

/// A script that returns two requests at a time.
const PAIRS: &str = r#"
    local number = 0
    request = function()
        number = number + 1
        return wrk.format("GET", "/g" .. number) .. wrk.format("HEAD", "/h" .. number)
    end"#;

fn scripted(plan: &mut Value, lua: &tempfile::NamedTempFile) {
    plan["script"] = json!({"file": lua.path(), "url": "http://given/"});
}

fn file_of(lua: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".lua").unwrap();
    std::fs::write(file.path(), lua).unwrap();
    file
}

fn hello_or_head(request: &str) -> String {
    match request.starts_with("HEAD") {
        true => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".into(),
        false => ok("hello"),
    }
}

#[test]
fn pieces_of_a_script_go_together_and_a_total_may_end_amid_one() {
    for driver in drivers() {
        let (server, groups) = in_groups(hello_or_head);
        let lua = file_of(PAIRS);
        let finished = run_deep(server.address, driver, 3, |plan| {
            scripted(plan, &lua);
            plan["stop"] = json!({"total_requests": 7});
        });
        let expected = json!({"sent": 7, "completed": 7, "failed": 0, "connections_opened": 1});
        assert_counts(&finished["totals"], &expected);
        // The first call was before the load; a third request asks for a second piece.
        assert_eq!(targets(&groups), ["/g2 /h2 /g3 /h3", "/g4 /h4 /g5"]);
    }
}

#[test]
fn each_request_of_a_script_has_its_row_and_its_parts() {
    for driver in drivers() {
        let (server, _) = in_groups(hello_or_head);
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("requests.csv");
        let lua = file_of(PAIRS);
        let finished = run_deep(server.address, driver, 1, |plan| {
            scripted(plan, &lua);
            plan["script"]["threads"] = 2.into();
            plan["load"] = json!({"model": "closed", "populations": [{"name": "all", "users": 2, "iterations_per_user": 3}]});
            plan["log"] = json!(log);
            plan["parts"] = true.into();
            plan["stop"] = json!({});
        });
        let (totals, window) = (&finished["totals"], &finished["window"]);
        assert_counts(totals, &json!({"completed": 12, "failed": 0}));
        for part in ["send_time", "wait_time", "receive_time", "service_time"] {
            assert_eq!(window[part]["count"], 12, "{part}");
        }
        let rows: Vec<std::collections::HashMap<String, String>> = csv::Reader::from_path(&log)
            .unwrap()
            .deserialize()
            .map(Result::unwrap)
            .collect();
        let mut sent: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {} {}", row["method"], row["path"], row["step_index"]))
            .collect();
        sent.sort();
        // The first thread's function was called once before the load.
        let each = |method: &str, word: char| {
            [1, 2, 2, 3, 3, 4].map(|number| format!("{method} /{word}{number} 0"))
        };
        assert_eq!(sent, [each("GET", 'g'), each("HEAD", 'h')].concat());
        for (column, total) in [("bytes_out", "bytes_sent"), ("bytes_in", "bytes_received")] {
            let sum: u64 = rows
                .iter()
                .map(|row| row[column].parse::<u64>().unwrap())
                .sum();
            assert_eq!(&json!(sum), &totals[total], "{column}");
        }
    }
}
