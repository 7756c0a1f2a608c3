//! The bare loop: HTTP/1.x as the full server has it, and always the same answer.

use crate::serve_support::{End, Server, refused};

#[test]
fn every_request_gets_the_same_answer_and_is_counted() {
    let server = Server::start("--bare --body-bytes 5 --status 201 --content-type text/html");
    let mut client = server.connect();
    client.send(
        "GET /?status=500 HTTP/1.1\r\n\r\nPOST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi",
    );
    client.send("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    for _ in 0..3 {
        let response = client.response();
        assert_eq!((response.status, response.text().as_str()), (201, "The r"));
        assert_eq!(response.header("Content-Type"), "text/html");
    }
    for byte in "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response().status, 201);
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    assert!(client.head().contains("Content-Length: 5\r\n"));
    let stats = client.get("/__prony/stats").text();
    assert!(stats.starts_with("{\"requests\":5,"), "{stats}");
    let finished = server.stop();
    let counts = ["requests", "stats_requests", "connections", "malformed"];
    assert_eq!(
        counts.map(|name| finished[name].as_u64()),
        [Some(5), Some(1), Some(1), Some(0)]
    );
    assert_eq!(finished["answered"]["201"], 5);
}

#[test]
fn connections_end_as_the_client_or_the_options_say() {
    let server = Server::start("--bare --close-after 2");
    let mut client = server.connect();
    assert_eq!(client.get("/").header("Connection"), "");
    assert_eq!(client.get("/").header("Connection"), "close");
    assert_eq!(client.next(), End::Closed);
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.response().header("Connection"), "keep-alive");
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().header("Connection"), "close");
    assert_eq!(client.next(), End::Closed);
    let mut client = server.connect();
    client.send("GET /\r\n\r\n");
    assert_eq!(
        (client.response().status, client.next()),
        (400, End::Closed)
    );
    assert_eq!(server.stop()["malformed"], 1);
}

#[test]
fn long_answers_reach_a_slow_reader_whole() {
    let server = Server::start("--bare --body-bytes 20000000");
    let mut client = server.connect();
    client.ask("/");
    client.ask("/");
    std::thread::sleep(std::time::Duration::from_millis(100));
    for _ in 0..2 {
        assert_eq!(client.response().body.len(), 20_000_000);
    }
    for wrong in ["--bare --delay 1ms", "--bare --http2"] {
        assert_eq!(refused(wrong).status.code(), Some(2), "{wrong}");
    }
}
