//! The server's side, against our client and against frames that no client should send.

use super::*;
use crate::connection::MAX_IDLE_FRAMES;
use crate::server::Server;

/// A client and a server, and the events of each.
struct Talk {
    client: Client,
    server: Server,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Talk {
    fn new(config: Config, max_streams: u32) -> Self {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        Self {
            client: Client::new(CONFIG, &mut to_server),
            server: Server::new(config, max_streams, &mut to_client),
            to_server,
            to_client,
        }
    }

    /// Everything that was sent arrives, in pieces of so many bytes; what the client and the server
    /// made of it. The server gives streams their id as key.
    fn exchange(&mut self, piece: usize) -> (Vec<String>, Vec<String>) {
        let (mut client, mut server) = (Vec::new(), Vec::new());
        while !(self.to_server.is_empty() && self.to_client.is_empty()) {
            for mut bytes in std::mem::take(&mut self.to_server).chunks(piece) {
                while let Some(event) = self.server.read(&mut bytes, &mut self.to_client).unwrap() {
                    server.push(described(&event));
                }
            }
            for mut bytes in std::mem::take(&mut self.to_client).chunks(piece) {
                while let Some(event) = self.client.read(&mut bytes, &mut self.to_server).unwrap() {
                    client.push(described(&event));
                }
            }
        }
        (client, server)
    }

    fn respond(&mut self, id: u32, body: &[u8]) {
        let mut fields = Fields::default();
        fields.push(b":status", b"200", Indexing::Kept);
        fields.push(
            b"content-length",
            body.len().to_string().as_bytes(),
            Indexing::Kept,
        );
        let end = body.is_empty();
        self.server.respond(id, &fields, end, &mut self.to_client);
        if !end {
            let taken = self.server.send(id, body, true, &mut self.to_client);
            assert_eq!(taken, body.len());
        }
    }
}

#[test]
fn a_request_and_its_response_go_both_ways_however_they_are_cut() {
    for piece in [1, 2, 7, 9, 64, 100_000] {
        let mut talk = Talk::new(CONFIG, 10);
        talk.exchange(piece);
        let get = talk
            .client
            .open(1, &request("GET"), true, &mut talk.to_server);
        let post = talk
            .client
            .open(2, &request("POST"), false, &mut talk.to_server);
        let sent = talk.client.send(post, b"hello", true, &mut talk.to_server);
        assert_eq!((get, post, sent), (1, 3, 5));
        let (client, server) = talk.exchange(piece);
        assert!(client.is_empty(), "{client:?}");
        assert_eq!(server[0], "1 0  end", "{server:?}");
        assert!(server.last().unwrap().ends_with("end"), "{server:?}");
        assert_eq!(talk.server.open_streams(), 2);
        talk.respond(post, b"one");
        talk.respond(get, b"");
        let (client, _) = talk.exchange(piece);
        assert_eq!(
            client.iter().filter(|event| event.ends_with("end")).count(),
            2,
            "{client:?}"
        );
        assert_eq!(
            (talk.server.open_streams(), talk.client.open_streams()),
            (0, 0)
        );
    }
}

#[test]
fn what_is_beyond_the_limit_of_streams_is_refused_and_counted() {
    let mut talk = Talk::new(CONFIG, 1);
    // The client has not heard the limit yet, and takes what it may before.
    talk.client
        .open(1, &request("GET"), true, &mut talk.to_server);
    talk.client
        .open(2, &request("GET"), true, &mut talk.to_server);
    let (client, _) = talk.exchange(1000);
    assert!(
        client.contains(&"2 reset REFUSED_STREAM".to_owned()),
        "{client:?}"
    );
    assert!(!talk.client.may_open());
    assert_eq!(talk.server.take_tally().streams_refused, 1);
}

/// RFC 9113, section 6.9.3: the client sends by the window that it knows, and the server's is moved
/// by both in the same way.
#[test]
fn a_window_smaller_than_the_default_holds_from_the_acknowledgement_on() {
    let config = Config {
        stream_window_bytes: 1024,
        ..CONFIG
    };
    let mut talk = Talk::new(config, 10);
    let post = talk
        .client
        .open(1, &request("POST"), false, &mut talk.to_server);
    let body = vec![b'x'; 100_000];
    let mut sent = talk.client.send(post, &body, true, &mut talk.to_server);
    assert_eq!(sent, 65_535);
    let mut rounds = 0;
    while sent < body.len() {
        talk.exchange(5000);
        let more = talk
            .client
            .send(post, &body[sent..], true, &mut talk.to_server);
        assert!((1..=1024).contains(&more), "{more}");
        sent += more;
        rounds += 1;
    }
    let (_, server) = talk.exchange(5000);
    assert!(server.last().unwrap().ends_with("end"), "{server:?}");
    assert!(rounds >= 34, "{rounds}");
}

#[test]
fn after_goaway_what_was_taken_is_answered_and_nothing_else() {
    let mut talk = Talk::new(CONFIG, 10);
    talk.exchange(1000);
    let first = talk
        .client
        .open(1, &request("GET"), true, &mut talk.to_server);
    talk.exchange(1000);
    talk.server.leave(ErrorCode::NO_ERROR, &mut talk.to_client);
    talk.client
        .open(2, &request("GET"), true, &mut talk.to_server);
    let (client, server) = talk.exchange(1000);
    assert!(server.is_empty(), "{server:?}");
    assert_eq!(client, ["goaway NO_ERROR", "2 unprocessed"]);
    assert!(!talk.server.has_left());
    talk.respond(first, b"");
    talk.exchange(1000);
    assert!(talk.server.has_left());
}

#[test]
fn a_response_before_the_end_of_the_request_ends_the_stream() {
    let mut talk = Talk::new(CONFIG, 10);
    talk.exchange(1000);
    let post = talk
        .client
        .open(1, &request("POST"), false, &mut talk.to_server);
    talk.exchange(1000);
    talk.respond(post, b"no");
    // On its way before the client hears of it.
    talk.client.send(post, b"late", false, &mut talk.to_server);
    let (client, _) = talk.exchange(1000);
    assert!(
        client.iter().any(|event| event.ends_with("end")),
        "{client:?}"
    );
    assert_eq!(talk.server.open_streams(), 0);
}

/// A server, its SETTINGS sent, and a client that writes frames by hand.
fn hears(frames: &[Vec<u8>]) -> (Result<Vec<String>, ConnectionError>, Vec<Frame>) {
    let mut out = Vec::new();
    let mut server = Server::new(CONFIG, 10, &mut out);
    let bytes = [&[frame::PREFACE.to_vec(), settings_frame(&[])][..], frames]
        .concat()
        .concat();
    let (mut events, mut input) = (Vec::new(), &bytes[..]);
    let result = loop {
        match server.read(&mut input, &mut out) {
            Ok(Some(event)) => events.push(described(&event)),
            Ok(None) => break Ok(events),
            Err(error) => break Err(error),
        }
    };
    (result, frames_of(&out))
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut encoder, mut block) = (Encoder::new(4096), Vec::new());
    for (name, value) in fields {
        encoder.field(
            name.as_bytes(),
            value.as_bytes(),
            Indexing::Passing,
            &mut block,
        );
    }
    block
}

const GET: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/")];

fn get(stream: u32, end: bool) -> Vec<u8> {
    let end = if end { flag::END_STREAM } else { 0 };
    framed(kind::HEADERS, flag::END_HEADERS | end, stream, &block(&GET))
}

#[test]
fn what_a_client_breaks_has_the_code_of_the_rfc() {
    for (frames, code, part) in [
        (
            vec![data(1, false, b"x")],
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            vec![get(2, true)],
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            vec![get(0, true)],
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            vec![get(1, true), data(1, false, b"x")],
            ErrorCode::STREAM_CLOSED,
            "behind the end",
        ),
        (
            vec![get(1, true), get(1, true)],
            ErrorCode::STREAM_CLOSED,
            "behind the end",
        ),
        (
            vec![get(5, true), get(3, true)],
            ErrorCode::STREAM_CLOSED,
            "was ended",
        ),
        (
            vec![framed(kind::RST_STREAM, 0, 1, &[0; 4])],
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            vec![window(1, 5)],
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            vec![settings_frame(&[(2, 2)])],
            ErrorCode::PROTOCOL_ERROR,
            "ENABLE_PUSH",
        ),
        (
            vec![framed(kind::PUSH_PROMISE, 4, 1, &[0; 4])],
            ErrorCode::PROTOCOL_ERROR,
            "PUSH_PROMISE",
        ),
    ] {
        let error = hears(&frames).0.unwrap_err();
        assert_eq!(error.code, code, "{}", error.reason);
        assert!(error.reason.contains(part), "{}", error.reason);
    }
    assert!(hears(&[settings_frame(&[(2, 1)])]).0.is_ok());
}

#[test]
fn a_malformed_request_is_reset_and_nobody_hears_of_it() {
    let one = |fields: &[(&str, &str)], end: bool| {
        let end = if end { flag::END_STREAM } else { 0 };
        vec![framed(
            kind::HEADERS,
            flag::END_HEADERS | end,
            1,
            &block(fields),
        )]
    };
    let with = |more: &[(&'static str, &'static str)]| [&GET[..], more].concat();
    for frames in [
        one(&GET[..2], true),
        one(&GET[1..], true),
        one(&[GET[0], GET[2]], true),
        one(&with(&[(":path", "/b")]), true),
        one(&with(&[(":status", "200")]), true),
        one(&with(&[("a", "b"), (":authority", "x")]), true),
        one(&[GET[0], GET[1], (":path", "")], true),
        one(&with(&[("connection", "close")]), true),
        one(&with(&[("te", "gzip")]), true),
        one(&with(&[("Host", "x")]), true),
        one(&with(&[("content-length", "5")]), true),
    ] {
        let (result, out) = hears(&frames);
        let events = result.unwrap();
        assert_eq!(events, ["Settings"]);
        let reset = out.last().unwrap();
        assert_eq!((reset.kind, reset.stream), (kind::RST_STREAM, 1), "{out:?}");
        assert_eq!(reset.payload, ErrorCode::PROTOCOL_ERROR.0.to_be_bytes());
    }
    let trailers = |fields: &[(&str, &str)], end: u8| {
        let length = block(&with(&[("content-length", "1")]));
        vec![
            framed(kind::HEADERS, flag::END_HEADERS, 1, &length),
            data(1, false, b"x"),
            framed(kind::HEADERS, flag::END_HEADERS | end, 1, &block(fields)),
        ]
    };
    let events = hears(&trailers(&[("a", "b")], flag::END_STREAM)).0.unwrap();
    assert!(events.last().unwrap().ends_with("trailers"), "{events:?}");
    for (fields, end) in [(&[("a", "b")][..], 0), (&GET[..], flag::END_STREAM)] {
        let events = hears(&trailers(fields, end)).0.unwrap();
        assert!(events.last().unwrap().contains("broken"), "{events:?}");
    }
}

#[test]
fn no_client_makes_the_server_hold_more_and_more() {
    let resets = |count: u32| -> Vec<Vec<u8>> {
        (0..count)
            .flat_map(|number| {
                [
                    get(number * 2 + 1, true),
                    framed(kind::RST_STREAM, 0, number * 2 + 1, &[0; 4]),
                ]
            })
            .collect()
    };
    // Each of them was taken and given up: memory stays, and so does the connection.
    let (result, _) = hears(&resets(3000));
    assert_eq!(result.unwrap().len(), 6001);
    // Streams that were never taken are a flood.
    let many: Vec<_> = (0..MAX_IDLE_FRAMES + 20)
        .map(|number| get(number * 2 + 1, true))
        .collect();
    assert_eq!(
        hears(&many).0.unwrap_err().code,
        ErrorCode::ENHANCE_YOUR_CALM
    );
}

#[test]
fn what_is_not_the_preface_is_told_at_its_first_wrong_byte() {
    let mut out = Vec::new();
    let mut server = Server::new(CONFIG, 10, &mut out);
    assert_eq!(server.read(&mut &b"PRI * "[..], &mut out), Ok(None));
    assert_eq!(
        server
            .read(&mut &b"HTTP/1.1"[..], &mut out)
            .unwrap_err()
            .code,
        ErrorCode::PROTOCOL_ERROR
    );
}

proptest! {
    #[test]
    fn a_server_hears_the_same_however_frames_are_cut(
        bytes in frames(),
        streams in proptest::collection::vec((0_u32..10, any::<bool>()), 0..8),
        cuts in proptest::collection::vec(0_usize..40, 0..100),
    ) {
        let mut all = settings_frame(&[]);
        for (stream, end) in streams {
            all.extend(get(stream * 2 + 1, end));
        }
        all.extend(bytes);
        properties::server_reads(&all, &cuts);
    }
}
