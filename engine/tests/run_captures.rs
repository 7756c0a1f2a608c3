//! What is captured of responses and used in later requests, on both drivers.

mod run_support;

use std::sync::Arc;

use run_support::recording::{Requests, ok, paths, recording};
use run_support::{Server, assert_counts, drivers, plan, run, totals};
use serde_json::json;

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
