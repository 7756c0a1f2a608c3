//! A server that breaks the protocol: each rule has its code, and no frame makes the client hang or
//! hold more than it should.

use super::*;
use crate::connection::MAX_IDLE_FRAMES;

const OK: (&str, &str) = (":status", "200");

fn connection_error(bytes: &[u8]) -> (ErrorCode, &'static str) {
    let mut pair = Pair::new();
    pair.get(1);
    let error = pair.error(bytes);
    (error.code, error.reason)
}

#[test]
fn what_ends_the_connection_has_the_code_of_the_rfc() {
    let headers = |flags, stream, block: &[u8]| framed(kind::HEADERS, flags, stream, block);
    let ends = flag::END_HEADERS;
    for (bytes, code, part) in [
        (
            data(0, false, b"x"),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            data(3, false, b"x"),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            headers(ends, 0, &[0x88]),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            headers(ends, 2, &[0x88]),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            headers(ends, 3, &[0x88]),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            headers(ends, 1, &[0xff]),
            ErrorCode::COMPRESSION_ERROR,
            "within a field",
        ),
        (
            headers(ends | flag::PADDED, 1, &[9, 0x88]),
            ErrorCode::PROTOCOL_ERROR,
            "padding",
        ),
        (
            headers(ends | flag::PRIORITY, 1, &[0x88]),
            ErrorCode::FRAME_SIZE_ERROR,
            "priority",
        ),
        (
            [headers(0, 1, &[0x88]), data(1, true, b"")].concat(),
            ErrorCode::PROTOCOL_ERROR,
            "within a header block",
        ),
        (
            [
                headers(0, 1, &[0x88]),
                framed(kind::CONTINUATION, ends, 3, &[]),
            ]
            .concat(),
            ErrorCode::PROTOCOL_ERROR,
            "within a header block",
        ),
        (
            framed(kind::CONTINUATION, ends, 1, &[]),
            ErrorCode::PROTOCOL_ERROR,
            "without a header block",
        ),
        (
            framed(kind::DATA, flag::PADDED, 1, &[]),
            ErrorCode::FRAME_SIZE_ERROR,
            "padded DATA",
        ),
        (
            framed(kind::PRIORITY, 0, 0, &[0; 5]),
            ErrorCode::PROTOCOL_ERROR,
            "PRIORITY",
        ),
        (
            framed(kind::RST_STREAM, 0, 0, &[0; 4]),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            framed(kind::RST_STREAM, 0, 5, &[0; 4]),
            ErrorCode::PROTOCOL_ERROR,
            "never opened",
        ),
        (
            framed(kind::RST_STREAM, 0, 1, &[0; 5]),
            ErrorCode::FRAME_SIZE_ERROR,
            "RST_STREAM",
        ),
        (
            framed(kind::SETTINGS, 0, 1, &[]),
            ErrorCode::PROTOCOL_ERROR,
            "SETTINGS on a stream",
        ),
        (
            framed(kind::SETTINGS, flag::ACK, 0, &[0; 6]),
            ErrorCode::FRAME_SIZE_ERROR,
            "acknowledgement",
        ),
        (
            framed(kind::SETTINGS, 0, 0, &[0; 7]),
            ErrorCode::FRAME_SIZE_ERROR,
            "multiple of 6",
        ),
        (
            settings_frame(&[(2, 1)]),
            ErrorCode::PROTOCOL_ERROR,
            "ENABLE_PUSH",
        ),
        (
            settings_frame(&[(4, 1 << 31)]),
            ErrorCode::FLOW_CONTROL_ERROR,
            "INITIAL_WINDOW_SIZE",
        ),
        (
            settings_frame(&[(5, 1)]),
            ErrorCode::PROTOCOL_ERROR,
            "MAX_FRAME_SIZE",
        ),
        (
            framed(kind::PUSH_PROMISE, ends, 1, &[0, 0, 0, 2, 0x88]),
            ErrorCode::PROTOCOL_ERROR,
            "PUSH_PROMISE",
        ),
        (
            framed(kind::PING, 0, 1, &[0; 8]),
            ErrorCode::PROTOCOL_ERROR,
            "PING on a stream",
        ),
        (
            framed(kind::PING, 0, 0, &[0; 7]),
            ErrorCode::FRAME_SIZE_ERROR,
            "8 bytes",
        ),
        (
            framed(kind::GOAWAY, 0, 1, &[0; 8]),
            ErrorCode::PROTOCOL_ERROR,
            "GOAWAY on a stream",
        ),
        (
            framed(kind::GOAWAY, 0, 0, &[0; 7]),
            ErrorCode::FRAME_SIZE_ERROR,
            "shorter than 8",
        ),
        (window(0, 0), ErrorCode::PROTOCOL_ERROR, "by 0"),
        (
            window(0, (1 << 31) - 1),
            ErrorCode::FLOW_CONTROL_ERROR,
            "above 2^31-1",
        ),
        (window(9, 1), ErrorCode::PROTOCOL_ERROR, "never opened"),
        (
            framed(kind::WINDOW_UPDATE, 0, 0, &[0; 3]),
            ErrorCode::FRAME_SIZE_ERROR,
            "WINDOW_UPDATE",
        ),
        (
            framed(kind::DATA, 0, 1, &[0; 16_385]),
            ErrorCode::FRAME_SIZE_ERROR,
            "MAX_FRAME_SIZE",
        ),
    ] {
        let (found, reason) = connection_error(&bytes);
        assert_eq!(found, code, "{reason}");
        assert!(reason.contains(part), "{reason} does not say {part}");
    }
}

/// What h2spec sends to servers, sent to the client where a server could send it, too.
#[test]
fn the_cases_of_h2spec_end_the_connection_of_a_client() {
    let block = |bytes: &[u8]| framed(kind::HEADERS, flag::END_HEADERS, 1, bytes);
    let open = framed(kind::HEADERS, 0, 1, &[0x88]);
    let within = |frame: Vec<u8>| [&open[..], &frame].concat();
    let more = |flags, stream| framed(kind::CONTINUATION, flags, stream, &[]);
    let protocol = [
        // 4.3, 5.5, 6.2, 6.10: only CONTINUATION of the same stream may follow an open header block.
        within(framed(kind::HEADERS, flag::END_HEADERS, 3, &[0x88])),
        within(framed(kind::PRIORITY, 0, 1, &[0; 5])),
        within(framed(0x16, 0, 0, b"extension")),
        within(more(flag::END_HEADERS, 0)),
        within([more(flag::END_HEADERS, 1), more(flag::END_HEADERS, 1)].concat()),
        [block(&[0x88]), data(1, false, b"x"), more(0, 1)].concat(),
        more(flag::END_HEADERS, 3),
        // 6.1: more padding than frame.
        [block(&[0x88]), framed(kind::DATA, flag::PADDED, 1, &[5, 0])].concat(),
        settings_frame(&[(5, 1 << 24)]),
    ];
    let compression = [
        // HPACK 2.3.3, 6.1, 4.2, 6.3: an index of nothing, 0; a size at the end, or above the limit.
        block(&[0xbf, 0x80]),
        block(&[0x80]),
        block(&[0x88, 0x20]),
        block(&[0x3f, 0xe2, 0x1f, 0x88]),
        // 5.2: padding of more than 7 bits, of zeros, and EOS.
        block(b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff"),
        block(b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90"),
        block(b"\x00\x85\xf2\xb2\x4a\x84\xff\x87\x49\x51\xff\xff\xff\xfa\x7f"),
    ];
    let long = framed(kind::HEADERS, flag::END_HEADERS, 1, &[0; 16_385]);
    let window = settings_frame(&[(4, u32::MAX >> 1)]);
    for (sent, code) in [
        (&protocol[..], ErrorCode::PROTOCOL_ERROR),
        (&compression, ErrorCode::COMPRESSION_ERROR),
        (&[long], ErrorCode::FRAME_SIZE_ERROR),
        // 6.9.2: with what was added to it, the window of a stream is too large.
        (
            &[[self::window(1, 1), window].concat()],
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
    ] {
        for bytes in sent {
            let (found, reason) = connection_error(bytes);
            assert_eq!(found, code, "{reason}: {bytes:x?}");
        }
    }
}

#[test]
fn a_server_that_does_not_speak_http_2_is_told_apart() {
    for (bytes, part) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "HTTP/1.1"),
        (&framed(kind::PING, 0, 0, &[0; 8]), "not SETTINGS"),
        (&framed(kind::SETTINGS, flag::ACK, 0, &[]), "not SETTINGS"),
    ] {
        let error = Pair::fresh(CONFIG).error(bytes);
        assert!(error.reason.contains(part), "{error}");
    }
}

#[test]
fn what_ends_a_stream_leaves_the_others_alone() {
    let long = [b"x".repeat(1 << 17)].concat();
    let long = std::str::from_utf8(&long).unwrap();
    type Frames = Vec<u8>;
    type Made<'a> = Box<dyn Fn(&mut Pair) -> Frames + 'a>;
    let cases: Vec<(Made<'_>, &str)> = vec![
        (
            Box::new(|_| data(1, true, b"x")),
            "DATA before the response's head",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[("a", "1")])),
            "without :status",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[(":status", "101")])),
            "101",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[(":status", "100")])),
            "interim",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[OK, ("Upper", "1")])),
            "lower case",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[OK, ("connection", "close")])),
            "HTTP/1.1",
        ),
        (
            Box::new(|pair| [pair.head(1, false, &[OK]), pair.head(1, false, &[OK])].concat()),
            "second head",
        ),
        (
            Box::new(|pair| [pair.head(1, false, &[OK]), pair.head(1, true, &[OK])].concat()),
            "trailers with :status",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[OK, ("content-length", "1")])),
            "not as long",
        ),
        (
            Box::new(|pair| {
                [
                    pair.head(1, false, &[OK, ("content-length", "1")]),
                    data(1, false, b"xy"),
                ]
                .concat()
            }),
            "not as long",
        ),
        (
            Box::new(|pair| {
                [
                    pair.head(1, false, &[OK, ("content-length", "3")]),
                    data(1, true, b"xy"),
                ]
                .concat()
            }),
            "not as long",
        ),
        (
            Box::new(|pair| {
                [
                    pair.head(1, false, &[(":status", "304")]),
                    data(1, true, b"x"),
                ]
                .concat()
            }),
            "not as long",
        ),
        (Box::new(|_| window(1, 0)), "by 0"),
        (Box::new(|_| window(1, (1 << 31) - 1)), "above 2^31-1"),
        (
            Box::new(|_| framed(kind::PRIORITY, 0, 1, &[0; 4])),
            "5 bytes",
        ),
        (
            Box::new(|pair| pair.head(1, true, &[OK, ("a", long)])),
            "head too long",
        ),
    ];
    for (made, part) in cases {
        let mut pair = Pair::new();
        pair.get(1);
        pair.get(2);
        pair.sent();
        let bytes = made(&mut pair);
        let events = pair.hears(&bytes);
        let last = events.last().unwrap();
        assert!(
            last.starts_with("1 ") && last.contains(part),
            "{events:?} does not say {part}"
        );
        let resets = pair.sent();
        let resets: Vec<u32> = resets
            .iter()
            .filter(|frame| frame.kind == kind::RST_STREAM)
            .map(|frame| frame.stream)
            .collect();
        assert_eq!(resets, [1], "{part}");
        let head = pair.head(3, true, &[OK, ("b", "2")]);
        assert_eq!(pair.hears(&head), ["2 200 b: 2, end"]);
    }
}

#[test]
fn more_data_than_a_window_is_an_error_of_the_stream_or_the_connection() {
    let config = Config {
        stream_window_bytes: 10,
        connection_window_bytes: 0,
        ..CONFIG
    };
    let mut pair = Pair::with(config, &[]);
    pair.get(1);
    let head = pair.head(1, false, &[OK]);
    let bytes = [head, data(1, false, &[0; 11])].concat();
    let events = pair.hears(&bytes);
    assert!(events[1].contains("FLOW_CONTROL_ERROR"), "{events:?}");
    // The window of the connection is told of in halves; nothing of a reset stream is given back late.
    let config = Config {
        stream_window_bytes: 1 << 20,
        connection_window_bytes: 0,
        ..CONFIG
    };
    let mut pair = Pair::with(config, &[]);
    pair.get(1);
    let head = pair.head(1, false, &[OK]);
    pair.hears(&head);
    for _ in 0..100 {
        pair.hears(&data(1, false, &[0; 16_384]));
    }
}

#[test]
fn frames_on_a_stream_that_the_server_had_ended_end_the_connection() {
    for late in [
        data(1, true, b"x"),
        framed(kind::HEADERS, flag::END_HEADERS, 1, &[0x88]),
    ] {
        let mut pair = Pair::new();
        pair.get(1);
        let head = pair.head(1, true, &[OK]);
        pair.hears(&head);
        // These may still be under way.
        assert_eq!(
            pair.hears(&[window(1, 1), framed(kind::RST_STREAM, 0, 1, &[0; 4])].concat()),
            [""; 0]
        );
        assert_eq!(pair.error(&late).code, ErrorCode::STREAM_CLOSED);
    }
}

#[test]
fn a_second_goaway_may_not_take_the_first_back() {
    let goaway = |last: u32| {
        framed(
            kind::GOAWAY,
            0,
            0,
            &[&last.to_be_bytes()[..], &[0; 4]].concat(),
        )
    };
    let mut pair = Pair::new();
    pair.get(1);
    assert_eq!(pair.hears(&goaway(1 << 30)), ["goaway NO_ERROR"]);
    assert_eq!(pair.hears(&goaway(0)), ["goaway NO_ERROR", "1 unprocessed"]);
    assert_eq!(pair.error(&goaway(1)).code, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn a_flood_of_frames_that_bring_nothing_on_ends_the_connection() {
    let floods = [
        framed(kind::PING, 0, 0, &[0; 8]),
        framed(kind::PING, flag::ACK, 0, &[0; 8]),
        settings_frame(&[]),
        framed(kind::SETTINGS, flag::ACK, 0, &[]),
        framed(kind::PRIORITY, 0, 1, &[0; 5]),
        framed(0x55, 0, 0, &[]),
        framed(
            kind::GOAWAY,
            0,
            0,
            &[&(1_u32 << 30).to_be_bytes()[..], &[0; 4]].concat(),
        ),
        window(3, 1),
        framed(kind::RST_STREAM, 0, 3, &[0; 4]),
        data(1, false, b""),
        framed(kind::HEADERS, flag::END_HEADERS, 1, b"\x08\x03100"),
    ];
    for flood in floods {
        let mut pair = Pair::new();
        pair.get(1);
        pair.get(2);
        let bytes = [pair.head(1, false, &[OK]), pair.head(3, true, &[OK])].concat();
        let bytes = if flood[3] == kind::HEADERS {
            pair.head(3, true, &[OK])
        } else {
            bytes
        };
        pair.hears(&bytes);
        pair.sent();
        let mut most = 0;
        let error = loop {
            match pair.tries(&flood) {
                Ok(_) => most += 1,
                Err(error) => break error,
            }
            assert!(most <= MAX_IDLE_FRAMES, "no end");
        };
        assert_eq!(error.code, ErrorCode::ENHANCE_YOUR_CALM);
        assert!(pair.out.len() <= 20 * most as usize);
    }
}

/// What RFC 9113 tells both sides to pass over (sections 4.1, 5.1, 5.5, 6.5.2 and 6.8).
#[test]
fn what_may_come_is_no_fault_of_the_server() {
    let mut pair = Pair::new();
    let (first, second) = (pair.get(1), pair.get(2));
    let head = pair.head(first, true, &[OK]);
    assert_eq!(pair.hears(&head), ["1 200  end"]);
    pair.sent();
    for bytes in [
        // Of a stream that is over, frames that crossed its end.
        window(first, 100),
        framed(kind::RST_STREAM, 0, first, &[0; 4]),
        framed(kind::PRIORITY, 0, first, &[0, 0, 0, 0, 5]),
        // Of one that never was.
        framed(kind::PRIORITY, 0, 99, &[0, 0, 0, 0, 5]),
        // Kinds and flags that nobody has registered.
        framed(0xf0, 0xff, 7, b"extension"),
        framed(kind::PING, 0xf0, 0, &[0; 8]),
        // The reserved bit of a stream.
        framed(0xf0, 0, 0x8000_0001, b""),
    ] {
        assert_eq!(pair.hears(&bytes), [""; 0], "{bytes:?}");
    }
    assert_eq!(
        pair.hears(&settings_frame(&[(0x99, 7), (8, 1)])),
        ["Settings"]
    );
    // A first GOAWAY that names no stream yet, and the one that does, with words for a person.
    let goaway = |last: u32| [&last.to_be_bytes()[..], &[0; 4], b"bye"].concat();
    let events = pair.hears(&framed(kind::GOAWAY, 0, 0, &goaway(u32::MAX >> 1)));
    assert_eq!(events, ["goaway NO_ERROR"]);
    let events = pair.hears(&framed(kind::GOAWAY, 0, 0, &goaway(second)));
    assert_eq!(events, ["goaway NO_ERROR"]);
    let head = pair.head(second, true, &[OK]);
    assert_eq!(pair.hears(&head), ["2 200  end"]);
}

#[test]
fn header_blocks_without_an_end_are_a_flood_whatever_their_pieces() {
    for piece in [0, 1, 16_384] {
        let mut pair = Pair::new();
        pair.get(1);
        pair.hears(&framed(kind::HEADERS, 0, 1, &[]));
        let bytes = framed(kind::CONTINUATION, 0, 1, &vec![0; piece]);
        let error = (0..=MAX_IDLE_FRAMES).find_map(|_| pair.tries(&bytes).err());
        assert_eq!(error.unwrap().code, ErrorCode::ENHANCE_YOUR_CALM);
    }
}

#[test]
fn resets_of_ours_without_number_are_remembered_in_bounds() {
    let mut pair = Pair::new();
    for key in 0..5000 {
        let id = pair.get(key);
        pair.client.reset(id, ErrorCode::CANCEL, &mut pair.out);
        pair.out.clear();
    }
    // The first is no longer among those that are remembered, and still no fault of the server.
    let head = pair.head(1, true, &[OK]);
    assert_eq!(pair.hears(&head), [""; 0]);
    let head = pair.head(9999, true, &[OK]);
    assert_eq!(pair.hears(&head), [""; 0]);
}
