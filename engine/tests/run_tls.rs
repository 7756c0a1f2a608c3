//! HTTPS: handshakes, resumption, certificates, and what goes wrong with them, on both drivers,
//! against `prony-engine serve`, whose own counters are believed.

mod run_support;
mod serve_support;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use run_support::{Ended, assert_counts, drivers, plan, run};
use serde_json::{Value, json};
use serve_support::Server;

/// A certificate authority and a server's certificate by it, in a folder of its own.
struct Identity {
    folder: tempfile::TempDir,
}

impl Identity {
    fn new() -> Self {
        Self::with(&["127.0.0.1", "localhost"], |_| {})
    }

    fn with(names: &[&str], edit: impl FnOnce(&mut CertificateParams)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        edit(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        fs::write(folder.path().join("cert.pem"), certificate.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        Self { folder }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn serve(&self, options: &str) -> Server {
        let folder = self.folder.path().display();
        Server::start(&format!(
            "--tls --cert {folder}/cert.pem --key {folder}/key.pem {options}"
        ))
    }
}

fn https(server: &Server, driver: &str, ca: &Path, edit: impl FnOnce(&mut Value)) -> Value {
    let address: SocketAddr = server.address().parse().unwrap();
    plan(address, driver, |plan| {
        plan["target"] = json!({"url": format!("https://{address}"), "tls": {"ca": ca}});
        plan["load"]["users"] = 4.into();
        plan["stop"] = json!({"after_ms": 30_000, "total_requests": 200});
        edit(plan);
    })
}

fn totals(ended: &Ended) -> &Value {
    &ended.finished()["totals"]
}

#[test]
fn what_was_read_of_a_record_has_the_receive_stamp_of_the_wire() {
    let identity = Identity::new();
    for driver in drivers() {
        let server = identity.serve("--body-bytes 100000");
        // The kernel begins to stamp in the background.
        let ended = run(&https(&server, driver, &identity.ca(), |plan| {
            plan["load"]["think"] = json!({"kind": "constant", "ms": 10});
        }));
        let thread = &ended.finished()["window"]["threads"][0];
        let of = |key: &str| thread[key].as_u64().unwrap();
        assert!(
            0 < of("reads_stamped") && of("reads_stamped") < of("reads"),
            "{thread}"
        );
        assert!(of("receive_delay_p99_ns") <= of("receive_delay_max_ns"));
        assert_eq!(totals(&ended)["failed"], 0);
        drop(server);
    }
}

#[test]
fn requests_that_go_out_together_are_counted_one_by_one() {
    let identity = Identity::new();
    for driver in drivers() {
        let server = identity.serve("--body-bytes 3000");
        let ended = run(&https(&server, driver, &identity.ca(), |plan| {
            plan["connection"] = json!({"pipeline": 9});
        }));
        assert_counts(
            totals(&ended),
            &json!({"sent": 200, "completed": 200, "failed": 0, "connections_opened": 4}),
        );
        assert_eq!(server.stop()["requests"], 200);
    }
}

#[test]
fn keep_alive_shakes_hands_once_per_connection() {
    let identity = Identity::new();
    for driver in drivers() {
        for version in ["1.2", "1.3"] {
            let server = identity.serve("--body-bytes 64");
            let ended = run(&https(&server, driver, &identity.ca(), |plan| {
                plan["target"]["tls"]["max_version"] = version.into();
                plan["target"]["tls"]["min_version"] = version.into();
                plan["threads"] = json!({"cpus": [0, 1], "pin": false});
            }));
            let totals = totals(&ended);
            assert_counts(
                totals,
                &json!({"completed": 200, "failed": 0, "connections_opened": 4, "tls_handshakes": 4,
                    "status": {"200": 200}, "errors": {}, "error_reasons": {}}),
            );
            assert_eq!(totals["answers"][0]["body_bytes"], 64);
            assert_eq!(totals["connect_time"]["count"], 4);
            assert_eq!(totals["tls_time"]["count"], 4);
            let agreed = &totals["tls_agreed"][0];
            assert_eq!(agreed["version"], version);
            assert_eq!(agreed["alpn"], "http/1.1");
            assert_eq!(agreed["count"], 4);
            assert!(agreed["cipher_suite"].as_str().unwrap().contains("AES"));
            let ready = &ended.all("ready")[0]["tls"];
            assert_eq!(ready["insecure"], false);
            assert_eq!(ready["trust"], "file");
            assert_eq!(ready["server_name"], "127.0.0.1");
            let served = server.stop();
            assert_counts(
                &served,
                &json!({"requests": 200, "tls_handshakes": 4, "tls_errors": 0,
                    "tls_resumptions": totals["tls_resumptions"]}),
            );
        }
    }
}

#[test]
fn a_connection_per_request_resumes_sessions_unless_told_not_to() {
    let identity = Identity::new();
    for driver in drivers() {
        for version in ["1.2", "1.3"] {
            for (sessions, options) in [
                ("user", ""),
                ("shared", ""),
                ("none", ""),
                ("user", "--no-resumption"),
            ] {
                let server = identity.serve(options);
                let ended = run(&https(&server, driver, &identity.ca(), |plan| {
                    plan["target"]["tls"]["sessions"] = sessions.into();
                    plan["load"]["users"] = 16.into();
                    plan["target"]["tls"]["max_version"] = version.into();
                    plan["connection"] = json!({"reuse": "per_request"});
                }));
                let totals = totals(&ended);
                assert_counts(
                    totals,
                    &json!({"completed": 200, "failed": 0, "connections_opened": 200, "tls_handshakes": 200}),
                );
                let resumed = totals["tls_resumptions"].as_u64().unwrap();
                match (sessions, options) {
                    // All but the first handshake of each, however many are served together.
                    ("user", "") => assert_eq!(resumed, 200 - 16, "{driver} {version}"),
                    ("shared", "") => assert!(resumed >= 150, "{driver} {version}: {resumed}"),
                    _ => assert_eq!(resumed, 0),
                }
                let ready = &ended.all("ready")[0]["tls"];
                assert_eq!(ready["sessions"], sessions);
                let served = server.stop();
                assert_counts(
                    &served,
                    &json!({"requests": 200, "connections": 200, "tls_handshakes": 200, "tls_resumptions": resumed,
                        "tls_errors": 0}),
                );
            }
        }
    }
}

#[test]
fn long_chunked_and_dripping_responses_and_long_requests_pass_through_tls() {
    let identity = Identity::new();
    for driver in drivers() {
        let server = identity.serve("");
        let body = "x".repeat(300_000);
        let file = identity.folder.path().join("body");
        fs::write(&file, vec![b'y'; 2_000_000]).unwrap();
        let ended = run(&https(&server, driver, &identity.ca(), |plan| {
            plan["stop"] = json!({"iterations_per_user": 2});
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/?bytes=3000000", "expect": {"body_bytes": 3_000_000}},
                {"path": "/?bytes=100000&chunked=yes", "expect": {"body_bytes": 100_000}},
                {"path": "/?bytes=20&drip=1ms", "expect": {"body_bytes": 20}},
                {"method": "POST", "path": "/echo", "body": body, "expect": {"body_bytes": 300_000}},
                {"method": "POST", "path": "/echo", "body": {"file": file}, "expect": {"body_bytes": 2_000_000}},
                {"path": "/${random int 1 9}", "headers": [["X-Length", "${random string 20}"]]},
                {"path": "/?close=announced"},
            ]);
        }));
        assert_counts(
            totals(&ended),
            &json!({"completed": 56, "failed": 0, "errors": {}, "tls_handshakes": 8}),
        );
        assert_eq!(server.stop()["requests"], 56);
    }
}

/// Runs against a server whose handshakes fail, and returns the kind of the errors with the reason.
fn failing(plan: Value, kind: &str) -> String {
    let ended = run(&plan);
    let totals = totals(&ended);
    let failed = totals["failed"].as_u64().unwrap();
    assert!(failed > 0, "{totals}");
    assert_eq!(totals["errors"][kind], failed, "{totals}");
    assert_eq!(totals["completed"], 0);
    totals["error_reasons"][kind]
        .as_str()
        .unwrap_or_else(|| panic!("no reason: {totals}"))
        .to_owned()
}

fn for_a_moment(plan: &mut Value) {
    plan["stop"] = json!({"after_ms": 1000});
}

#[test]
fn a_certificate_that_proves_nothing_is_a_counted_error_with_its_reason() {
    let expired = Identity::with(&["127.0.0.1"], |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let (elsewhere, other) = (Identity::with(&["else.where"], |_| {}), Identity::new());
    for driver in drivers() {
        for (identity, ca, word) in [
            (&expired, expired.ca(), "expired"),
            (&elsewhere, elsewhere.ca(), "not valid for name"),
            (&other, expired.ca(), "invalid peer certificate"),
        ] {
            let server = identity.serve("");
            let reason = failing(https(&server, driver, &ca, for_a_moment), "tls");
            assert!(reason.contains(word), "{reason}");
            let served = server.stop();
            assert_eq!(
                (&served["requests"], &served["tls_handshakes"]),
                (&json!(0), &json!(0))
            );
            assert!(
                served["tls_errors"].as_u64().unwrap() > 0,
                "the alert arrives: {served}"
            );
        }
    }
}

#[test]
fn insecure_takes_any_certificate_and_says_so_and_sni_names_another_host() {
    let expired = Identity::with(&["else.where"], |params| {
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let elsewhere = Identity::with(&["else.where"], |_| {});
    for driver in drivers() {
        let server = expired.serve("");
        let ended = run(&https(&server, driver, &expired.ca(), |plan| {
            plan["target"]["tls"] = json!({"insecure": true});
        }));
        assert_counts(totals(&ended), &json!({"completed": 200, "failed": 0}));
        let ready = &ended.all("ready")[0]["tls"];
        assert_eq!(
            (&ready["insecure"], &ready["trust"]),
            (&json!(true), &json!("any"))
        );

        let server = elsewhere.serve("");
        let ended = run(&https(&server, driver, &elsewhere.ca(), |plan| {
            plan["target"]["tls"]["sni"] = "else.where".into();
        }));
        assert_counts(totals(&ended), &json!({"completed": 200, "failed": 0}));
        assert_eq!(ended.all("ready")[0]["tls"]["server_name"], "else.where");
    }
}

#[test]
fn tls_and_plain_that_meet_are_counted_errors_that_say_so() {
    let identity = Identity::new();
    for driver in drivers() {
        let plain = Server::start("");
        let reason = failing(https(&plain, driver, &identity.ca(), for_a_moment), "tls");
        assert!(reason.contains("does the server speak https"), "{reason}");

        let secure = identity.serve("");
        let address: SocketAddr = secure.address().parse().unwrap();
        let reason = failing(plan(address, driver, for_a_moment), "protocol");
        assert!(reason.contains("does the server speak https"), "{reason}");
        assert_eq!(secure.stop()["requests"], 0);
    }
}

#[test]
fn a_handshake_that_stays_unanswered_or_is_cut_off_ends_as_an_error() {
    let identity = Identity::new();
    for driver in drivers() {
        let silent = run_support::Server::start(|peer| while peer.request().is_some() {});
        let to = |address: SocketAddr, tls_ms: u64| {
            plan(address, driver, |plan| {
                plan["target"] =
                    json!({"url": format!("https://{address}"), "tls": {"ca": identity.ca()}});
                plan["timeouts"] = json!({"tls_ms": tls_ms, "connect_ms": 20_000});
                for_a_moment(plan);
            })
        };
        let reason = failing(to(silent.address, 50), "tls");
        assert!(reason.contains("did not end within 50 ms"), "{reason}");
        let closing = run_support::Server::start(|_| {});
        let reason = failing(to(closing.address, 20_000), "tls");
        assert!(reason.contains("during the handshake"), "{reason}");
    }
}

#[test]
fn what_cannot_be_followed_is_refused_with_the_key() {
    let identity = Identity::new();
    let server = identity.serve("");
    for (tls, word) in [
        (
            json!({"min_version": "1.3", "max_version": "1.2"}),
            "min_version <= max_version",
        ),
        (json!({"ca": "/nowhere/ca.pem"}), "/nowhere/ca.pem"),
        (
            json!({"insecure": true, "ca": identity.ca()}),
            "expected one",
        ),
        (
            json!({"insecure": true, "client_cert": identity.ca()}),
            "expected both",
        ),
        (json!({"insecure": true, "alpn": ["h2"]}), "h2"),
        (json!({"insecure": true, "sni": "no name"}), "no name"),
        (
            json!({"insecure": true, "client_cert": identity.ca(), "client_key": identity.ca()}),
            "client_key",
        ),
    ] {
        let ended = run(&https(&server, "epoll", &identity.ca(), |plan| {
            plan["target"]["tls"] = tls.clone();
        }));
        assert_eq!(ended.code, Some(2), "{tls}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(word) && ended.stderr.contains("target.tls"),
            "{}",
            ended.stderr
        );
    }
    let ended = run(&https(&server, "epoll", &identity.ca(), |plan| {
        plan["target"]["url"] = format!("http://{}", server.address()).into();
    }));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("https://"), "{}", ended.stderr);
}

#[test]
fn an_open_load_keeps_secured_connections_ready_and_survives_a_server_that_cannot_be_trusted() {
    let (identity, other) = (Identity::new(), Identity::new());
    for driver in drivers() {
        let open = |plan: &mut Value| {
            plan["load"] = json!({"model": "open", "arrivals": "constant", "max_users": 16, "connections": 4,
                "phases": [{"duration_ms": 500, "from_per_s": 400.0, "to_per_s": 400.0}]});
            plan["stop"] = json!({"after_ms": 30_000});
        };
        let server = identity.serve("");
        let ended = run(&https(&server, driver, &identity.ca(), open));
        let counted = totals(&ended);
        assert_counts(counted, &json!({"offered": 200, "failed": 0, "errors": {}}));
        let sent = &counted["sent"];
        assert_eq!(counted["completed"], *sent);
        assert_eq!(counted["tls_handshakes"], counted["connections_opened"]);
        assert_eq!(server.stop()["requests"], *sent);

        let server = identity.serve("");
        let ended = run(&https(&server, driver, &other.ca(), open));
        let counted = totals(&ended);
        assert_counts(
            counted,
            &json!({"offered": 200, "completed": 0, "tls_handshakes": 0}),
        );
        assert!(counted["errors"]["tls"].as_u64().unwrap() > 0, "{counted}");
        assert_eq!(server.stop()["requests"], 0);
    }
}
