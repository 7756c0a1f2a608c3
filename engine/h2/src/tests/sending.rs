//! Bodies of requests and the windows of both sides.

use super::*;

const OK: (&str, &str) = (":status", "200");

/// Bytes in DATA frames, and whether the last ends the stream.
fn body(frames: &[Frame]) -> (usize, bool) {
    assert!(frames.iter().all(|frame| frame.kind == kind::DATA));
    let bytes = frames.iter().map(|frame| frame.payload.len()).sum();
    let ends = frames
        .last()
        .is_some_and(|frame| frame.flags & flag::END_STREAM != 0);
    (bytes, ends)
}

#[test]
fn a_body_is_cut_into_frames_and_waits_for_both_windows() {
    let mut pair = Pair::new();
    let id = pair.post(1);
    pair.sent();
    let bytes = vec![b'x'; 100_000];
    assert_eq!(pair.client.send(id, &bytes, true, &mut pair.out), 65_535);
    let frames = pair.sent();
    assert_eq!((frames.len(), body(&frames)), (4, (65_535, false)));
    assert!(pair.client.is_blocked(id));
    assert_eq!(pair.hears(&window(id, 50_000)), ["Window"]);
    assert_eq!(
        pair.client.send(id, &bytes[65_535..], true, &mut pair.out),
        0
    );
    assert_eq!(pair.hears(&window(0, 20_000)), ["Window"]);
    assert_eq!(
        pair.client.send(id, &bytes[65_535..], true, &mut pair.out),
        20_000
    );
    pair.sent();
    pair.hears(&window(0, 20_000));
    assert_eq!(
        pair.client.send(id, &bytes[85_535..], true, &mut pair.out),
        14_465
    );
    assert_eq!(body(&pair.sent()), (14_465, true));
    assert_eq!(pair.client.send(id, b"", true, &mut pair.out), 0);
}

#[test]
fn a_body_without_bytes_ends_the_stream() {
    let mut pair = Pair::with(CONFIG, &[(4, 0)]);
    let id = pair.post(1);
    pair.sent();
    assert_eq!(pair.client.send(id, b"", true, &mut pair.out), 0);
    assert_eq!(body(&pair.sent()), (0, true));
}

#[test]
fn the_servers_settings_move_the_windows_of_open_streams() {
    let mut pair = Pair::with(CONFIG, &[(4, 10)]);
    let id = pair.post(1);
    pair.sent();
    assert_eq!(pair.client.send(id, &[0; 100], true, &mut pair.out), 10);
    pair.hears(&settings_frame(&[(4, 0)]));
    pair.hears(&window(id, 5));
    assert_eq!(
        pair.client.send(id, &[0; 90], true, &mut pair.out),
        0,
        "the window is -5"
    );
    pair.hears(&settings_frame(&[(4, 30), (5, 16_384)]));
    assert_eq!(pair.client.send(id, &[0; 90], true, &mut pair.out), 25);
}

#[test]
fn what_was_read_may_be_sent_again() {
    let config = Config {
        stream_window_bytes: 1000,
        connection_window_bytes: 0,
        ..CONFIG
    };
    let mut pair = Pair::with(config, &[]);
    let id = pair.get(1);
    pair.sent();
    let head = pair.head(id, false, &[OK]);
    pair.hears(&head);
    pair.hears(&data(id, false, &[0; 499]));
    assert_eq!(pair.sent(), []);
    pair.hears(&data(id, false, &[0; 1]));
    assert_eq!(
        pair.sent_one(),
        (kind::WINDOW_UPDATE, id, 500_u32.to_be_bytes().to_vec())
    );
    assert_eq!(pair.client.take_tally().receive_window_used_up, 0);
    pair.hears(&data(id, false, &[0; 1000]));
    assert_eq!(
        pair.sent_one(),
        (kind::WINDOW_UPDATE, id, 1000_u32.to_be_bytes().to_vec())
    );
    assert_eq!(pair.client.take_tally().receive_window_used_up, 1);
    // Of the connection's window half of 65535 is read by then.
    let mut updates = Vec::new();
    for _ in 0..100 {
        pair.hears(&data(id, false, &[0; 900]));
        updates.extend(pair.sent().into_iter().filter(|frame| frame.stream == 0));
    }
    assert_eq!(updates.len(), 2);
}

#[test]
fn a_window_of_one_byte_does_not_stand_still() {
    let config = Config {
        stream_window_bytes: 1,
        ..CONFIG
    };
    let mut pair = Pair::with(config, &[]);
    let id = pair.get(1);
    pair.sent();
    let head = pair.head(id, false, &[OK]);
    pair.hears(&head);
    for _ in 0..3 {
        pair.hears(&data(id, false, b"x"));
        assert_eq!(
            pair.sent_one(),
            (kind::WINDOW_UPDATE, id, 1_u32.to_be_bytes().to_vec())
        );
    }
}

#[test]
fn padding_counts_in_the_window() {
    let config = Config {
        stream_window_bytes: 10,
        ..CONFIG
    };
    let mut pair = Pair::with(config, &[]);
    let id = pair.get(1);
    pair.sent();
    let head = pair.head(id, false, &[OK]);
    pair.hears(&head);
    pair.hears(&framed(
        kind::DATA,
        flag::PADDED,
        id,
        &[5, b'x', 0, 0, 0, 0, 0],
    ));
    assert_eq!(
        pair.sent_one(),
        (kind::WINDOW_UPDATE, id, 7_u32.to_be_bytes().to_vec())
    );
}

#[test]
fn a_response_before_the_end_of_the_request_gives_up_the_rest() {
    let mut pair = Pair::new();
    let id = pair.post(1);
    pair.client.send(id, b"some", false, &mut pair.out);
    pair.sent();
    let head = pair.head(id, true, &[(":status", "413")]);
    assert_eq!(pair.hears(&head), ["1 413  end"]);
    assert_eq!(pair.sent_one(), (kind::RST_STREAM, id, vec![0; 4]));
    assert_eq!(pair.client.send(id, b"more", true, &mut pair.out), 0);
    // What the server may say of it meanwhile.
    let reset = framed(kind::RST_STREAM, 0, id, &[0; 4]);
    assert_eq!(pair.hears(&reset), [""; 0]);
}
