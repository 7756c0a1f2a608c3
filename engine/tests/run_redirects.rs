//! Redirects against real sockets, on both drivers: what is asked for, with which method, cookies
//! and body, and what is counted.

mod run_support;

use run_support::recording::{Requests, ok, recording};
use run_support::{Server, assert_counts, drivers, plan, run};
use serde_json::{Value, json};

/// A server that keeps every request and answers by its path.
fn leading(response: impl Fn(&str) -> String + Send + Sync + 'static) -> (Server, Requests) {
    recording(move |request| response(request.split(' ').nth(1).unwrap()))
}

fn to(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

/// One user who walks these steps once.
fn walked(server: &Server, driver: &str, steps: &Value) -> Value {
    let plan = plan(server.address, driver, |plan| {
        plan["cookies"] = true.into();
        plan["responses"] = true.into();
        plan["scenarios"][0]["steps"] = steps.clone();
        plan["stop"]["iterations_per_user"] = 1.into();
    });
    run(&plan).finished().clone()
}

#[test]
fn a_login_leads_from_one_page_to_the_next_and_is_one_transaction() {
    let steps = json!([
        {"name": "login", "method": "POST", "path": "/login?x", "body": "${uuid}", "follow_redirects": 3,
            "headers": [["Content-Type", "text/plain"], ["X-Kept", "yes"]],
            "expect": {"body_equals": "home"}, "capture": [{"name": "code", "status": true}]},
        {"name": "after", "path": "/${code}"}]);
    for driver in drivers() {
        let (server, requests) = leading(|path| match path {
            "/login?x" => {
                to(303, "welcome").replace("Location", "Set-Cookie: sid=7; Path=/\r\nLocation")
            }
            "/welcome" => to(302, "/home#top"),
            _ => ok("home"),
        });
        let finished = walked(&server, driver, &steps);
        assert_counts(
            &finished["totals"],
            &json!({"sent": 4, "completed": 4, "failed": 0, "status": {"200": 2, "302": 1, "303": 1}, "connections_opened": 1}),
        );
        let told = finished["responses"].as_array().unwrap();
        let steps: Vec<&Value> = told
            .iter()
            .map(|response| &response["step_index"])
            .collect();
        assert_eq!(steps, [0, 1], "of a chain the last response is told");
        let requests = requests.lock().unwrap();
        let lines: Vec<&str> = requests
            .iter()
            .map(|text| text.lines().next().unwrap())
            .collect();
        let expected = ["POST /login?x", "GET /welcome", "GET /home", "GET /200"];
        assert_eq!(lines, expected.map(|line| format!("{line} HTTP/1.1")));
        for hop in &requests[1..3] {
            assert!(
                hop.contains("X-Kept: yes") && hop.contains("Cookie: sid=7"),
                "{hop}"
            );
            assert!(!hop.contains("Content-"), "{hop}");
        }
        let rows = |key: &str| -> Vec<(Value, Value)> {
            let rows = finished["window"][key].as_array().unwrap().iter();
            rows.map(|row| (row["name"].clone(), row["completed"].clone()))
                .collect()
        };
        assert_eq!(
            rows("steps"),
            [(json!("login"), json!(3)), (json!("after"), json!(1))]
        );
        assert_eq!(rows("transactions"), [(json!("login"), json!(1))]);
    }
}

#[test]
fn a_request_that_keeps_its_method_is_sent_again_as_it_was() {
    let steps =
        json!([{"method": "POST", "path": "/a/b", "body": "${uuid}", "follow_redirects": 1}]);
    for driver in drivers() {
        let (server, requests) = leading(|path| match path {
            "/a/b" => {
                to(307, "../c").replace("Content-Length", "Connection: close\r\nContent-Length")
            }
            _ => ok(""),
        });
        let finished = walked(&server, driver, &steps);
        assert_counts(
            &finished["totals"],
            &json!({"completed": 2, "failed": 0, "connections_opened": 2}),
        );
        let requests = requests.lock().unwrap();
        assert!(
            requests[1].starts_with("POST /c HTTP/1.1\r\n"),
            "{}",
            requests[1]
        );
        let behind = |text: &String| text.split_once("\r\n").unwrap().1.to_owned();
        assert_eq!(behind(&requests[0]), behind(&requests[1]));
    }
}

#[test]
fn what_must_not_be_followed_is_counted_and_the_user_goes_on() {
    for (location, most, completed) in [("http://elsewhere.example/", 5, 1), ("/again", 2, 3)] {
        let steps = json!([{"path": "/", "follow_redirects": most}]);
        for driver in drivers() {
            let (server, _) = leading(move |_| to(301, location));
            let finished = walked(&server, driver, &steps);
            assert_counts(
                &finished["totals"],
                &json!({"completed": completed, "failed": 1, "errors": {"expect_redirect": 1}}),
            );
            assert!(finished["totals"]["error_reasons"]["expect_redirect"].is_string());
            assert_counts(
                &finished["window"]["transactions"][0],
                &json!({"completed": 1, "failed": 1}),
            );
        }
    }
}

#[test]
fn hops_are_requests_of_the_total_and_without_following_a_redirect_is_a_response() {
    for driver in drivers() {
        let (server, requests) = leading(|_| to(302, "/again"));
        let plan = plan(server.address, driver, |plan| {
            plan["scenarios"][0]["steps"] = json!([{"path": "/", "follow_redirects": 100}]);
            plan["stop"]["total_requests"] = 7.into();
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"sent": 7, "completed": 7, "failed": 0}),
        );
        assert_eq!(requests.lock().unwrap().len(), 7);
        let (server, _) = leading(|_| to(302, "/again"));
        let finished = walked(
            &server,
            driver,
            &json!([{"path": "/", "expect": {"status": ["3xx"]}}]),
        );
        assert_counts(&finished["totals"], &json!({"completed": 1, "failed": 0}));
    }
}
