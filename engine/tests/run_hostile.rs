//! A server that would fill the client's memory: what it sends is bounded, and what was left out is
//! counted and named.

mod run_support;

use run_support::{Server, drivers, plan, run};
use serde_json::json;

const MIB: usize = 1024 * 1024;

#[test]
fn responses_that_never_end_take_no_more_than_their_budget_and_are_counted() {
    let server = Server::start(|peer| {
        if peer.request().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
            // The client gives up in the middle: as much as it takes.
            peer.send(&"x".repeat(MIB));
            while peer.request().is_some() {}
        }
    });
    for driver in drivers() {
        let plan = plan(server.address, driver, |plan| {
            plan["load"]["users"] = 8.into();
            plan["limits"]["partial_response_bytes"] = (2 * MIB).into();
            plan["scenarios"][0]["steps"][0]["capture"] =
                json!([{"name": "id", "regex": "id=(.*)"}]);
            plan["timeouts"]["request_ms"] = 2_000.into();
            plan["stop"]["total_requests"] = 40.into();
        });
        let totals = run(&plan).finished()["totals"].clone();
        assert!(
            totals["errors"]["answer_memory"].as_u64().unwrap() > 0,
            "{totals}"
        );
        let reason = totals["error_reasons"]["answer_memory"].as_str().unwrap();
        assert!(reason.contains("limits.partial_response_bytes"), "{reason}");
        assert_eq!(totals["failed"], 40, "{totals}");
    }
}

#[test]
fn cookies_that_are_too_long_are_not_kept_and_counted() {
    // Within the 64 KiB of a head: nine of 4,100 bytes, and one that may stay.
    let cookies: String = (0..9)
        .map(|number| format!("Set-Cookie: long{number}={}\r\n", "x".repeat(4_100)))
        .collect();
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            assert!(!request.contains("long"), "{request}");
            peer.send(&format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n{cookies}Content-Length: 5\r\n\r\nhello"
            ));
        }
    });
    for driver in drivers() {
        let plan = plan(server.address, driver, |plan| {
            plan["cookies"] = true.into();
            plan["stop"]["total_requests"] = 3.into();
        });
        let ended = run(&plan);
        let totals = &ended.finished()["totals"];
        assert_eq!(totals["cookies_dropped"], 27, "{totals}");
        assert_eq!(totals["failed"], 0, "{totals}");
    }
}
