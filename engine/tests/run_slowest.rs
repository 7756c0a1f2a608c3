//! The slowest requests of the window, on both drivers: those of the request log that took longest,
//! each with its start.

mod run_support;

use std::time::Duration;

use run_support::{HELLO, Server, drivers, plan, run};
use serde_json::{Value, json};

/// Start and service time, longest first.
fn pairs(rows: &Value) -> Vec<(u64, u64)> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (row[0].as_u64().unwrap(), row[1].as_u64().unwrap()))
        .collect()
}

#[test]
fn they_are_the_rows_of_the_log_that_took_longest() {
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let server = Server::start(|peer| {
            let mut count = 0;
            while peer.request().is_some() {
                count += 1;
                if count % 50 == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                peer.send(HELLO);
            }
        });
        let ended = run(&plan(server.address, driver, |plan| {
            plan["log"] = json!(file);
            plan["slowest"] = json!({"share": 0.02, "most": 1000});
            plan["threads"] = json!({"cpus": [0, 0], "pin": false});
            plan["load"]["users"] = 4.into();
            plan["stop"]["total_requests"] = 2000.into();
        }));
        let mut logged: Vec<(u64, u64)> = csv::Reader::from_path(&file)
            .unwrap()
            .deserialize()
            .map(|row| {
                let row: std::collections::HashMap<String, String> = row.unwrap();
                let number = |column: &str| row[column].parse().unwrap();
                (number("start_ns"), number("service_ns"))
            })
            .collect();
        assert_eq!(logged.len(), 2000);
        logged.sort_by_key(|(start, service)| std::cmp::Reverse((*service, *start)));
        let told = pairs(&ended.finished()["window"]["slowest"]);
        assert_eq!(told, logged[..40]);
    }
}

#[test]
fn a_timeout_is_among_them_with_the_time_that_it_had() {
    for driver in drivers() {
        let server = Server::start(|peer| while peer.request().is_some() {});
        let ended = run(&plan(server.address, driver, |plan| {
            plan["slowest"] = json!({"share": 1.0, "most": 1});
            plan["timeouts"] = json!({"request_ms": 50});
            plan["stop"]["total_requests"] = 2.into();
        }));
        let told = pairs(&ended.finished()["window"]["slowest"]);
        assert_eq!(told.len(), 1);
        assert!(told[0].1 >= 50_000_000, "{told:?}");
    }
}

#[test]
fn without_being_asked_for_there_are_none() {
    let server = Server::answering(HELLO);
    let ended = run(&plan(server.address, "auto", |plan| {
        plan["stop"]["total_requests"] = 5.into();
    }));
    assert!(ended.finished()["window"].get("slowest").is_none());
}

#[test]
fn a_share_or_a_number_that_cannot_be_is_refused() {
    for (asked, word) in [
        (json!({"share": 0.0, "most": 10}), "slowest.share is 0"),
        (json!({"share": 1.5, "most": 10}), "slowest.share is 1.5"),
        (json!({"share": 0.1, "most": 0}), "slowest.most is 0"),
        (json!({"share": 0.1, "most": 1_000_000}), "slowest.most is"),
    ] {
        let ended = run(&plan("127.0.0.1:1".parse().unwrap(), "auto", |plan| {
            plan["slowest"] = asked.clone();
        }));
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
}
