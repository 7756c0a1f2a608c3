//! Blocks whose steps a user walks in parallel: on connections of their own, with the user's values,
//! on every driver, with one server and with several, as streams of HTTP/2 too.

mod run_support;
mod serve_support;

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use run_support::{Server, assert_counts, drivers, plan, run};
use serde_json::{Value, json};
use serve_support::Server as Reference;

/// Longer than any of these requests waits.
const TOO_LONG: Duration = Duration::from_secs(20);

/// Requests that wait for each other.
#[derive(Default)]
struct Together {
    waiting: Mutex<(u32, u32)>,
    changed: Condvar,
}

impl Together {
    /// Waits until so many are here at once; how many were.
    fn wait_for(&self, most: u32) -> u32 {
        let mut here = self.waiting.lock().unwrap();
        here.0 += 1;
        here.1 = here.1.max(here.0);
        self.changed.notify_all();
        let full = |here: &mut (u32, u32)| here.1 < most;
        let (mut here, _) = self
            .changed
            .wait_timeout_while(here, TOO_LONG, full)
            .unwrap();
        here.0 -= 1;
        here.1
    }
}

/// A page with six pictures, each of which is sent when so many of them have been asked for at once.
fn site(at_once: u32) -> (Server, Arc<Together>) {
    let together = Arc::<Together>::default();
    let kept = Arc::clone(&together);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let mut body = String::new();
            if path == "/page" {
                for picture in 1..=6 {
                    body += &format!("<img src=/{picture}.png>");
                }
            } else if path.ends_with(".png") {
                kept.wait_for(at_once);
            }
            let (kind, cookie) = match path.as_str() {
                "/page" => ("text/html", "Set-Cookie: page=1\r\n".to_owned()),
                _ => ("image/png", format!("Set-Cookie: c{}=1\r\n", &path[1..2])),
            };
            let cookies = request.lines().find(|line| line.starts_with("Cookie: "));
            let seen = cookies.map_or(0, |line| line.matches('=').count());
            peer.send(&format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{cookie}X-Seen: {seen}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    });
    (server, together)
}

fn embedded(at_once: u32) -> Value {
    json!({"parallel": {"at_once": at_once, "each": "page", "as": "one"},
        "steps": [{"name": "embedded", "path": "/${one}"}]})
}

fn page() -> Value {
    json!({"name": "page", "path": "/page", "resources": {"into": "page"}})
}

#[test]
fn as_many_as_may_be_are_under_way_at_once() {
    for at_once in [1, 3, 6] {
        for driver in drivers() {
            let (server, together) = site(at_once);
            let plan = plan(server.address, driver, |plan| {
                plan["scenarios"] =
                    json!([{"steps": [page(), embedded(at_once), {"path": "/end"}]}]);
                plan["stop"]["iterations_per_user"] = 2.into();
            });
            let ended = run(&plan);
            assert_counts(
                &ended.finished()["totals"],
                &json!({"completed": 16, "failed": 0, "connections_opened": at_once}),
            );
            assert_eq!(together.waiting.lock().unwrap().1, at_once, "{driver}");
        }
    }
}

#[test]
fn cookies_and_values_of_branches_are_the_users() {
    for driver in drivers() {
        let (server, _) = site(1);
        let plan = plan(server.address, driver, |plan| {
            let get = |name: &str| {
                json!({"path": format!("/{name}.png"),
                    "capture": [{"name": name, "header": "X-Seen"}]})
            };
            let block =
                json!({"parallel": {"at_once": 3}, "steps": [get("a"), get("b"), get("c")]});
            let end = json!({"path": "/end?a=${a}&b=${b}&c=${c}", "name": "end",
                "capture": [{"name": "seen", "header": "X-Seen"}]});
            plan["scenarios"] = json!([{"steps": [page(), block, end]}]);
            plan["cookies"] = true.into();
            plan["report"] = json!(["a", "b", "c", "seen"]);
            plan["stop"]["iterations_per_user"] = 1.into();
        });
        let ended = run(&plan);
        let finished = ended.finished();
        assert_counts(&finished["totals"], &json!({"completed": 5, "failed": 0}));
        let values = &finished["values"];
        // That of the page, and of three pictures.
        assert_eq!(values["seen"], "4", "{values}");
        for name in ["a", "b", "c"] {
            let seen: u32 = values[name].as_str().unwrap().parse().unwrap();
            assert!((1..=3).contains(&seen), "{values}");
        }
    }
}

#[test]
fn a_branch_may_hold_blocks_and_walks_them_by_itself() {
    for driver in drivers() {
        let (server, _) = site(1);
        let plan = plan(server.address, driver, |plan| {
            let inner = json!({"loop": {"count": 3, "index": "n"}, "steps": [{"path": "/x${n}"}]});
            let pause = json!({"pause": {"kind": "constant", "ms": 5}});
            let group = json!({"group": true, "steps": [inner, pause, {"path": "/y"}]});
            let block =
                json!({"parallel": {"at_once": 2}, "steps": [group, group, {"path": "/z"}]});
            plan["scenarios"] = json!([{"steps": [block]}]);
            plan["load"]["users"] = 3.into();
            plan["stop"]["iterations_per_user"] = 2.into();
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 3 * 2 * 9, "failed": 0, "connections_opened": 6}),
        );
    }
}

#[test]
fn each_lane_has_a_connection_to_each_server_that_it_needs() {
    for driver in drivers() {
        let (first, _) = site(1);
        let (second, _) = site(1);
        let plan = plan(first.address, driver, |plan| {
            plan["other_targets"] = json!([{"url": format!("http://{}", second.address)}]);
            let one =
                json!({"group": true, "steps": [{"path": "/a"}, {"path": "/b", "target": 1}]});
            let block = json!({"parallel": {"at_once": 2}, "steps": [one, one]});
            plan["scenarios"] = json!([{"steps": [{"path": "/begin"}, block, {"path": "/end"}]}]);
            plan["stop"]["iterations_per_user"] = 3.into();
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 18, "failed": 0, "connections_opened": 4,
                "connections_closed_by_client": 4}),
        );
    }
}

#[test]
fn over_http_2_they_are_streams_of_the_users_connection() {
    for driver in drivers() {
        let server = Reference::start("--http2");
        let plan = plan(server.address().parse().unwrap(), driver, |plan| {
            let get = |name: &str| json!({"path": format!("/{name}")});
            let block =
                json!({"parallel": {"at_once": 3}, "steps": [get("a"), get("b"), get("c")]});
            plan["http_version"] = "2".into();
            plan["load"]["users"] = 2.into();
            plan["scenarios"] = json!([{"steps": [{"path": "/begin"}, block]}]);
            plan["stop"]["iterations_per_user"] = 5.into();
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 40, "failed": 0, "connections_opened": 2}),
        );
    }
}

#[test]
fn users_who_arrive_walk_them_and_leave() {
    for driver in drivers() {
        let (server, _) = site(1);
        let plan = plan(server.address, driver, |plan| {
            plan["load"] = json!({"model": "open", "arrivals": "constant", "session": "user",
                "max_users": 50, "phases": [{"duration_ms": 400, "from_per_s": 50, "to_per_s": 50}]});
            plan["connection"] = json!({"reuse": "per_session"});
            plan["scenarios"] = json!([{"steps": [page(), embedded(3)]}]);
            plan["stop"] = json!({});
        });
        let ended = run(&plan);
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 140, "failed": 0, "connections_opened": 60,
                "connections_closed_by_client": 60, "sessions_completed": 20}),
        );
    }
}

/// The targets that one user asks for, in the order of their arrival.
fn asked(driver: &str, scenario: &Value, iterations: u32) -> Vec<String> {
    let paths = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&paths);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let path = request.split(' ').nth(1).unwrap().to_owned();
            kept.lock().unwrap().push(path);
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let plan = plan(server.address, driver, |plan| {
        plan["scenarios"] = json!([scenario]);
        plan["stop"]["iterations_per_user"] = iterations.into();
    });
    run(&plan).finished();
    paths.lock().unwrap().clone()
}

#[test]
fn each_branch_begins_with_the_values_from_before_the_block() {
    let set = |name: &str, value: &str| json!({"set": [[name, value]]});
    for driver in drivers() {
        // What the first branch sets at last is not taken back by one that began meanwhile.
        let first = json!({"group": true, "steps": [set("x", "first"), {"path": "/a/${x}"}, set("x", "second")]});
        let block = json!({"parallel": {"at_once": 2}, "steps": [first, {"path": "/b/${x}"}, {"path": "/c/${x}"}]});
        let steps = json!([set("x", "none"), block, {"path": "/end/${x}"}]);
        let mut found = asked(driver, &json!({"steps": steps}), 1);
        assert_eq!(found.pop().unwrap(), "/end/second");
        found.sort();
        assert_eq!(found, ["/a/first", "/b/none", "/c/none"], "{driver}");
    }
}

#[test]
fn a_lane_that_had_nothing_to_walk_changes_no_value() {
    let on = |value: &str| json!({"left": "${odd}", "op": "==", "right": value});
    for driver in drivers() {
        let walked = json!({"if": on("1"), "steps": [{"path": "/a"}, {"set": [["z", "1"]]}]});
        let other = json!({"if": on("1"), "steps": [{"path": "/b"}, {"set": [["who", "${who}"]]}]});
        let turn = |odd: &str, who: &str| {
            json!([{"set": [["odd", odd]]}, {"set": [["who", who]]},
                {"parallel": {"at_once": 2}, "steps": [walked, other]}, {"path": "/end/${who}"}])
        };
        let steps = [turn("1", "u1"), turn("0", "u2")]
            .iter()
            .flat_map(|turn| turn.as_array().unwrap().clone())
            .collect::<Vec<_>>();
        let found = asked(driver, &json!({"steps": steps}), 2);
        let ends: Vec<&String> = found
            .iter()
            .filter(|path| path.starts_with("/end"))
            .collect();
        assert_eq!(
            ends,
            ["/end/u1", "/end/u2", "/end/u1", "/end/u2"],
            "{driver}"
        );
    }
}

#[test]
fn what_a_branch_has_set_is_kept_where_another_breaks_off() {
    for driver in drivers() {
        let token =
            json!({"group": true, "steps": [{"path": "/token"}, {"set": [["token", "kept"]]}]});
        let lost =
            json!({"group": true, "steps": [{"path": "/x"}, {"path": "/y"}, {"path": "/${none}"}]});
        let block = json!({"parallel": {"at_once": 2}, "steps": [lost, token]});
        let never = json!({"path": "/never", "capture": [{"name": "none", "header": "X-None"}]});
        let steps = json!([{"path": "/begin/${token}"}, block, never]);
        let found = asked(
            driver,
            &json!({"variables": [["token", "init"]], "steps": steps}),
            2,
        );
        assert_eq!(found[0], "/begin/init");
        assert!(
            found.contains(&"/begin/kept".to_owned()),
            "{driver}: {found:?}"
        );
    }
}

#[test]
fn an_arrival_whose_place_is_still_connecting_may_begin_with_a_block_that_sends_nothing() {
    for driver in drivers() {
        let (listener, _full) = run_support::full_listener();
        let plan = plan(listener.local_addr().unwrap(), driver, |plan| {
            let never = json!({"if": false, "steps": [{"path": "/never"}]});
            let block = json!({"parallel": {"at_once": 2}, "steps": [never, never]});
            plan["load"] = json!({"model": "open", "arrivals": "constant", "session": "user",
                "max_users": 40, "connections": 20,
                "phases": [{"duration_ms": 600, "from_per_s": 50, "to_per_s": 50}]});
            plan["scenarios"] = json!([{"steps": [block, {"path": "/end"}]}]);
            plan["timeouts"] = json!({"connect_ms": 300, "request_ms": 300});
            plan["stop"] = json!({});
        });
        let ended = run(&plan);
        assert_eq!(ended.code, Some(0), "{driver}: {}", ended.stderr);
    }
}

#[test]
fn a_block_that_cannot_be_walked_is_refused() {
    let inner = json!({"parallel": {"at_once": 2}, "steps": [{"path": "/"}]});
    for (block, words) in [
        (
            json!({"parallel": {"at_once": 0}, "steps": [{"path": "/"}]}),
            "parallel.at_once is 0",
        ),
        (
            json!({"parallel": {"at_once": 2, "as": "x"}, "steps": [{"path": "/"}]}),
            "without each",
        ),
        (
            json!({"parallel": {"at_once": 2, "each": "x"}, "steps": [{"path": "/"}]}),
            "captures or sets",
        ),
        (
            json!({"parallel": {"at_once": 2}, "steps": [inner]}),
            "lies in another",
        ),
    ] {
        let plan = plan("127.0.0.1:1".parse().unwrap(), "epoll", |plan| {
            plan["scenarios"] = json!([{"steps": [block]}]);
            plan["stop"]["total_requests"] = 1.into();
        });
        let ended = run(&plan);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let piped = plan("127.0.0.1:1".parse().unwrap(), "epoll", |plan| {
        plan["scenarios"] = json!([{"steps": [inner]}]);
        plan["connection"] = json!({"pipeline": 4});
        plan["stop"]["total_requests"] = 1.into();
    });
    let ended = run(&piped);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("has a parallel block"),
        "{}",
        ended.stderr
    );
}
