//! Scenarios against real sockets, on both drivers: what is sent, what is captured and used, what
//! is judged, what is counted per step.

mod run_support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use run_support::{Server, assert_counts, drivers, plan, run, totals};
use serde_json::{Value, json};

type Requests = Arc<Mutex<Vec<String>>>;

/// A server that keeps every request and answers by a function of it.
fn recording(response: impl Fn(&str) -> String + Send + Sync + 'static) -> (Server, Requests) {
    let requests = Requests::default();
    let kept = Arc::clone(&requests);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let text = response(&request);
            kept.lock().unwrap().push(request);
            peer.send(&text);
        }
    });
    (server, requests)
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn paths(requests: &Requests) -> Vec<String> {
    let path = |request: &String| request.split(' ').nth(1).unwrap().to_owned();
    requests.lock().unwrap().iter().map(path).collect()
}

/// `prony-engine serve` while this lives.
struct Reference(Child, SocketAddr);

impl Reference {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_prony-engine"))
            .args(["serve", "--listen", "127.0.0.1:0", "--stdin-guard"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let address = listening["address"].as_str().unwrap().parse().unwrap();
        Self(child, address)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
    let server = Reference::start();
    for driver in drivers() {
        let plan = plan(server.1, driver, |plan| {
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
fn an_iteration_without_its_captured_value_is_broken_off() {
    for driver in drivers() {
        // Every second response lacks the value.
        let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let (server, requests) = recording(move |request| {
            if !request.contains("/make") {
                return ok("used");
            }
            let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            ok(&if n.is_multiple_of(2) {
                format!("token={n};")
            } else {
                "nothing".to_owned()
            })
        });
        let plan = plan(server.address, driver, |plan| {
            plan["scenarios"] = json!([{"steps": [
                {"name": "make", "path": "/make", "capture": [{"name": "token", "regex": "token=(\\d+);"}]},
                {"name": "use", "path": "/use/${token}"}]}]);
            plan["stop"]["iterations_per_user"] = 4.into();
        });
        let ended = run(&plan);
        let finished = ended.finished();
        assert_counts(
            &finished["totals"],
            &json!({"completed": 6, "failed": 2, "errors": {"capture": 2}}),
        );
        assert_eq!(
            paths(&requests),
            ["/make", "/use/0", "/make", "/make", "/use/2", "/make"]
        );
        assert_eq!(finished["window"]["steps"][0]["failed"], 2);
        assert_eq!(finished["window"]["steps"][1]["failed"], 0);
    }
}

#[test]
fn captures_see_responses_that_come_in_pieces() {
    for driver in drivers() {
        let requests = Requests::default();
        let kept = Arc::clone(&requests);
        let server = Server::start(move |peer| {
            while let Some(request) = peer.request() {
                kept.lock().unwrap().push(request);
                for piece in [
                    "HTTP/1.1 200 OK\r\nX-A: he",
                    "ad\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n",
                    "8\r\n:\"whole\"\r\n1\r\n}\r\n0\r\n\r\n",
                ] {
                    peer.send(piece);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        });
        let plan = plan(server.address, driver, |plan| {
            plan["scenarios"] = json!([{"steps": [
                {"path": "/1", "capture": [{"name": "h", "header": "x-a"}, {"name": "b", "json": "/a"}]},
                {"path": "/2/${h}/${b}"}]}]);
            plan["stop"]["total_requests"] = 2.into();
        });
        assert_counts(&totals(&plan), &json!({"completed": 2, "failed": 0}));
        assert_eq!(paths(&requests), ["/1", "/2/head/whole"]);
    }
}

#[test]
fn captures_find_the_one_the_several_and_what_lies_between() {
    let body = r#"{"items":[{"id":41},{"id":42}],"token":"a b&c"}"#;
    let step = json!({"path": "/", "capture": [
        {"name": "last", "jsonpath": "$.items[-1].id"},
        {"name": "each", "regex": "\"id\":(\\d+)", "match": -1},
        {"name": "token", "boundary": {"left": "\"token\":\"", "right": "\""}},
        {"name": "sid", "cookie": "sid"}, {"name": "code", "status": true},
        {"name": "none", "jsonpath": "$.none", "default": "-"},
        {"name": "kept", "header": "X-New", "optional": true},
        {"name": "place", "boundary": {"left": "Location: ", "right": "\r\n"}, "in": "head"}]});
    let used = json!({"path": "/${last}/${each_matchNr}${each_2}/${token | form}/${sid}/${code}/${none}/${kept}${place}"});
    for driver in drivers() {
        let head = "HTTP/1.1 201 Made\r\nSet-Cookie: sid=s7; Path=/\r\nLocation: /there\r\n";
        let (server, requests) =
            recording(move |_| format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        let plan = plan(server.address, driver, |plan| {
            plan["scenarios"][0]["variables"] = json!([["kept", "was"]]);
            plan["scenarios"][0]["steps"] = json!([step, used]);
            plan["stop"]["total_requests"] = 2.into();
        });
        assert_counts(&totals(&plan), &json!({"completed": 2, "failed": 0}));
        assert_eq!(
            paths(&requests),
            ["/", "/42/242/a+b%26c/s7/201/-/was/there"]
        );
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
fn a_long_file_is_streamed_from_the_disk() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for number in 0..200_000 {
        std::io::Write::write_fmt(&mut file, format_args!("{number:09} ")).unwrap();
    }
    let text = std::fs::read_to_string(file.path()).unwrap();
    let server = Reference::start();
    for driver in drivers() {
        for chunked in [false, true] {
            let plan = plan(server.1, driver, |plan| {
                plan["scenarios"][0]["steps"][0] = json!({"method": "PUT", "path": "/echo?n=${sequence}",
                    "body": {"file": file.path(), "chunked": chunked}, "expect": {"body_equals": text}});
                plan["stop"]["total_requests"] = 3.into();
            });
            let ended = run(&plan);
            let finished = ended.finished();
            let totals = &finished["totals"];
            assert_counts(
                totals,
                &json!({"completed": 3, "failed": 0, "connections_opened": 1}),
            );
            assert!(totals["bytes_sent"].as_u64().unwrap() > 6_000_000);
            let reader_cpu_s = finished["reader_cpu_s"].as_f64().unwrap();
            assert!(reader_cpu_s > 0.0 && reader_cpu_s < 10.0, "{reader_cpu_s}");
        }
    }
}

#[test]
fn a_streamed_request_ends_with_its_connection() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(50_000_000).unwrap();
    for driver in drivers() {
        // The response comes before the request is read, and the connection is given up in the
        // middle of the file.
        let server = Server::start(|peer| {
            let mut some = [0; 100];
            std::io::Read::read_exact(&mut peer.stream, &mut some).unwrap();
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            // The client gives the connection up at once; closing it here too early would take the
            // response back.
            std::thread::sleep(std::time::Duration::from_secs(5));
        });
        let plan = plan(server.address, driver, |plan| {
            plan["scenarios"][0]["steps"][0] = json!({"method": "PUT", "path": "/", "body": {"file": file.path(), "chunked": true}});
            plan["stop"]["total_requests"] = 3.into();
        });
        assert_counts(
            &totals(&plan),
            &json!({"completed": 3, "failed": 0, "status": {"413": 3}, "connections_opened": 3}),
        );
    }
}

/// A step whose body waits to be asked for.
fn waiting(plan: &mut Value) {
    plan["scenarios"][0]["steps"][0] = json!({"method": "POST", "path": "/echo", "body": "n ${sequence} end",
        "expect_continue": true, "expect": {"status": [200, 417]}});
    plan["stop"]["total_requests"] = 3.into();
}

#[test]
fn a_body_waits_until_the_server_asks_for_it() {
    let server = Reference::start();
    for driver in drivers() {
        let plan = plan(server.1, driver, |plan| {
            waiting(plan);
            plan["scenarios"][0]["steps"][0]["expect"]["body_contains"] = json!(["n ", " end"]);
        });
        let totals = totals(&plan);
        let expected = json!({"completed": 3, "failed": 0, "connections_opened": 1});
        assert_counts(&totals, &expected);
    }
}

#[test]
fn a_body_that_nobody_asks_for_is_sent_after_a_second_or_never() {
    for driver in drivers() {
        // It knows nothing of Expect and waits for the body.
        let (silent, requests) = recording(|_| ok("x"));
        let asked = plan(silent.address, driver, |plan| {
            waiting(plan);
            plan["stop"]["total_requests"] = 1.into();
        });
        let totals = run(&asked).finished()["totals"].clone();
        assert_counts(&totals, &json!({"completed": 1, "failed": 0}));
        assert!(totals["service_time_sum_s"].as_f64().unwrap() >= 1.0);
        assert!(requests.lock().unwrap()[0].ends_with("n 1 end"));

        // It refuses by the head alone: the connection cannot be used any more.
        let refusing = Server::start(|peer| {
            let mut head = [0; 16];
            std::io::Read::read_exact(&mut peer.stream, &mut head).unwrap();
            peer.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
            std::thread::sleep(std::time::Duration::from_secs(5));
        });
        let refused = plan(refusing.address, driver, waiting);
        assert_counts(
            &run(&refused).finished()["totals"],
            &json!({"completed": 3, "failed": 0, "connections_opened": 3, "status": {"417": 3}}),
        );
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
