//! Loads over HTTP/2 against a server that is written here frame by frame, on both drivers.

mod run_support;

use std::collections::HashMap;
use std::io::{Read, Write};

use prony_h2::ErrorCode;
use prony_h2::frame::{self, FrameHeader, HEADER_BYTES, flag, kind};
use prony_h2::hpack::{Decoder, Encoder, Indexing};
use run_support::{Peer, Server, assert_counts, drivers, plan, run, totals};
use serde_json::{Value, json};

/// A request as the server read it.
struct Asked {
    stream: u32,
    fields: HashMap<String, String>,
    body: Vec<u8>,
}

/// The server's side of one connection.
struct Connection<'a> {
    peer: &'a mut Peer,
    decoder: Decoder,
    encoder: Encoder,
    unread: Vec<u8>,
    /// Requests whose bodies have not come whole.
    partial: HashMap<u32, Asked>,
    requests: u64,
}

impl<'a> Connection<'a> {
    /// After the preface, with these SETTINGS.
    fn open(peer: &'a mut Peer, settings: &[(u16, u32)]) -> Option<Self> {
        let mut preface = [0; frame::PREFACE.len()];
        peer.stream.read_exact(&mut preface).ok()?;
        assert_eq!(preface, frame::PREFACE);
        let pair =
            |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let payload: Vec<u8> = settings.iter().flat_map(pair).collect();
        let mut connection = Self {
            peer,
            decoder: Decoder::new(4096),
            encoder: Encoder::new(4096),
            unread: Vec::new(),
            partial: HashMap::new(),
            requests: 0,
        };
        connection.frame(kind::SETTINGS, 0, 0, &payload);
        Some(connection)
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        frame::write(kind, flags, stream, payload, &mut out);
        let _ = self.peer.stream.write_all(&out);
    }

    /// The next request, whole; `None` when the client has gone.
    fn request(&mut self) -> Option<Asked> {
        loop {
            while self.unread.len() < HEADER_BYTES {
                self.read()?;
            }
            let header = FrameHeader::read(self.unread.first_chunk()?);
            let to = HEADER_BYTES + header.length as usize;
            while self.unread.len() < to {
                self.read()?;
            }
            let payload = self.unread[HEADER_BYTES..to].to_vec();
            self.unread.drain(..to);
            let ends = header.has(flag::END_STREAM);
            match header.kind {
                kind::HEADERS => {
                    let mut fields = HashMap::new();
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let each =
                        |name: &[u8], value: &[u8]| drop(fields.insert(text(name), text(value)));
                    self.decoder.decode(&payload, each).unwrap();
                    let asked = Asked {
                        stream: header.stream,
                        fields,
                        body: Vec::new(),
                    };
                    if ends {
                        return self.counted(asked);
                    }
                    self.partial.insert(header.stream, asked);
                }
                kind::DATA => {
                    let mut more = Vec::new();
                    if header.length > 0 {
                        frame::write_window_update(0, header.length, &mut more);
                        if !ends {
                            frame::write_window_update(header.stream, header.length, &mut more);
                        }
                    }
                    let _ = self.peer.stream.write_all(&more);
                    if let Some(asked) = self.partial.get_mut(&header.stream) {
                        asked.body.extend_from_slice(&payload);
                    }
                    if ends && let Some(asked) = self.partial.remove(&header.stream) {
                        return self.counted(asked);
                    }
                }
                kind::SETTINGS if header.flags & flag::ACK == 0 => {
                    self.frame(kind::SETTINGS, flag::ACK, 0, &[]);
                }
                _ => {}
            }
        }
    }

    fn counted(&mut self, asked: Asked) -> Option<Asked> {
        self.requests += 1;
        Some(asked)
    }

    fn read(&mut self) -> Option<()> {
        let mut buffer = [0; 65_536];
        match self.peer.stream.read(&mut buffer) {
            Ok(0) | Err(_) => None,
            Ok(length) => {
                self.unread.extend_from_slice(&buffer[..length]);
                Some(())
            }
        }
    }

    fn head(&mut self, stream: u32, end: bool, fields: &[(&str, &str)]) {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            self.encoder.field(
                name.as_bytes(),
                value.as_bytes(),
                Indexing::Kept,
                &mut block,
            );
        }
        let mut out = Vec::new();
        frame::write_block(stream, &block, end, 16_384, &mut out);
        let _ = self.peer.stream.write_all(&out);
    }

    fn responds(&mut self, stream: u32, body: &[u8]) {
        let length = body.len().to_string();
        self.head(
            stream,
            false,
            &[(":status", "200"), ("content-length", &length)],
        );
        self.frame(kind::DATA, flag::END_STREAM, stream, body);
    }
}

/// A server whose connections are scripted by a function, with these SETTINGS.
fn server(
    settings: &'static [(u16, u32)],
    script: impl Fn(&mut Connection<'_>) + Send + Sync + 'static,
) -> Server {
    Server::start(move |peer| {
        if let Some(mut connection) = Connection::open(peer, settings) {
            script(&mut connection);
        }
    })
}

fn hello(connection: &mut Connection<'_>) {
    while let Some(asked) = connection.request() {
        connection.responds(asked.stream, b"hello");
    }
}

/// A plan over HTTP/2 for 200 requests by eight users.
fn over_http2(server: &Server, driver: &str, edit: impl FnOnce(&mut Value)) -> Value {
    plan(server.address, driver, |plan| {
        plan["http_version"] = "2".into();
        plan["load"]["users"] = 8.into();
        plan["stop"] = json!({"after_ms": 30_000, "total_requests": 200});
        edit(plan);
    })
}

#[test]
fn users_share_connections_and_every_request_is_answered() {
    for driver in drivers() {
        for (connections, opened) in [(json!(null), 8), (json!(2), 2), (json!(1), 1)] {
            let server = server(&[(3, 100)], hello);
            let plan = over_http2(&server, driver, |plan| {
                plan["http2"] = json!({"connections": connections});
                plan["scenarios"][0]["steps"][0]["expect"] =
                    json!({"status": [200], "body_equals": "hello"});
            });
            let totals = totals(&plan);
            let expected =
                json!({"completed": 200, "failed": 0, "connections_opened": opened, "errors": {}});
            assert_counts(&totals, &expected);
            assert_eq!(server.connection_count(), opened);
            let http2 = &totals["http2"];
            assert_counts(
                http2,
                &json!({"streams_opened": 200, "streams_refused": 0, "max_concurrent_streams": 100}),
            );
            let (before, after) = (
                &http2["header_list_bytes_sent"],
                &http2["header_block_bytes_sent"],
            );
            assert!(
                after.as_u64().unwrap() * 4 < before.as_u64().unwrap(),
                "{after} of {before}"
            );
            assert_eq!(totals["connections_closed_by_client"], opened);
            assert!(
                totals["first_head"]
                    .as_str()
                    .unwrap()
                    .contains("content-length: 5")
            );
        }
    }
}

/// What a scenario takes from responses, and sends, is the same as over HTTP/1.1.
#[test]
fn captures_cookies_templates_and_bodies_work_on_streams() {
    for driver in drivers() {
        let server = server(&[(3, 100)], |connection| {
            while let Some(asked) = connection.request() {
                let field = |name: &str| asked.fields.get(name).cloned().unwrap_or_default();
                if field(":path") == "/login" {
                    let id = format!("n{}", asked.stream);
                    connection.head(
                        asked.stream,
                        true,
                        &[(":status", "201"), ("set-cookie", "s=1"), ("x-id", &id)],
                    );
                    continue;
                }
                let right = field(":path").starts_with("/item/n")
                    && field("cookie") == "s=1"
                    && field(":method") == "POST"
                    && field(":authority").starts_with("127.0.0.1:")
                    && !asked.fields.contains_key("connection")
                    && asked.body == field(":path").as_bytes();
                connection.responds(asked.stream, if right { b"right" } else { b"wrong" });
            }
        });
        let plan = over_http2(&server, driver, |plan| {
            plan["http2"] = json!({"connections": 2});
            plan["cookies"] = true.into();
            plan["parts"] = true.into();
            plan["scenarios"][0]["steps"] = json!([
                {"path": "/login", "expect": {"status": [201]}, "capture": [{"name": "id", "header": "x-id"}]},
                {"method": "POST", "path": "/item/${id}", "body": {"text": "/item/${id}"}, "headers": [["Connection", "keep-alive"]],
                 "expect": {"status": [200], "body_equals": "right"}},
            ]);
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"completed": 200, "failed": 0, "errors": {}}),
        );
    }
}

#[test]
fn a_server_that_takes_one_stream_makes_the_rest_wait_in_the_client() {
    for driver in drivers() {
        let server = server(&[(3, 1)], |connection| {
            while let Some(asked) = connection.request() {
                std::thread::sleep(std::time::Duration::from_millis(1));
                connection.responds(asked.stream, b"hello");
            }
        });
        let plan = over_http2(&server, driver, |plan| {
            plan["http2"] = json!({"connections": 1})
        });
        let totals = totals(&plan);
        assert_counts(&totals, &json!({"completed": 200, "failed": 0}));
        let http2 = &totals["http2"];
        assert_eq!(http2["max_concurrent_streams"], 1);
        assert!(http2["stream_waits"].as_u64().unwrap() > 150, "{http2}");
        let waited = http2["stream_wait_sum_s"].as_f64().unwrap();
        assert!(
            waited > 0.5 * totals["service_time_sum_s"].as_f64().unwrap(),
            "{waited}"
        );
    }
}

#[test]
fn a_large_body_waits_for_a_small_window_and_arrives_whole() {
    for driver in drivers() {
        let server = server(&[(3, 100), (4, 1000)], |connection| {
            while let Some(asked) = connection.request() {
                let whole = asked.body == "0123456789".repeat(3000).as_bytes();
                connection.responds(asked.stream, if whole { b"whole" } else { b"other" });
            }
        });
        let body = "0123456789".repeat(3000);
        let plan = over_http2(&server, driver, |plan| {
            plan["http2"] = json!({"connections": 1});
            plan["stop"]["total_requests"] = 16.into();
            plan["scenarios"][0]["steps"][0] = json!({"method": "POST", "path": "/", "body": {"text": body},
                "expect": {"status": [200], "body_equals": "whole"}});
        });
        let totals = totals(&plan);
        assert_counts(&totals, &json!({"completed": 16, "failed": 0}));
        let http2 = &totals["http2"];
        assert!(http2["send_blocks"].as_u64().unwrap() > 0, "{http2}");
    }
}

#[test]
fn what_was_not_looked_at_before_a_goaway_is_counted_and_the_load_goes_on() {
    for driver in drivers() {
        let server = server(&[(3, 4)], |connection| {
            while let Some(asked) = connection.request() {
                connection.responds(asked.stream, b"hello");
                if connection.requests == 20 {
                    let mut out = Vec::new();
                    frame::write_goaway(asked.stream, ErrorCode::NO_ERROR, &mut out);
                    let _ = connection.peer.stream.write_all(&out);
                    return;
                }
            }
        });
        let plan = over_http2(&server, driver, |plan| {
            plan["http2"] = json!({"connections": 1})
        });
        let ended = run(&plan);
        let totals = &ended.finished()["totals"];
        let count = |key: &str| totals[key].as_u64().unwrap();
        assert_eq!(count("completed") + count("failed"), 200);
        // Ten connections answer 20 requests each; what one looks at last may still be in the client.
        assert!(count("completed") > 100, "{totals}");
        let kinds: Vec<&String> = totals["errors"].as_object().unwrap().keys().collect();
        assert!(kinds.iter().all(|kind| ["goaway", "read", "write", "premature_close"].contains(&kind.as_str())), "{kinds:?}");
        assert!(
            totals["http2"]["goaways_received"]["NO_ERROR"]
                .as_u64()
                .unwrap()
                >= 5,
            "{totals}"
        );
        assert!(count("connections_opened") >= 6, "{totals}");
    }
}

#[test]
fn resets_are_counted_by_their_code_and_the_connection_stays() {
    for driver in drivers() {
        let server = server(&[(3, 100)], |connection| {
            while let Some(asked) = connection.request() {
                if connection.requests.is_multiple_of(2) {
                    let mut out = Vec::new();
                    frame::write_reset(asked.stream, ErrorCode::REFUSED_STREAM, &mut out);
                    let _ = connection.peer.stream.write_all(&out);
                } else {
                    connection.responds(asked.stream, b"hello");
                }
            }
        });
        let plan = over_http2(&server, driver, |plan| {
            plan["http2"] = json!({"connections": 1})
        });
        let totals = totals(&plan);
        let expected = json!({"completed": 100, "failed": 100, "errors": {"stream_reset": 100}, "connections_opened": 1});
        assert_counts(&totals, &expected);
        assert_counts(
            &totals["http2"],
            &json!({"streams_refused": 100, "resets_received": {"REFUSED_STREAM": 100}}),
        );
        assert_eq!(
            totals["error_reasons"]["stream_reset"],
            "RST_STREAM: REFUSED_STREAM"
        );
    }
}

#[test]
fn a_server_that_speaks_http_1_1_is_told_apart() {
    for driver in drivers() {
        let server = Server::start(|peer| {
            peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            // Closed with something unread it would be reset.
            let _ = peer.stream.read_to_end(&mut Vec::new());
        });
        let plan = over_http2(&server, driver, |plan| {
            plan["stop"]["total_requests"] = 8.into()
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"completed": 0, "failed": 8, "errors": {"protocol": 8}}),
        );
        let reason = totals["error_reasons"]["protocol"].as_str().unwrap();
        assert!(reason.contains("speaks HTTP/1.1"), "{reason}");
    }
}

/// Whatever a server does, requests end, each as one kind of error.
#[test]
fn what_breaks_the_protocol_ends_requests_by_kind_and_code() {
    type Script = fn(&mut Connection<'_>, u32);
    let cases: [(Script, &str, &str, &str); 6] = [
        (
            |connection, _| connection.frame(kind::PUSH_PROMISE, 4, 1, &[0; 5]),
            "protocol",
            "connection_errors",
            "PROTOCOL_ERROR",
        ),
        (
            |connection, stream| connection.frame(kind::HEADERS, 4, stream, &[0xff]),
            "protocol",
            "connection_errors",
            "COMPRESSION_ERROR",
        ),
        (
            |connection, _| connection.frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            "protocol",
            "connection_errors",
            "FLOW_CONTROL_ERROR",
        ),
        (
            |connection, _| {
                for _ in 0..20_000 {
                    connection.frame(kind::PING, flag::ACK, 0, &[0; 8]);
                }
            },
            "protocol",
            "connection_errors",
            "ENHANCE_YOUR_CALM",
        ),
        (
            |connection, stream| {
                connection.head(stream, true, &[(":status", "200"), ("Upper", "x")])
            },
            "protocol",
            "stream_errors",
            "PROTOCOL_ERROR",
        ),
        (
            |connection, stream| {
                connection.head(
                    stream,
                    true,
                    &[(":status", "200"), ("a", &"x".repeat(70_000))],
                )
            },
            "header_too_long",
            "stream_errors",
            "ENHANCE_YOUR_CALM",
        ),
    ];
    for driver in drivers() {
        for (script, kind, counts, code) in cases {
            let server = server(&[(3, 100)], move |connection| {
                while let Some(asked) = connection.request() {
                    script(connection, asked.stream);
                }
            });
            let plan = over_http2(&server, driver, |plan| {
                plan["load"]["users"] = 1.into();
                plan["stop"]["total_requests"] = 2.into();
            });
            let totals = totals(&plan);
            assert_counts(
                &totals,
                &json!({"completed": 0, "failed": 2, "errors": {kind: 2}}),
            );
            assert_eq!(totals["http2"][counts], json!({code: 2}), "{totals}");
        }
    }
}

#[test]
fn a_stream_that_never_ends_times_out_and_is_reset() {
    for driver in drivers() {
        let server = server(&[(3, 100)], |connection| {
            while let Some(asked) = connection.request() {
                if asked.stream > 1 {
                    connection.responds(asked.stream, b"hello");
                } else {
                    connection.head(asked.stream, false, &[(":status", "200")]);
                }
            }
        });
        let plan = over_http2(&server, driver, |plan| {
            plan["http2"] = json!({"connections": 1});
            plan["timeouts"] = json!({"request_ms": 1000});
        });
        let totals = totals(&plan);
        assert_eq!(
            totals["completed"].as_u64().unwrap() + totals["failed"].as_u64().unwrap(),
            200
        );
        assert!(
            totals["errors"]["timeout"].as_u64().unwrap() >= 1,
            "{totals}"
        );
        assert_counts(&totals, &json!({"connections_opened": 1}));
    }
}

#[test]
fn arrivals_of_an_open_load_share_connections_too() {
    for driver in drivers() {
        let server = server(&[(3, 100)], hello);
        let plan = over_http2(&server, driver, |plan| {
            plan["load"] = json!({"model": "open", "arrivals": "constant", "max_users": 50, "connections": 2,
                "phases": [{"duration_ms": 500, "from_per_s": 200, "to_per_s": 200}]});
            plan["stop"] = json!({});
            plan["http2"] = json!({"connections": 2});
        });
        let totals = totals(&plan);
        assert_counts(
            &totals,
            &json!({"offered": 100, "completed": 100, "failed": 0, "blocked": 0}),
        );
        assert!(
            totals["connections_opened"].as_u64().unwrap() <= 2,
            "{totals}"
        );
    }
}

#[test]
fn without_sharing_a_connection_per_request_is_one() {
    for driver in drivers() {
        let server = server(&[(3, 100)], hello);
        let plan = over_http2(&server, driver, |plan| {
            plan["connection"]["reuse"] = "per_request".into();
            plan["stop"]["total_requests"] = 40.into();
        });
        assert_counts(
            &totals(&plan),
            &json!({"completed": 40, "failed": 0, "connections_opened": 40}),
        );
    }
}
