//! Bodies that go out in pieces.

use std::io::Write;

use super::*;
use crate::payload::{PIECE_BYTES, Rest};

/// The bytes of bodies since the last time.
fn data(test: &mut Test) -> u32 {
    let frames = test.frames(0).into_iter();
    let data = frames.filter(|frame| frame.0 == kind::DATA);
    data.map(|frame| frame.2).sum()
}

#[test]
fn a_body_waits_for_the_servers_window_and_that_is_counted() {
    let mut test = Test::connected(1, 1, 100);
    let body = vec![b'x'; 100_000];
    let head = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let bytes = [head.as_bytes(), &body].concat();
    test.driver
        .send(0, Payload::Owned(Outgoing::new(bytes, None)));
    assert_eq!(data(&mut test), 65_535);
    assert!(test.driver.is_sending(0));
    test.driver.wire.now_ns = Duration::from_millis(3).as_nanos() as u64;
    let mut bytes = Vec::new();
    frame::write_window_update(0, 50_000, &mut bytes);
    frame::write_window_update(1, 50_000, &mut bytes);
    test.gives(0, &bytes);
    test.events();
    assert_eq!(data(&mut test), 34_465);
    assert!(!test.driver.is_sending(0));
    let figures = test.figures();
    assert_eq!(
        (figures.send_blocks, figures.longest_send_block_ns),
        (1, 3_000_000)
    );
    test.responds(0, 1, b"hi");
    assert_eq!(test.events(), [format!("0: {OK}")]);
}

#[test]
fn nothing_is_sent_before_the_last_send_was_taken() {
    let mut test = Test::connected(2, 1, 100);
    test.driver.wire.busy.insert(0);
    test.sends(0);
    test.sends(1);
    assert_eq!(test.frames(0), []);
    test.driver.wire.busy.clear();
    assert_eq!(test.events(), [""; 0]);
    assert_eq!(test.opened(0), [1, 3]);
}

#[test]
fn others_on_the_connection_do_not_wait_for_a_file_to_be_read() {
    let mut test = Test::connected(2, 1, 100);
    let (read_ahead, orders) = ReadAhead::new();
    test.driver.read_ahead = read_ahead;
    let length = PIECE_BYTES / 2;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![b'x'; length]).unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
    let rest = Rest::new(Arc::new(file), length as u64, false);
    let outgoing = Outgoing::new(head.into_bytes(), Some(rest));
    test.driver.send(0, Payload::Owned(outgoing));
    test.sends(1);
    assert_eq!(test.opened(0), [1, 3]);
    test.responds(0, 3, b"hi");
    assert_eq!(test.events(), [format!("1: {OK}")]);
    assert_eq!(data(&mut test), 0);
    assert!(test.driver.is_sending(0));
    assert!(orders.read_next());
    test.driver.wait(None).unwrap();
    assert_eq!(data(&mut test), length as u32);
    assert!(!test.driver.is_sending(0));
}
