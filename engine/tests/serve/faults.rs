//! Every scripted fault, as the client sees it on the wire. Each test fails when the fault is not
//! there.

use std::time::Duration;

use crate::serve_support::{End, Server};

#[test]
fn errors_come_in_their_share_and_are_counted() {
    let server = Server::start("--errors share=0.3,status=500");
    let mut client = server.connect();
    let failed = (0..500).filter(|_| client.get("/").status == 500).count();
    assert!((100..200).contains(&failed), "{failed} of 500");
    let finished = server.stop();
    assert_eq!(finished["faults"]["errors"], failed);
    assert_eq!(
        (
            finished["answered"]["500"].as_u64(),
            finished["answered"]["200"].as_u64()
        ),
        (Some(failed as u64), Some(500 - failed as u64))
    );
}

#[test]
fn one_seed_gives_one_sequence() {
    let sequence = |seed: u32| -> Vec<u16> {
        let server = Server::start(&format!("--errors share=0.5 --seed {seed}"));
        let mut client = server.connect();
        (0..64).map(|_| client.get("/").status).collect()
    };
    let first = sequence(5);
    assert_eq!(first, sequence(5));
    assert_ne!(first, sequence(6));
}

#[test]
fn fast_errors_do_not_wait_as_the_others_do() {
    let server = Server::start("--errors share=1,status=503,fast=yes --delay 1h --workers 1");
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 503);
    assert_eq!(client.get("/").status, 503);
}

#[test]
fn closing_after_n_is_announced() {
    let server = Server::start("--close-after 3");
    let mut client = server.connect();
    let notes: Vec<String> = (0..3)
        .map(|_| client.get("/").header("Connection").to_owned())
        .collect();
    assert_eq!(notes, ["", "", "close"]);
    assert_eq!(client.next(), End::Closed);
}

#[test]
fn closing_silently_after_n_is_not_announced() {
    let server = Server::start("--close-silently-after 2");
    let mut client = server.connect();
    assert_eq!(client.get("/").header("Connection"), "");
    assert_eq!(client.get("/").header("Connection"), "");
    assert_eq!(client.next(), End::Closed);
}

#[test]
fn keep_alive_can_be_ignored() {
    let server = Server::start("--ignore-keep-alive");
    for _ in 0..3 {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.response().header("Connection"), "close");
        assert_eq!(client.next(), End::Closed);
    }
    let finished = server.stop();
    assert_eq!(finished["connections"], 3);
}

#[test]
fn truncated_bodies_end_early() {
    let server = Server::start("--truncate share=1 --body-bytes 100");
    let mut client = server.connect();
    client.ask("/");
    assert!(client.head().contains("Content-Length: 100\r\n"));
    assert_eq!(client.rest().len(), 50);
    let mut client = server.connect();
    client.ask("/?chunked");
    assert!(client.head().contains("chunked"));
    let rest = client.rest();
    assert!(
        !rest.is_empty() && !rest.ends_with(b"0\r\n\r\n"),
        "{rest:?}"
    );
    // A long one, which is not made in one piece.
    let mut client = server.connect();
    client.ask("/?bytes=1000000");
    client.head();
    assert_eq!(client.rest().len(), 500_000);
    assert_eq!(server.stop()["faults"]["truncate"], 3);
}

#[test]
fn what_has_no_body_is_not_truncated() {
    let server = Server::start("--truncate share=1");
    let mut client = server.connect();
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    assert!(client.head().contains("Content-Length: 64\r\n"));
    assert_eq!(client.get("/echo").body, b"");
    assert_eq!(server.stop()["faults"], serde_json::json!({}));
}

#[test]
fn wrong_bodies_say_200() {
    let server = Server::start("--wrong-body share=1 --content-type application/json");
    let mut client = server.connect();
    for _ in 0..2 {
        let response = client.get("/");
        assert_eq!(
            (response.status, response.header("Content-Type")),
            (200, "text/html")
        );
        assert!(response.text().contains("Something went wrong"));
    }
    assert_eq!(server.stop()["faults"]["wrong-body"], 2);
}

#[test]
fn resets_are_resets() {
    let server = Server::start("--reset share=1");
    let mut client = server.connect();
    client.ask("/");
    assert_eq!(client.next(), End::Reset);
    let finished = server.stop();
    assert_eq!(
        (
            finished["faults"]["reset"].as_u64(),
            finished["requests"].as_u64()
        ),
        (Some(1), Some(1))
    );
    assert_eq!(finished["answered"], serde_json::json!({}));
}

#[test]
fn garbage_is_not_http() {
    let server = Server::start("--garbage share=1");
    let mut client = server.connect();
    client.ask("/");
    let rest = client.rest();
    assert_eq!(rest.len(), 64);
    assert!(rest[0] >= 0x80);
}

#[test]
fn no_answer_is_no_answer() {
    let server = Server::start("--no-answer share=1");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\n\r\nGET /?no-answer=0 HTTP/1.1\r\n\r\n");
    // The connection stays open, and what was sent after the request is not answered either.
    assert_eq!(client.next_within(Duration::from_millis(300)), End::Silence);
    assert_eq!(server.get("/?no-answer=0").status, 200);
    let finished = server.stop();
    assert_eq!(
        (
            finished["faults"]["no-answer"].as_u64(),
            finished["requests"].as_u64()
        ),
        (Some(1), Some(2))
    );
}

#[test]
fn an_endless_header_has_no_end() {
    let server = Server::start("--header-endless share=1");
    let mut client = server.connect();
    client.ask("/");
    let bytes = client.read_up_to(300_000);
    assert_eq!(bytes.len(), 300_000);
    assert!(
        bytes.starts_with(b"HTTP/1.1 200 OK\r\n")
            && !bytes.windows(4).any(|end| end == b"\r\n\r\n")
    );
    drop(client);
    // Others are served meanwhile and afterwards.
    assert_eq!(server.stats()["requests"], 1);
}

#[test]
fn chunked_responses_come_in_chunks() {
    let server = Server::start("--chunked --body-bytes 100");
    let mut client = server.connect();
    client.ask("/");
    assert!(client.head().contains("Transfer-Encoding: chunked\r\n"));
    let wire = client.read_up_to(4 + 50 + 2 + 4 + 50 + 2 + 5);
    assert!(
        wire.starts_with(b"32\r\nThe") && wire.ends_with(b"0\r\n\r\n"),
        "{:?}",
        String::from_utf8_lossy(&wire)
    );
    assert_eq!(client.get("/").body.len(), 100);
}

#[test]
fn a_query_can_ask_for_trouble() {
    let server = Server::start("");
    assert_eq!(server.get("/").status, 200);
    let mut client = server.connect();
    client.ask("/?reset=1");
    assert_eq!(client.next(), End::Reset);
    assert_eq!(server.get("/?errors=share=1,status=418").status, 418);
    let mut client = server.connect();
    client.ask("/?truncate=1&bytes=10");
    client.head();
    assert_eq!(client.rest(), b"The r");
}

#[test]
fn trouble_that_goes_with_waiting_comes_after_the_wait() {
    let server = Server::start("--delay 100ms --reset share=1");
    let mut client = server.connect();
    let begin = std::time::Instant::now();
    client.ask("/");
    assert_eq!(client.next(), End::Reset);
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert_eq!(server.stop()["abandoned"], 0);
}
