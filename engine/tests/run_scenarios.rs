//! Scenarios against real sockets, on both drivers: what is sent, what is judged, what is counted per step.

mod run_support;
mod serve_support;

use std::collections::BTreeSet;

use run_support::recording::{ok, paths, recording};
use run_support::{assert_counts, drivers, plan, run, totals};
use serde_json::{Value, json};
use serve_support::Server as Reference;

fn crud() -> Value {
    json!([{"name": "crud", "steps": [
        {"name": "create", "method": "POST", "path": "/echo",
         "headers": [["Content-Type", "application/json"]],
         "body": r#"{"id":"p-${sequence}","name":"${random string 6}","age":${random int 18 99}}"#,
         "expect": {"status": [200], "json": [{"pointer": "/id"}]},
         "capture": [{"name": "id", "json": "/id"}, {"name": "kind", "header": "content-type"}]},
        {"name": "read", "method": "POST", "path": "/echo?id=${id}", "body": "${id} ${kind}", "repeat": 2,
         "expect": {"status": [200], "body_contains": ["p-", " application/json"]}},
        {"name": "delete", "method": "POST", "path": "/echo", "body": {"text": "gone", "chunked": true},
         "expect": {"body_equals": "gone"}}]}])
}

#[test]
fn a_failed_request_ends_the_run_where_its_step_says_so_and_nowhere_else() {
    for driver in drivers() {
        for (path, kind) in [("/wrong", "expect_status"), ("/nonsense", "protocol")] {
            let (server, requests) =
                recording(|request| match request.split(' ').nth(1).unwrap() {
                    "/wrong" => "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".into(),
                    "/nonsense" => "nonsense\r\n\r\n".into(),
                    _ => ok("x"),
                });
            let plan = plan(server.address, driver, |plan| {
                plan["load"] = json!({"model": "closed", "populations": [
                    {"name": "patient", "users": 2, "think": {"kind": "constant", "ms": 5}, "scenarios": ["patient"]},
                    {"name": "strict", "users": 1, "start_ms": 100, "scenarios": ["strict"]},
                ]});
                plan["scenarios"] = json!([
                    {"name": "patient", "steps": [{"path": "/wrong", "expect": {"status": [200]}}]},
                    {"name": "strict", "steps": [
                        {"path": "/right", "expect": {"status": [200]}, "ends_run_on_error": true},
                        {"path": path, "expect": {"status": [200]}, "ends_run_on_error": true,
                            "think": {"kind": "constant", "ms": 100_000}}]},
                ]);
            });
            let ended = run(&plan);
            let finished = ended.finished();
            assert_eq!(finished["reason"], "request_failed", "{driver} {path}");
            assert!(finished["totals"]["errors"][kind].as_u64() >= Some(1));
            // The other group began first, and failed.
            let asked = paths(&requests);
            assert!(asked.iter().any(|path| path == "/wrong"));
            assert_eq!(asked.iter().filter(|path| *path == "/right").count(), 1);
        }
    }
}

#[test]
fn a_scenario_walks_through_the_reference_server() {
    let server = Reference::start("");
    for driver in drivers() {
        let plan = plan(server.address().parse().unwrap(), driver, |plan| {
            plan["load"]["users"] = 3.into();
            plan["threads"] = json!({"cpus": [0, 1]});
            plan["scenarios"] = crud();
            plan["stop"]["iterations_per_user"] = 20.into();
        });
        let ended = run(&plan);
        let finished = ended.finished();
        assert_eq!(finished["reason"], "iterations");
        assert_counts(
            &finished["totals"],
            &json!({"completed": 240, "failed": 0, "errors": {}, "status": {"200": 240}}),
        );
        let steps = finished["window"]["steps"].as_array().unwrap();
        let figures = |step: &Value| {
            (
                step["scenario"].as_str().unwrap().to_owned(),
                step["name"].as_str().unwrap().to_owned(),
                step["completed"].as_u64().unwrap(),
                step["failed"].as_u64().unwrap(),
                step["service_time"]["count"].as_u64().unwrap(),
            )
        };
        let expected = [("create", 60), ("read", 120), ("delete", 60)]
            .map(|(name, count)| ("crud".to_owned(), name.to_owned(), count, 0, count));
        assert_eq!(steps.iter().map(figures).collect::<Vec<_>>(), expected);
        assert_eq!(steps[1]["status"], json!({"200": 120}));
    }
}

#[test]
fn a_single_step_has_no_figures_of_its_own() {
    for driver in drivers() {
        let (server, _) = recording(|_| ok("x"));
        let plan = plan(server.address, driver, |plan| {
            plan["stop"]["total_requests"] = 5.into();
        });
        assert_eq!(run(&plan).finished()["window"]["steps"], json!([]));
    }
}

#[test]
fn a_sequence_is_exact_over_all_threads_and_users() {
    for driver in drivers() {
        let (server, requests) = recording(|_| ok("x"));
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 8.into();
            plan["threads"] = json!({"cpus": [0, 1]});
            plan["scenarios"][0]["steps"][0]["path"] =
                "/${sequence start=100 step=2}/${sequence per=user}".into();
            plan["stop"]["iterations_per_user"] = 25.into();
        });
        assert_counts(&totals(&plan), &json!({"completed": 200, "failed": 0}));
        let mut global = BTreeSet::new();
        let mut own = [0; 26];
        for path in paths(&requests) {
            let (number, user) = path[1..].split_once('/').unwrap();
            global.insert(number.parse::<u64>().unwrap());
            own[user.parse::<usize>().unwrap()] += 1;
        }
        assert_eq!(global, (0..200).map(|n| 100 + 2 * n).collect());
        assert_eq!(own[1..], [8; 25]);
    }
}

#[test]
fn rows_are_fed_and_end_as_declared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("people.csv");
    std::fs::write(&file, "name,town\nAda,\"Lon don\"\nGrace,\nEdith,Turin\n").unwrap();
    for driver in drivers() {
        let (server, requests) = recording(|_| ok("x"));
        let fed = |order: &str, at_end: Option<&str>| {
            requests.lock().unwrap().clear();
            let plan = plan(server.address, driver, |plan| {
                plan["load"]["users"] = 2.into();
                plan["feeders"] =
                    json!([{"name": "people", "file": file, "order": order, "at_end": at_end}]);
                plan["scenarios"][0]["steps"][0]["path"] = "/${people.name}/${people.town}".into();
                plan["stop"]["iterations_per_user"] = 4.into();
            });
            let ended = run(&plan);
            assert_eq!(ended.finished()["reason"], "iterations");
            let mut found = paths(&requests);
            found.sort();
            let mut distinct = found.clone();
            distinct.dedup();
            let counted = match order {
                "unique_per_user" => json!([]),
                _ => {
                    json!([{"scenario": "main", "step": "GET /${people.name}/${people.town}", "rows": 3,
                    "distinct": distinct.len()}])
                }
            };
            assert_eq!(ended.finished()["window"]["urls"], counted);
            found
        };
        let (ada, edith, grace) = ("/Ada/Lon%20don", "/Edith/Turin", "/Grace/");
        assert_eq!(fed("sequence", Some("stop")), [ada, edith, grace]);
        assert_eq!(
            fed("sequence", Some("recycle")),
            [ada, ada, ada, edith, edith, grace, grace, grace]
        );
        assert_eq!(
            fed("unique_per_user", Some("stop")),
            [[ada; 4], [grace; 4]].concat()
        );
        assert_eq!(fed("random", None).len(), 8);
    }
}

#[test]
fn every_arrival_of_an_open_load_is_a_new_user() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let rows: String = (0..1000).map(|row| format!("{row}\n")).collect();
    std::fs::write(file.path(), format!("number\n{rows}")).unwrap();
    for driver in drivers() {
        let (server, requests) = recording(|request| {
            let path = request.split(' ').nth(1).unwrap();
            format!(
                "HTTP/1.1 200 OK\r\nX-Path: {path}\r\nSet-Cookie: seen=yes; Path=/\r\nContent-Length: 0\r\n\r\n"
            )
        });
        let plan = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "open", "session": "user", "max_users": 50,
                "phases": [{"duration_ms": 300, "from_per_s": 200, "to_per_s": 200}]});
            plan["stop"] = json!({"after_ms": 20_000});
            plan["cookies"] = true.into();
            plan["feeders"] = json!([{"name": "rows", "file": file.path(), "order": "unique_per_user", "at_end": "recycle"}]);
            plan["scenarios"] = json!([{"steps": [
                {"path": "/${rows.number}/${sequence per=user}", "capture": [{"name": "path", "header": "x-path"}]},
                {"path": "/then${path}/${rows.number}"}]}]);
        });
        let totals = totals(&plan);
        assert_counts(&totals, &json!({"completed": 120, "failed": 0}));
        let mut found = paths(&requests);
        found.sort();
        let mut expected: Vec<String> = (0..60)
            .flat_map(|user| [format!("/{user}/1"), format!("/then/{user}/1/{user}")])
            .collect();
        expected.sort();
        assert_eq!(found, expected);
        // A new user has no cookies, although its place was another's before.
        for request in requests.lock().unwrap().iter() {
            assert_eq!(
                request.contains("Cookie: seen=yes"),
                request.contains(" /then")
            );
        }
    }
}

#[test]
fn loops_weights_and_pauses_shape_the_walk() {
    for driver in drivers() {
        let (server, requests) = recording(|_| ok("x"));
        let plan = plan(server.address, driver, |plan| {
            plan["scenario_choice"] = "per_iteration".into();
            plan["scenarios"] = json!([
                {"name": "often", "weight": 9, "loops": 2, "steps": [{"path": "/a", "think": {"kind": "constant", "ms": 1}}, {"path": "/b"}]},
                {"name": "seldom", "steps": [{"path": "/c", "repeat": 3}]}]);
            plan["stop"]["iterations_per_user"] = 60.into();
        });
        let ended = run(&plan);
        let totals = &ended.finished()["totals"];
        let walked = paths(&requests).concat();
        let often = walked.matches("/a/b/a/b").count();
        let seldom = walked.matches("/c/c/c").count();
        assert_eq!(often + seldom, 60, "{walked}");
        assert!(often > seldom && seldom > 0, "{often} {seldom}");
        assert_eq!(totals["think_count"], 2 * often);
    }
}

#[test]
fn cookies_and_credentials_go_with_the_user() {
    for driver in drivers() {
        let (server, requests) = recording(|_| {
            "HTTP/1.1 200 OK\r\nSet-Cookie: s=1; Path=/\r\nSet-Cookie: t=2; Path=/other\r\nContent-Length: 0\r\n\r\n".to_owned()
        });
        let plan = plan(server.address, driver, |plan| {
            plan["cookies"] = true.into();
            plan["scenarios"][0]["steps"][0]["auth"] =
                json!({"basic": {"user": "a", "password": "b"}});
            plan["stop"]["total_requests"] = 2.into();
        });
        assert_counts(&totals(&plan), &json!({"completed": 2, "failed": 0}));
        let requests = requests.lock().unwrap();
        assert!(!requests[0].contains("Cookie") && requests[1].contains("\r\nCookie: s=1\r\n"));
        assert!(requests[0].contains("Authorization: Basic YTpi\r\n"));
    }
}

#[test]
fn scenarios_that_cannot_be_walked_are_refused() {
    let refusal = |edit: &dyn Fn(&mut Value)| {
        let plan = plan("127.0.0.1:1".parse().unwrap(), "epoll", |plan| edit(plan));
        let ended = run(&plan);
        assert_eq!(ended.code, Some(2));
        assert_eq!(ended.events[0]["kind"], "plan");
        ended.stderr
    };
    for (path, part) in [
        (
            "/${idd}",
            "scenario \"main\", step 1 (GET /${idd}): path, character 2: ${idd} is not known here",
        ),
        ("/${uuid", "has no }"),
        ("/a b", "no blanks"),
    ] {
        let said = refusal(&|plan| plan["scenarios"][0]["steps"][0]["path"] = path.into());
        assert!(said.contains(part), "{said}");
    }
    let weight = refusal(&|plan| plan["scenarios"][0]["weight"] = 0.into());
    assert!(weight.contains("weight 0"), "{weight}");
    let body = refusal(&|plan| plan["scenarios"][0]["steps"][0]["body"] = json!({"txt": "a"}));
    assert!(body.contains("body: unknown field `txt`"), "{body}");
    let twice = refusal(&|plan| {
        let one = plan["scenarios"][0].clone();
        plan["scenarios"] = json!([one, one]);
    });
    assert!(twice.contains("two named \"main\""), "{twice}");
    let open = refusal(&|plan| {
        plan["load"] = json!({"model": "open", "max_users": 1,
            "phases": [{"duration_ms": 300, "from_per_s": 200, "to_per_s": 200}]});
        plan["feeders"] =
            json!([{"name": "f", "file": "x.csv", "order": "sequence", "at_end": "stop"}]);
    });
    assert!(open.contains("expected recycle"), "{open}");
    let feeder = refusal(&|plan| {
        plan["feeders"] = json!([{"name": "f", "file": "nowhere.csv", "order": "random"}]);
    });
    assert!(
        feeder.contains("feeder \"f\": nowhere.csv cannot be read"),
        "{feeder}"
    );
}

#[test]
fn blocks_send_exactly_what_they_say_and_transactions_have_figures_of_their_own() {
    for driver in drivers() {
        let (server, requests) = recording(|_| ok("{\"id\":7}"));
        let plan = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "closed", "users": 2});
            plan["stop"] = json!({"iterations_per_user": 3});
            plan["scenarios"] = json!([{"variables": [["last", "none"]], "steps": [
                {"once": true, "steps": [{"path": "/login/${user}"}]},
                {"transaction": "visit", "steps": [
                    {"loop": {"over": ["a", "b"], "as": "part"}, "steps": [
                        {"name": "part", "path": "/${part}/${last}", "capture": [{"name": "id", "json": "/id"}]}]},
                    {"pause": {"kind": "constant", "ms": 2}},
                    {"if": {"left": "${id}", "op": ">", "right": "10"}, "steps": [{"path": "/never"}],
                     "else": [{"name": "else", "path": "/else", "think_before": {"kind": "constant", "ms": 1}}]}]},
                {"set": [["last", "${id}"]]}]}]);
        });
        let ran = run(&plan);
        let finished = ran.finished();
        assert_counts(
            &finished["totals"],
            &json!({"completed": 20, "failed": 0, "think_count": 6}),
        );
        let mut sent = paths(&requests);
        sent.sort();
        let expected = [
            ("/a/7", 4),
            ("/a/none", 2),
            ("/b/7", 4),
            ("/b/none", 2),
            ("/else", 6),
            ("/login/1", 1),
            ("/login/2", 1),
        ];
        let expected: Vec<String> = expected
            .iter()
            .flat_map(|(path, count)| std::iter::repeat_n((*path).to_owned(), *count))
            .collect();
        assert_eq!(sent, expected);
        let transactions = finished["window"]["transactions"].as_array().unwrap();
        assert_eq!(transactions.len(), 1);
        assert_counts(
            &transactions[0],
            &json!({"name": "visit", "completed": 6, "failed": 0}),
        );
    }
}

#[test]
fn iterations_that_send_nothing_end_and_arrivals_may_begin_with_a_pause() {
    for driver in drivers() {
        let (server, requests) = recording(|_| ok("x"));
        let never = plan(server.address, driver, |plan| {
            plan["stop"] = json!({"iterations_per_user": 5});
            plan["scenarios"] = json!([{"steps": [{"if": false, "steps": [{"path": "/"}]}]}]);
        });
        assert_counts(&totals(&never), &json!({"completed": 0, "failed": 0}));
        let arriving = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "open", "session": "user", "max_users": 50,
                "phases": [{"duration_ms": 100, "from_per_s": 100, "to_per_s": 100}]});
            plan["stop"] = json!({});
            plan["scenarios"] = json!([{"steps": [{"pause": {"kind": "constant", "ms": 20}}, {"path": "/a"},
                {"choice": "interleave", "steps": [{"pause": {"kind": "constant", "ms": 1}}, {"path": "/never"}]}, {"path": "/b"}]}]);
        });
        assert_counts(
            &totals(&arriving),
            &json!({"completed": 20, "failed": 0, "offered": 20, "sessions_begun": 10, "sessions_completed": 10}),
        );
        assert_eq!(paths(&requests).len(), 20);
    }
}
