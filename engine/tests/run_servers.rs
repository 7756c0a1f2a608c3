//! Loads on several servers: each user has a connection to each of them, on both drivers, in closed and
//! open loads, with cookies by host, and with TLS beside plain HTTP.

mod run_support;
mod serve_support;

use std::collections::HashSet;
use std::net::Shutdown;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use run_support::{HELLO, Server, assert_counts, drivers, plan, run, totals};
use serde_json::{Value, json};

type Seen = Arc<Mutex<Vec<String>>>;

/// Keeps what it was sent, and answers the same to everything.
fn keeping(response: &'static str) -> (Server, Seen) {
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            kept.lock().unwrap().push(request);
            peer.send(response);
        }
    });
    (server, seen)
}

fn lines(seen: &Seen, begins: &str) -> Vec<String> {
    let seen = seen.lock().unwrap();
    let lines = seen.iter().flat_map(|request| request.lines());
    lines
        .filter(|line| line.starts_with(begins))
        .map(str::to_owned)
        .collect()
}

/// One user, who asks the first server, the second one twice, and the first again.
fn there_and_back(first: &Server, second: &Server, driver: &str) -> Value {
    plan(first.address, driver, |plan| {
        plan["other_targets"] = json!([{"url": format!("http://{}", second.address)}]);
        plan["scenarios"][0]["steps"] = json!([{"path": "/a"}, {"path": "/b", "target": 1},
            {"path": "/c/${iteration}", "target": 1}, {"path": "/d"}]);
        plan["stop"]["iterations_per_user"] = 3.into();
    })
}

#[test]
fn a_user_keeps_a_connection_to_each_server() {
    for driver in drivers() {
        let ((first, asked), (second, also)) = (keeping(HELLO), keeping(HELLO));
        let mut plan = there_and_back(&first, &second, driver);
        plan["load"]["users"] = 2.into();
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"sent": 24, "completed": 24, "failed": 0, "connections_opened": 4,
                "connections_closed_by_client": 4, "connections_closed_by_server": 0}),
        );
        assert_eq!(
            (first.connection_count(), second.connection_count()),
            (2, 2)
        );
        assert_eq!((first.request_count(), second.request_count()), (12, 12));
        let hosts: HashSet<String> = lines(&asked, "Host").into_iter().collect();
        assert_eq!(hosts, HashSet::from([format!("Host: {}", first.address)]));
        let hosts: HashSet<String> = lines(&also, "Host").into_iter().collect();
        assert_eq!(hosts, HashSet::from([format!("Host: {}", second.address)]));
        let by_address = totals["addresses"].as_array().unwrap();
        let sent: Vec<&Value> = by_address.iter().map(|one| &one["sent"]).collect();
        assert_eq!(sent, [12, 12]);
    }
}

#[test]
fn one_user_asks_in_the_order_of_its_steps() {
    for driver in drivers() {
        let ((first, asked), (second, also)) = (keeping(HELLO), keeping(HELLO));
        run(&there_and_back(&first, &second, driver)).finished();
        let paths = |seen| {
            let lines = lines(seen, "GET ");
            let words = lines.iter().filter_map(|line| line.split(' ').nth(1));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(paths(&asked), "/a /d /a /d /a /d");
        assert_eq!(paths(&also), "/b /c/1 /b /c/2 /b /c/3");
    }
}

#[test]
fn a_server_that_closes_a_connection_meanwhile_is_connected_to_again() {
    for driver in drivers() {
        let (closes, closed) = channel();
        let closed = Mutex::new(closed);
        let first = Server::start(move |peer| {
            if peer.request().is_some() {
                peer.send(HELLO);
                peer.stream.shutdown(Shutdown::Both).unwrap();
                closes.send(()).unwrap();
            }
        });
        // Answers when the first server has closed, so that the user knows of it before it goes back.
        let second = Server::start(move |peer| {
            while peer.request().is_some() {
                closed.lock().unwrap().recv().unwrap();
                peer.send(HELLO);
            }
        });
        let totals = totals(&plan(first.address, driver, |plan| {
            plan["other_targets"] = json!([{"url": format!("http://{}", second.address)}]);
            plan["scenarios"][0]["steps"] = json!([{"path": "/a"},
                {"path": "/b", "target": 1, "think": {"kind": "constant", "ms": 20}}]);
            plan["stop"]["iterations_per_user"] = 4.into();
        }));
        assert_counts(
            &totals,
            &json!({"completed": 8, "failed": 0, "connections_opened": 5, "connections_closed_by_server": 4,
                "connections_closed_by_client": 1}),
        );
    }
}

#[test]
fn an_arrival_finds_the_connections_of_its_place_or_opens_them() {
    for driver in drivers() {
        let ((first, _), (second, _)) = (keeping(HELLO), keeping(HELLO));
        let mut plan = there_and_back(&first, &second, driver);
        plan["load"] = json!({"model": "open", "session": "user", "max_users": 4, "connections": 4, "at_cap": "wait",
            "phases": [{"duration_ms": 300, "from_per_s": 100, "to_per_s": 100}]});
        plan["stop"] = json!({"after_ms": 20_000});
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"failed": 0, "blocked": 0, "completed": 120}),
        );
        assert_eq!((first.request_count(), second.request_count()), (60, 60));
        assert!(first.connection_count() <= 4 && second.connection_count() <= 4);
        plan["connection"] = json!({"reuse": "per_session"});
        run(&plan).finished();
        assert!(second.connection_count() >= 30, "one for each session");
    }
}

#[test]
fn a_server_that_refuses_fails_its_own_requests_and_no_others() {
    for driver in drivers() {
        let (first, _) = keeping(HELLO);
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let ended = run(&plan(first.address, driver, |plan| {
            plan["other_targets"] = json!([{"url": format!("http://{address}")}]);
            plan["scenarios"][0]["steps"] = json!([{"path": "/a"}, {"path": "/b", "target": 1}]);
            plan["stop"]["iterations_per_user"] = 3.into();
        }));
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 3, "failed": 3, "errors": {"connect_refused": 3}, "connections_opened": 1}),
        );
    }
}

const SETS: &str = "HTTP/1.1 200 OK\r\nSet-Cookie: s=1; Path=/\r\nContent-Length: 0\r\n\r\n";

#[test]
fn cookies_belong_to_a_host_and_may_begin_anew_with_each_iteration() {
    for driver in drivers() {
        let ((first, asked), (second, also)) = (keeping(SETS), keeping(HELLO));
        let mut plan = there_and_back(&first, &second, driver);
        // Another host: cookies are not told apart by ports.
        plan["other_targets"][0]["url"] =
            format!("http://localhost:{}", second.address.port()).into();
        plan["other_targets"][0]["addresses"] = json!([second.address.to_string()]);
        plan["cookies"] = json!({"each_iteration": true, "given": [
            {"name": "g", "value": "0"}, {"name": "only", "value": "d", "path": "/d"},
            {"name": "h", "value": "2", "target": 1}]});
        run(&plan).finished();
        assert_eq!(
            lines(&asked, "Cookie"),
            ["Cookie: g=0", "Cookie: only=d; g=0; s=1"].repeat(3)
        );
        assert_eq!(lines(&also, "Cookie"), ["Cookie: h=2"].repeat(6));
        plan["cookies"]["each_iteration"] = false.into();
        asked.lock().unwrap().clear();
        run(&plan).finished();
        let kept = "Cookie: g=0; s=1";
        let last = "Cookie: only=d; g=0; s=1";
        assert_eq!(
            lines(&asked, "Cookie"),
            ["Cookie: g=0", last, kept, last, kept, last]
        );
    }
}

#[test]
fn tls_is_spoken_with_those_servers_whose_url_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
    for driver in drivers() {
        let shown = folder.path().display();
        let secure = serve_support::Server::start(&format!(
            "--tls --cert {shown}/cert.pem --key {shown}/key.pem --body-bytes 64"
        ));
        let (plain, _) = keeping(HELLO);
        let ended = run(&plan(plain.address, driver, |plan| {
            plan["target"]["tls"] = json!({"insecure": true});
            plan["other_targets"] = json!([{"url": format!("https://{}", secure.address())}]);
            plan["scenarios"][0]["steps"] = json!([{"path": "/a"}, {"path": "/b", "target": 1},
                {"path": "/c", "target": 1}]);
            plan["stop"]["iterations_per_user"] = 5.into();
        }));
        assert_counts(
            &ended.finished()["totals"],
            &json!({"completed": 15, "failed": 0, "connections_opened": 2, "tls_handshakes": 1}),
        );
        assert_eq!(plain.request_count(), 5);
        assert_eq!(secure.stop()["requests"], 10);
    }
}
