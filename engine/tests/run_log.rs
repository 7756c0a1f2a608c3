//! The request log, on both drivers: every request is in it once, with what is known of it, and its
//! rows are the counters' requests.

mod run_support;

use std::collections::BTreeSet;
use std::path::Path;

use run_support::{HELLO, Server, drivers, plan, refusing, run};
use serde_json::json;

type Row = std::collections::HashMap<String, String>;

fn rows(file: &Path) -> Vec<Row> {
    csv::Reader::from_path(file)
        .unwrap()
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

fn number(row: &Row, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

#[test]
fn every_request_is_a_row_with_its_step_target_and_bytes() {
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let server = Server::answering(HELLO);
        let ended = run(&plan(server.address, driver, |plan| {
            plan["log"] = json!(file);
            plan["load"]["users"] = 3.into();
            plan["threads"] = json!({"cpus": [0], "pin": false});
            plan["scenarios"][0] = json!({"name": "shop", "steps": [
                {"name": "first, with a comma", "path": "/a?b,c=\"d\""},
                {"method": "POST", "path": "/n/${sequence}", "body": "xyz"}]});
            plan["stop"]["total_requests"] = 3000.into();
        }));
        let finished = ended.finished();
        let (log, totals) = (&finished["log"], &finished["totals"]);
        assert_eq!((&log["rows"], &log["rows_lost"]), (&json!(3000), &json!(0)));
        assert!(log["error"].is_null());
        assert_eq!(log["bytes"], std::fs::metadata(&file).unwrap().len());
        let rows = rows(&file);
        assert_eq!(rows.len(), 3000);
        for (column, total) in [("bytes_out", "bytes_sent"), ("bytes_in", "bytes_received")] {
            let sum: u64 = rows.iter().map(|row| number(row, column)).sum();
            assert_eq!(totals[total], sum, "{column}");
        }
        let service_s: f64 = rows
            .iter()
            .map(|row| number(row, "service_ns") as f64 / 1e9)
            .sum();
        let expected_s = totals["service_time_sum_s"].as_f64().unwrap();
        assert!((service_s - expected_s).abs() < 1e-6 * expected_s);
        let opened = rows.iter().filter(|row| !row["connect_ns"].is_empty());
        assert_eq!(totals["connections_opened"], opened.count());
        let mut targets = BTreeSet::new();
        for row in &rows {
            assert_eq!(row["scenario"], "shop");
            assert_eq!((&*row["status"], &*row["error"]), ("200", ""));
            assert_eq!((number(row, "body_bytes"), number(row, "thread")), (5, 0));
            assert!(number(row, "user") < 3);
            assert!(number(row, "first_byte_ns") <= number(row, "service_ns"));
            assert_eq!(row["latency_ns"], row["service_ns"]);
            assert!(number(row, "start_unix_ms") > 1_600_000_000_000);
            match number(row, "step_index") {
                0 => {
                    assert_eq!(row["step"], "first, with a comma");
                    assert_eq!((&*row["method"], &*row["path"]), ("GET", "/a?b,c=\"d\""));
                }
                1 => {
                    assert_eq!(row["step"], "POST /n/${sequence}");
                    assert_eq!(row["method"], "POST");
                    assert!(targets.insert(row["path"].clone()), "{row:?}");
                }
                other => panic!("step {other}"),
            }
        }
        assert!(targets.contains("/n/1"));
    }
}

#[test]
fn notes_stand_between_the_requests_and_a_request_that_is_skipped_is_one() {
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let server = Server::answering(HELLO);
        let ended = run(&plan(server.address, driver, |plan| {
            plan["log"] = json!(file);
            plan["scenarios"][0] = json!({"name": "s", "steps": [
                {"path": "/a", "capture": [{"name": "v", "regex": "(nothing)", "default": "{x}"}]},
                {"note": "v is ${v}, \"quoted\""},
                {"path": "/b/${v}", "skip_if": {"left": "${v}", "op": "matches", "right": "[{]"},
                 "skip_note": "no /b/${v}", "capture": [{"name": "w", "status": true, "default": "${w}"}]},
                {"path": "/c", "skip_if": {"left": "${v}", "op": "==", "right": ""}, "skip_note": "no"},
                {"note": "w is ${w}"}]});
            plan["stop"]["total_requests"] = 4.into();
            plan["load"]["users"] = 1.into();
        }));
        let finished = ended.finished();
        assert_eq!(finished["totals"]["completed"], 4);
        let rows = rows(&file);
        assert_eq!(finished["log"]["rows"], rows.len());
        let read = |row: &Row| match &*row["note"] {
            "" => format!("{} {}", row["step_index"], row["path"]),
            note => format!("{}: {note}", row["step_index"]),
        };
        let iteration = [
            "0 /a",
            "0: v is {x}, \"quoted\"",
            "1: no /b/{x}",
            "2 /c",
            "3: w is ${w}",
        ];
        let found: Vec<String> = rows.iter().map(read).collect();
        assert_eq!(found[..8], [&iteration[..], &iteration[..3]].concat()[..]);
    }
}

#[test]
fn what_went_wrong_stands_in_the_row() {
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let server = Server::start(|peer| {
            if peer.number % 2 == 0 {
                peer.request();
                peer.send("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
            }
            peer.request();
        });
        let ended = run(&plan(server.address, driver, |plan| {
            plan["log"] = json!(file);
            plan["scenarios"][0]["steps"][0]["expect"] = json!({"status": [200]});
            plan["stop"]["total_requests"] = 6.into();
        }));
        let finished = ended.finished();
        assert_eq!(finished["log"]["rows"], 6);
        let rows = rows(&file);
        for (kind, count) in finished["totals"]["errors"].as_object().unwrap() {
            let found = rows.iter().filter(|row| row["error"] == *kind).count();
            assert_eq!(count, found, "{kind}");
        }
        let unexpected = rows.iter().find(|row| row["error"] == "expect_status");
        assert_eq!(unexpected.unwrap()["status"], "503");
        let closed = rows.iter().find(|row| row["error"] == "premature_close");
        assert_eq!(closed.unwrap()["status"], "");
    }
}

#[test]
fn a_request_that_finds_no_connection_is_a_row() {
    let (_held, address) = refusing();
    for driver in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let ended = run(&plan(address, driver, |plan| {
            plan["log"] = json!(file);
            plan["stop"]["total_requests"] = 2.into();
        }));
        assert_eq!(ended.finished()["log"]["rows"], 2);
        for row in rows(&file) {
            assert_eq!((&*row["error"], &*row["status"]), ("connect_refused", ""));
            assert_eq!((&*row["bytes_out"], &*row["first_byte_ns"]), ("0", ""));
        }
    }
}

#[test]
fn a_file_that_cannot_be_is_refused_and_one_that_is_full_is_told() {
    let server = Server::answering(HELLO);
    let ended = run(&plan(server.address, "auto", |plan| {
        plan["log"] = "/nowhere/at/all.csv".into();
    }));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("log is /nowhere/at/all.csv"));

    let ended = run(&plan(server.address, "auto", |plan| {
        plan["log"] = "/dev/full".into();
        plan["stop"]["total_requests"] = 2000.into();
    }));
    let finished = ended.finished();
    assert_eq!(finished["totals"]["completed"], 2000);
    assert_eq!(finished["log"]["rows_lost"], 2000);
    assert_eq!(finished["log"]["rows"], 0);
    assert!(finished["log"]["error"].is_string());
    assert!(ended.stderr.contains("request log"), "{}", ended.stderr);
}
