//! HTTP/2 of the reference server, as a client of its own frames sees it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use prony_h2::{Client, Config, ErrorCode, Event, Fields, Indexing};
use serde_json::Value;

use crate::serve_support::{Server, refused};

const CONFIG: Config = Config {
    stream_window_bytes: 1 << 24,
    connection_window_bytes: 1 << 24,
    table_bytes: 4096,
    max_head_bytes: 65_536,
};

/// What has come of one stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    status: u16,
    lines: String,
    body: Vec<u8>,
    /// `end`, or what came in its place.
    end: String,
}

struct Connection {
    socket: TcpStream,
    client: Client,
    out: Vec<u8>,
    heard: Vec<Heard>,
    goaways: Vec<ErrorCode>,
    broken: Option<ErrorCode>,
}

impl Connection {
    fn new(server: &Server, config: Config) -> Self {
        let socket = TcpStream::connect(server.address()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut out = Vec::new();
        let mut connection = Self {
            client: Client::new(config, &mut out),
            socket,
            out,
            heard: Vec::new(),
            goaways: Vec::new(),
            broken: None,
        };
        while !connection.client.has_settings() {
            assert!(connection.read());
        }
        connection
    }

    fn write(&mut self) {
        self.socket.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// Sends what there is and reads once; false at the end of the connection.
    fn read(&mut self) -> bool {
        self.write();
        let mut bytes = vec![0; 65_536];
        let length = self.socket.read(&mut bytes).unwrap();
        let mut input = &bytes[..length];
        let heard = |heard: &mut Vec<Heard>, key: u32, end: String| heard[key as usize].end = end;
        loop {
            match self.client.read(&mut input, &mut self.out) {
                Ok(Some(event)) => match event {
                    Event::Head { key, head, end } => {
                        let one = &mut self.heard[key as usize];
                        one.status = head.status;
                        one.lines = String::from_utf8(head.lines.clone()).unwrap();
                        if end {
                            one.end = "end".to_owned();
                        }
                    }
                    Event::Data { key, bytes, end } => {
                        let one = &mut self.heard[key as usize];
                        one.body.extend_from_slice(bytes);
                        if end {
                            one.end = "end".to_owned();
                        }
                    }
                    Event::Reset { key, code } => heard(&mut self.heard, key, code.to_string()),
                    Event::Broken { key, reason, .. } => {
                        heard(&mut self.heard, key, reason.to_owned());
                    }
                    Event::Unprocessed { key } => {
                        heard(&mut self.heard, key, "unprocessed".to_owned());
                    }
                    Event::GoAway { code } => self.goaways.push(code),
                    _ => {}
                },
                Ok(None) => return length > 0,
                Err(error) => {
                    self.broken = Some(error.code);
                    return false;
                }
            }
        }
    }

    /// A request; its number.
    fn open(&mut self, method: &str, target: &str, end: bool) -> (usize, u32) {
        let mut fields = Fields::default();
        for (name, value) in [(":method", method), (":scheme", "http"), (":path", target)] {
            fields.push(name.as_bytes(), value.as_bytes(), Indexing::Kept);
        }
        let number = self.heard.len();
        self.heard.push(Heard::default());
        let id = self.client.open(number as u32, &fields, end, &mut self.out);
        (number, id)
    }

    fn finish(&mut self, number: usize) -> &Heard {
        while self.heard[number].end.is_empty() && self.read() {}
        &self.heard[number]
    }

    fn get(&mut self, target: &str) -> &Heard {
        let (number, _) = self.open("GET", target, true);
        self.finish(number)
    }
}

#[test]
fn the_same_port_speaks_both_versions() {
    let server = Server::start("--http2 --body-bytes 5");
    assert_eq!(server.listening["http2"], true);
    let mut connection = Connection::new(&server, CONFIG);
    let heard = connection.get("/");
    assert_eq!((heard.status, heard.end.as_str()), (200, "end"));
    assert_eq!(
        heard.lines,
        "server: prony\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n"
    );
    assert_eq!(heard.body, b"The r");
    assert_eq!(server.get("/?bytes=2").body, b"Th");
    // Its first byte is that of the preface.
    let mut slow = server.connect();
    slow.send("P");
    std::thread::sleep(Duration::from_millis(20));
    slow.send("OST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(slow.response().body, b"hi");
    let stats: Value = serde_json::from_slice(&connection.get("/__prony/stats").body).unwrap();
    assert_eq!(
        (&stats["requests"], &stats["http2_connections"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn what_http_1_1_answers_is_answered_here() {
    let server = Server::start("--http2");
    let mut connection = Connection::new(&server, CONFIG);
    let long = connection.get("/?bytes=3000000");
    assert_eq!((long.body.len(), long.end.as_str()), (3_000_000, "end"));
    let open = connection.get("/?chunked&bytes=100000");
    assert_eq!(
        (open.body.len(), open.lines.contains("content-length")),
        (100_000, false)
    );
    let empty = connection.get("/?status=204");
    assert_eq!(
        (empty.status, empty.lines.as_str(), empty.end.as_str()),
        (204, "server: prony\r\n", "end")
    );
    assert_eq!(
        connection.get("/?status=503&delay=1ms&work=1us").status,
        503
    );
    assert_eq!(connection.get("/?delay=soon").status, 400);
    assert_eq!(connection.get("/?drip=1us&bytes=40").body.len(), 40);
    let (head, _) = connection.open("HEAD", "/?bytes=7", true);
    let head = connection.finish(head);
    assert!(head.lines.contains("content-length: 7") && head.body.is_empty() && head.end == "end");
    let (echo, id) = connection.open("POST", "/echo", false);
    assert_eq!(
        connection
            .client
            .send(id, b"hello ", false, &mut connection.out),
        6
    );
    connection.write();
    assert_eq!(
        connection
            .client
            .send(id, b"world", true, &mut connection.out),
        5
    );
    assert_eq!(connection.finish(echo).body, b"hello world");
}

#[test]
fn a_delayed_response_holds_up_no_other_and_workers_are_shared() {
    let server = Server::start("--http2 --workers 1 --delay fixed:20ms");
    let mut connection = Connection::new(&server, CONFIG);
    let slow: Vec<_> = (0..3)
        .map(|_| connection.open("GET", "/", true).0)
        .collect();
    let stats = connection.get("/__prony/stats").end.clone();
    assert_eq!(stats, "end");
    assert!(
        slow.iter()
            .all(|number| connection.heard[*number].end.is_empty())
    );
    // One is given up while it waits: its place in the queue goes to the next.
    let (_, id) = connection.open("GET", "/", true);
    connection.get("/__prony/stats");
    connection
        .client
        .reset(id, ErrorCode::CANCEL, &mut connection.out);
    for number in slow {
        assert_eq!(connection.finish(number).end, "end");
    }
    assert_eq!(connection.get("/").end, "end");
    drop(connection);
    let finished = server.stop();
    assert_eq!(
        (&finished["requests"], &finished["abandoned"]),
        (&5.into(), &1.into())
    );
}

#[test]
fn a_body_goes_out_as_the_clients_windows_allow() {
    let server = Server::start("--http2");
    let config = Config {
        stream_window_bytes: 100,
        connection_window_bytes: 65_535,
        ..CONFIG
    };
    let mut connection = Connection::new(&server, config);
    let numbers: Vec<_> = (0..3)
        .map(|_| connection.open("GET", "/?bytes=2000", true).0)
        .collect();
    for number in numbers {
        assert_eq!(connection.finish(number).body.len(), 2000);
    }
    assert!(connection.client.take_tally().receive_window_used_up >= 50);
    // What is given up is not sent to its end.
    let config = Config {
        stream_window_bytes: 1 << 30,
        connection_window_bytes: 1 << 30,
        ..CONFIG
    };
    let mut other = Connection::new(&server, config);
    let (endless, id) = other.open("GET", "/?bytes=1000000000000", true);
    while other.heard[endless].body.is_empty() {
        other.read();
    }
    other.client.reset(id, ErrorCode::CANCEL, &mut other.out);
    assert_eq!(other.get("/").end, "end");
}

#[test]
fn limits_are_what_the_options_say() {
    let server = Server::start("--http2 --streams 3 --window-bytes 1024");
    let mut connection = Connection::new(&server, CONFIG);
    assert_eq!(connection.client.max_streams(), Some(3));
    let (number, id) = connection.open("POST", "/echo", false);
    let (body, mut sent, mut waits) = (vec![b'x'; 10_000], 0, 0);
    while sent < body.len() {
        let taken = connection
            .client
            .send(id, &body[sent..], true, &mut connection.out);
        assert!(taken <= 1024, "{taken}");
        sent += taken;
        if taken == 0 {
            waits += 1;
            connection.read();
        }
    }
    assert_eq!(connection.finish(number).body, body);
    assert!(waits >= 8, "{waits}");
    let held: Vec<_> = (0..4)
        .map(|_| connection.open("GET", "/?delay=50ms", true).0)
        .collect();
    assert_eq!(connection.finish(held[3]).end, "REFUSED_STREAM");
    assert_eq!(connection.finish(held[2]).end, "end");
    assert_eq!(server.stats()["streams_refused"], 1);
    // Who leaves while its requests wait gives them up.
    connection.open("GET", "/?delay=1h", true);
    connection.get("/");
    drop(connection);
    while server.stats()["abandoned"] != 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    for wrong in [
        "--streams 3",
        "--http2 --streams x",
        "--http2 --window-bytes 0",
    ] {
        assert_eq!(refused(wrong).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn faults_have_the_form_that_http_2_gives_them() {
    let server = Server::start("--http2");
    let mut connection = Connection::new(&server, CONFIG);
    assert_eq!(connection.get("/?reset=1").end, "INTERNAL_ERROR");
    assert!(
        connection
            .get("/?truncate=1")
            .end
            .contains("content-length")
    );
    assert_eq!(connection.get("/?truncate=1&chunked").end, "INTERNAL_ERROR");
    assert!(connection.get("/?wrong-body=1").body.starts_with(b"<html>"));
    let (silent, id) = connection.open("GET", "/?no-answer=1", true);
    assert_eq!(connection.get("/").end, "end");
    assert_eq!(connection.heard[silent], Heard::default());
    connection
        .client
        .reset(id, ErrorCode::CANCEL, &mut connection.out);
    assert_eq!(connection.get("/?close=silent").end, "end");
    assert!(!connection.read() && connection.goaways.is_empty());
    let mut connection = Connection::new(&server, CONFIG);
    let (number, _) = connection.open("GET", "/?header-endless=1", true);
    connection.finish(number);
    assert_eq!(connection.broken, Some(ErrorCode::ENHANCE_YOUR_CALM));
    let mut connection = Connection::new(&server, CONFIG);
    let (number, _) = connection.open("GET", "/?garbage=1", true);
    connection.finish(number);
    assert!(connection.heard[number].status == 0);
}

#[test]
fn after_so_many_requests_comes_goaway_and_then_the_end() {
    let server = Server::start("--http2 --close-after 3 --delay fixed:5ms");
    let mut connection = Connection::new(&server, CONFIG);
    let numbers: Vec<_> = (0..3)
        .map(|_| connection.open("GET", "/", true).0)
        .collect();
    for number in numbers {
        assert_eq!(connection.finish(number).end, "end");
    }
    while connection.read() {}
    // The first takes nothing back, the second names the last stream.
    assert_eq!(connection.goaways, [ErrorCode::NO_ERROR; 2]);
    assert!(connection.client.is_closing());
}

#[test]
fn who_breaks_the_protocol_is_told_by_goaway() {
    let server = Server::start("--http2");
    let mut connection = Connection::new(&server, CONFIG);
    // DATA on a stream that was never opened.
    connection
        .out
        .extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 9]);
    while connection.read() {}
    assert_eq!(connection.goaways, [ErrorCode::PROTOCOL_ERROR]);
    assert_eq!(server.stats()["malformed"], 1);
}
