//! Requests and their responses as they should be.

use super::*;

const OK: (&str, &str) = (":status", "200");

#[test]
fn a_connection_begins_with_the_preface_and_settings_without_push() {
    let mut pair = Pair::fresh(CONFIG);
    let frames = pair.sent();
    let kinds: Vec<u8> = frames.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [kind::SETTINGS, kind::WINDOW_UPDATE]);
    assert_eq!(frames[0].payload[..6], [0, 2, 0, 0, 0, 0]);
    assert_eq!(frames[0].payload[6..12], [0, 4, 0, 0x10, 0, 0]);
    let more = (1_u32 << 24) - 65_535;
    assert_eq!(frames[1].payload, more.to_be_bytes());
}

#[test]
fn a_response_is_a_head_and_its_body() {
    let mut pair = Pair::new();
    let id = pair.get(7);
    assert_eq!(id, 1);
    let head = pair.head(id, false, &[OK, ("content-length", "5")]);
    let all = [head, data(id, false, b"hel"), data(id, true, b"lo")].concat();
    assert_eq!(
        pair.hears(&all),
        ["7 200 content-length: 5,", "7 data hel", "7 data lo end"]
    );
    assert_eq!(pair.client.open_streams(), 0);
    let id = pair.get(8);
    assert_eq!(id, 3);
    let head = pair.head(id, true, &[(":status", "204")]);
    assert_eq!(pair.hears(&head), ["8 204  end"]);
}

#[test]
fn what_the_server_reads_is_the_request() {
    let mut pair = Pair::new();
    for _ in 0..3 {
        pair.get(1);
        let (kind, _, block) = pair.sent_one();
        assert_eq!(kind, kind::HEADERS);
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let each = |name: &[u8], value: &[u8]| fields.push(text(name) + "=" + &text(value));
        pair.decoder.decode(&block, each).unwrap();
        assert_eq!(
            fields,
            [":method=GET", ":scheme=http", ":authority=a", ":path=/"]
        );
    }
}

/// What is kept is what would have been written, also when the tables change in between.
#[test]
fn a_block_that_is_kept_means_the_same_request() {
    let (mut first, mut second) = (request("GET"), request("GET"));
    first.push(b"x", b"one", Indexing::Kept);
    first.set_number(0);
    second.push(b"x", b"two", Indexing::Kept);
    second.set_number(1);
    let mut pair = Pair::new();
    for (round, turn) in [0, 0, 1, 0, 1, 1, 0].into_iter().enumerate() {
        if round == 4 {
            // The table is emptied.
            let bytes = [settings_frame(&[(1, 0)]), settings_frame(&[(1, 4096)])].concat();
            pair.hears(&bytes);
            pair.sent();
        }
        let request = if turn == 0 { &first } else { &second };
        let id = pair.client.open(1, request, true, &mut pair.out);
        let (_, _, block) = pair.sent_one();
        let mut last = Vec::new();
        pair.decoder
            .decode(&block, |_, value| last = value.to_vec())
            .unwrap();
        assert_eq!(last, if turn == 0 { b"one" } else { b"two" });
        let head = pair.head(id, true, &[OK]);
        pair.hears(&head);
    }
    let tally = pair.client.take_tally();
    assert_eq!(tally.streams_opened, 7);
    assert!(tally.header_block_bytes_sent * 4 < tally.header_list_bytes_sent);
    assert_eq!(tally.header_fields_received, 7); // a status each
}

#[test]
fn responses_come_in_any_order_and_interleaved() {
    let mut pair = Pair::new();
    let (first, second) = (pair.get(1), pair.get(2));
    let heads = [
        pair.head(second, false, &[OK]),
        pair.head(first, false, &[OK]),
    ];
    let bodies = [
        data(first, false, b"a"),
        data(second, true, b"b"),
        data(first, true, b""),
    ];
    assert_eq!(
        pair.hears(&[heads.concat(), bodies.concat()].concat()),
        [
            "2 200 ",
            "1 200 ",
            "1 data a",
            "2 data b end",
            "1 data  end"
        ]
    );
}

#[test]
fn interim_responses_padding_priority_continuation_and_trailers_are_read() {
    let mut pair = Pair::new();
    let id = pair.get(1);
    let interim = pair.head(id, false, &[(":status", "100")]);
    let block = pair.block(&[OK, ("a", "1")]);
    let padded = [&[2][..], &[0, 0, 0, 0, 9], &block[..1], &[0, 0]].concat();
    let flags = flag::PADDED | flag::PRIORITY;
    let trailers = pair.head(id, true, &[("checksum", "1")]);
    let all = [
        interim,
        framed(kind::HEADERS, flags, id, &padded),
        framed(kind::CONTINUATION, 0, id, &block[1..2]),
        framed(kind::CONTINUATION, flag::END_HEADERS, id, &block[2..]),
        framed(kind::DATA, flag::PADDED, id, b"\x03xyz\0\0\0"),
        framed(0x77, 0xff, id, b"unknown"),
        trailers,
    ];
    assert_eq!(
        pair.hears(&all.concat()),
        ["1 interim 100", "1 200 a: 1,", "1 data xyz", "1 trailers"]
    );
}

#[test]
fn a_response_to_head_has_a_length_and_no_body() {
    let mut pair = Pair::new();
    let id = pair.client.open(1, &request("HEAD"), true, &mut pair.out);
    let head = pair.head(id, true, &[OK, ("content-length", "5")]);
    assert_eq!(pair.hears(&head), ["1 200 content-length: 5, end"]);
}

#[test]
fn pings_and_settings_are_acknowledged() {
    let mut pair = Pair::new();
    pair.hears(&framed(kind::PING, 0, 0, b"12345678"));
    assert_eq!(pair.sent_one(), (kind::PING, 0, b"12345678".to_vec()));
    pair.hears(&framed(kind::PING, flag::ACK, 0, b"12345678"));
    assert_eq!(pair.hears(&settings_frame(&[(3, 5)])), ["Settings"]);
    assert_eq!(
        pair.sent(),
        [Frame {
            kind: kind::SETTINGS,
            flags: flag::ACK,
            stream: 0,
            payload: vec![]
        }]
    );
    assert_eq!(pair.client.take_tally().pings, 2);
}

#[test]
fn no_more_streams_are_open_than_the_server_takes() {
    let mut pair = Pair::fresh(CONFIG);
    assert!(pair.client.may_open());
    let first = pair.get(1);
    assert!(!pair.client.may_open(), "the server has not said how many");
    pair.hears(&settings_frame(&[(3, 2)]));
    assert!(pair.client.may_open());
    pair.get(2);
    assert!(!pair.client.may_open());
    assert_eq!(pair.client.max_streams(), Some(2));
    let head = pair.head(first, true, &[OK]);
    pair.hears(&head);
    assert!(pair.client.may_open());
    pair.hears(&settings_frame(&[(3, 0)]));
    assert!(!pair.client.may_open());
}

#[test]
fn goaway_ends_what_was_not_looked_at_and_lets_the_rest_finish() {
    let mut pair = Pair::new();
    let (first, _, _) = (pair.get(1), pair.get(2), pair.get(3));
    let goaway = [&first.to_be_bytes()[..], &[0; 4], b"why"].concat();
    assert_eq!(
        pair.hears(&framed(kind::GOAWAY, 0, 0, &goaway)),
        ["goaway NO_ERROR", "2 unprocessed", "3 unprocessed"]
    );
    assert!(!pair.client.may_open() && pair.client.is_closing());
    let head = pair.head(first, true, &[OK]);
    assert_eq!(pair.hears(&head), ["1 200  end"]);
}

#[test]
fn a_reset_tells_its_code_and_the_connection_goes_on() {
    let mut pair = Pair::new();
    let (first, second) = (pair.get(1), pair.get(2));
    let refused = framed(kind::RST_STREAM, 0, first, &7_u32.to_be_bytes());
    assert_eq!(pair.hears(&refused), ["1 reset REFUSED_STREAM"]);
    let head = pair.head(second, true, &[OK]);
    assert_eq!(pair.hears(&head), ["2 200  end"]);
    let unknown = pair.get(3);
    let reset = framed(kind::RST_STREAM, 0, unknown, &99_u32.to_be_bytes());
    assert_eq!(pair.hears(&reset), ["3 reset UNKNOWN"]);
}

#[test]
fn frames_that_were_on_their_way_when_we_reset_a_stream_are_passed_over() {
    let mut pair = Pair::new();
    let id = pair.get(1);
    pair.client.reset(id, ErrorCode::CANCEL, &mut pair.out);
    // The table of the server's fields goes on.
    let head = pair.head(id, false, &[OK, ("a", "1")]);
    let late = [head, data(id, true, b"late"), window(id, 5)].concat();
    assert_eq!(pair.hears(&late), [""; 0]);
    let id = pair.get(2);
    let head = pair.head(id, true, &[OK, ("a", "1")]);
    assert_eq!(pair.hears(&head), ["2 200 a: 1, end"]);
}
