//! The server as a plain HTTP/1.x server: keep-alive, pipelining, bodies, HEAD, 100-continue,
//! limits, overrides.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use crate::serve_support::{Client, End, Server};

#[test]
fn answers_one_request_after_the_other_on_one_connection() {
    let server = Server::start("--body-bytes 100 --content-type text/html");
    let mut client = server.connect();
    for _ in 0..3 {
        let response = client.get("/any/path");
        assert_eq!((response.status, response.body.len()), (200, 100));
        assert_eq!(response.header("Content-Type"), "text/html");
        assert_eq!(response.header("Connection"), "");
    }
    let finished = server.stop();
    assert_eq!(
        (
            finished["requests"].as_u64(),
            finished["connections"].as_u64()
        ),
        (Some(3), Some(1))
    );
    assert_eq!(finished["answered"]["200"], 3);
}

#[test]
fn answers_pipelined_requests_in_order() {
    let server = Server::start("");
    let mut client = server.connect();
    let asked: String = (1..=500)
        .map(|number| format!("GET /?bytes={number} HTTP/1.1\r\n\r\n"))
        .collect();
    client.send(asked);
    for number in 1..=500 {
        assert_eq!(client.response().body.len(), number);
    }
    assert_eq!(server.stop()["requests"], 500);
}

#[test]
fn pipelined_requests_wait_for_a_delayed_one() {
    let server = Server::start("");
    let mut client = server.connect();
    client.send("GET /?delay=100ms&bytes=1 HTTP/1.1\r\n\r\nGET /?bytes=2 HTTP/1.1\r\n\r\nGET /?delay=10ms&bytes=3 HTTP/1.1\r\n\r\n");
    for number in 1..=3 {
        assert_eq!(client.response().body.len(), number);
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = Server::start("");
    let mut client = server.connect();
    let request = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    for byte in request.bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response().text(), "hello");
    assert_eq!(server.stop()["requests"], 1);
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = Server::start("--body-bytes 77");
    let mut client = server.connect();
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    assert!(client.head().contains("Content-Length: 77\r\n"));
    client.send("HEAD /?chunked HTTP/1.1\r\n\r\n");
    assert!(!client.head().contains("Content-Length"));
    assert_eq!(client.get("/").body.len(), 77);
}

#[test]
fn request_bodies_are_read_and_thrown_away() {
    let server = Server::start("");
    let mut client = server.connect();
    let body = "GET /not-a-request HTTP/1.1\r\n\r\n".repeat(5000);
    client.send(format!(
        "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(client.response().status, 200);
    client.send("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nSum: 1\r\n\r\n");
    assert_eq!(client.response().status, 200);
    let finished = server.stop();
    assert_eq!(
        (
            finished["requests"].as_u64(),
            finished["malformed"].as_u64()
        ),
        (Some(2), Some(0))
    );
}

#[test]
fn echo_answers_the_body_with_its_type() {
    let server = Server::start("");
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"a\": 1}");
    let response = client.response();
    assert_eq!(
        (response.text().as_str(), response.header("Content-Type")),
        ("{\"a\": 1}", "application/json")
    );
    client.send(
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    let response = client.response();
    assert_eq!(
        (response.text().as_str(), response.header("Content-Type")),
        ("abcde", "application/octet-stream")
    );
    assert_eq!(client.get("/echo").body, b"");
}

#[test]
fn a_client_that_asks_first_is_told_to_continue() {
    let server = Server::start("");
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ok");
    assert_eq!(client.response().text(), "ok");
    client.send("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.response().text(), "ok");
}

#[test]
fn old_clients_get_keep_alive_only_when_they_ask() {
    let server = Server::start("");
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let response = client.response();
    assert_eq!(response.header("Connection"), "keep-alive");
    // HTTP/1.0 knows no chunks.
    client.send("GET /?chunked&bytes=50 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let response = client.response();
    assert_eq!(
        (
            response.header("Transfer-Encoding"),
            response.header("Connection"),
            response.body.len()
        ),
        ("", "keep-alive", 50)
    );
    client.send("GET /?close HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let response = client.response();
    assert_eq!(response.header("Connection"), "close");
    assert!(!response.head.contains("keep-alive"));
    assert_eq!(client.next(), End::Closed);
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_ne!(client.response().header("Connection"), "keep-alive");
    assert_eq!(client.next(), End::Closed);
}

#[test]
fn connection_close_is_honoured() {
    let server = Server::start("");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().header("Connection"), "close");
    assert_eq!(client.next(), End::Closed);
}

#[test]
fn what_is_not_http_gets_400_and_the_end() {
    let server = Server::start("");
    for request in [
        "\u{16}\u{3}\u{1}\u{2}hello\r\n\r\n",
        "GET /\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.send(request);
        let response = client.response();
        assert_eq!(
            (response.status, response.header("Connection")),
            (400, "close"),
            "{request:?}"
        );
        assert_eq!(client.next(), End::Closed);
    }
    let mut client = server.connect();
    client.send(format!(
        "GET / HTTP/1.1\r\nX: {}\r\n\r\n",
        "a".repeat(70_000)
    ));
    assert_eq!(client.response().status, 431);
    let finished = server.stop();
    assert_eq!(
        (
            finished["malformed"].as_u64(),
            finished["requests"].as_u64()
        ),
        (Some(4), Some(0))
    );
}

#[test]
fn a_client_that_has_ended_its_side_still_gets_its_response() {
    let server = Server::start("");
    let mut client = server.connect();
    client.ask("/?delay=50ms");
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.response().status, 200);
    assert_eq!(client.next(), End::Closed);
}

#[test]
fn long_responses_reach_a_slow_reader_whole() {
    let server = Server::start("");
    let mut client = server.connect();
    client
        .send("GET /?bytes=20000000 HTTP/1.1\r\n\r\nGET /?bytes=3000000&chunked HTTP/1.1\r\n\r\n");
    // Long enough for the socket's buffers to fill up.
    std::thread::sleep(Duration::from_millis(200));
    let body = client.response().body;
    assert_eq!(body.len(), 20_000_000);
    assert!(body.chunks(64).all(|line| {
        b"The reference server repeats this line of sixty-four characters\n".starts_with(line)
    }));
    assert_eq!(client.response().body.len(), 3_000_000);
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn a_flood_of_requests_without_reading_stops_nobody() {
    let server = Server::start("--body-bytes 10000");
    let mut flood = server.connect();
    flood.stream().set_nonblocking(true).unwrap();
    let requests = b"GET / HTTP/1.1\r\n\r\n".repeat(1000);
    // Until the server no longer takes any: its responses are not read.
    while flood.stream().write(&requests).is_ok() {}
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn queries_override_and_mistakes_in_them_are_said() {
    let server = Server::start("--status 201");
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 201);
    assert_eq!(client.get("/?status=404&bytes=3").body.len(), 3);
    assert_eq!(client.get("/person?name=x").status, 201);
    assert_eq!(
        client
            .get("/?type=application%2Fjson")
            .header("Content-Type"),
        "application/json"
    );
    assert_eq!(client.get("/?status=204").body, b"");
    assert_eq!(
        client.get("/?chunked&bytes=9").header("Transfer-Encoding"),
        "chunked"
    );
    let refused = client.get("/?delay=soon");
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("delay=soon: 'soon' is not a delay"),
        "{}",
        refused.text()
    );
    let closing = client.get("/?close=silent");
    assert_eq!(
        (closing.header("Connection"), client.next()),
        ("", End::Closed)
    );
}

#[test]
fn a_body_from_a_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"{\"from\": \"file\"}").unwrap();
    let path = file.path().to_str().unwrap();
    let server = Server::start_words(&["--body-file", path, "--content-type", "application/json"]);
    let response = server.get("/");
    assert_eq!(
        (response.text().as_str(), response.header("Content-Type")),
        ("{\"from\": \"file\"}", "application/json")
    );
}

#[test]
fn stats_tell_without_being_counted() {
    let server = Server::start("--delay 1ms --reset share=0");
    let mut client = server.connect();
    for _ in 0..4 {
        client.get("/");
    }
    let stats = server.stats();
    assert_eq!(
        (stats["requests"].as_u64(), stats["stats_requests"].as_u64()),
        (Some(4), Some(1))
    );
    assert_eq!(
        (
            stats["answered"]["200"].as_u64(),
            stats["connections"].as_u64()
        ),
        (Some(4), Some(2))
    );
    assert!(stats["cpu_s"].as_f64().unwrap() > 0.0);
    assert_eq!(server.stop()["requests"], 4);
}

#[test]
fn stats_meet_no_trouble() {
    let server = Server::start(
        "--drip 50ms --chunked --close-after 1 --errors share=1 --stall every=1s,for=999ms",
    );
    let mut client = server.connect();
    for _ in 0..3 {
        let response = client.get("/__prony/stats");
        assert_eq!(
            (
                response.status,
                response.header("Connection"),
                response.header("Transfer-Encoding")
            ),
            (200, "", "")
        );
    }
}

#[test]
fn two_threads_share_the_connections_evenly() {
    let server = Server::start("--cpus 0,1");
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    drop(clients);
    let finished = server.stop();
    let spread: Vec<u64> = finished["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["connections"].as_u64().unwrap())
        .collect();
    assert_eq!(spread, [5, 5]);
}
