//! A kernel that refuses submissions, and completions that arrive after their connection was
//! closed.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use super::*;
use crate::net::Direction;
use crate::net::address::Address;
use crate::net::sys::kernel_version;
use crate::net::tests::driver_on_this_host;
use crate::payload::Outgoing;

const MS: u64 = 1_000_000;
/// More than the sockets hold.
const LONG: usize = 16 << 20;

/// `None` where the host has no io_uring.
fn driver(connections: usize) -> Option<(Uring, TcpListener)> {
    driver_that(false, connections)
}

fn driver_that(resets: bool, connections: usize) -> Option<(Uring, TcpListener)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::new(listener.local_addr().unwrap());
    let config = Config {
        fixed: Arc::from(vec![b"ping".to_vec(), vec![b'x'; LONG]]),
        receive_stamps: true,
        resets,
        ..Config::new(connections, vec![address])
    };
    Some((driver_on_this_host(config)?, listener))
}

/// The events of so many milliseconds.
fn events(driver: &mut Uring, ms: u64) -> Vec<NetEvent> {
    let until_ns = monotonic_ns() + ms * MS;
    let mut all = Vec::new();
    while monotonic_ns() < until_ns {
        driver.wait(Some(until_ns)).unwrap();
        while let Some(event) = driver.next() {
            all.push(event);
        }
    }
    all
}

fn connect(driver: &mut Uring, conn: ConnId) {
    driver.connect(conn, 0);
    let connected = events(driver, 20);
    assert!(
        matches!(connected[..], [NetEvent::Connected(of)] if of == conn),
        "{connected:?}"
    );
}

fn owned(bytes: &[u8]) -> Payload {
    Payload::Owned(Outgoing::new(bytes.to_vec(), None))
}

#[test]
fn what_the_kernel_puts_off_is_sent_all_the_same() {
    let Some((mut driver, listener)) = driver(1) else {
        return;
    };
    connect(&mut driver, 0);
    let (mut peer, _) = listener.accept().unwrap();
    for code in [libc::EBUSY, libc::EAGAIN] {
        driver.refusals.extend([code; 3]);
        driver.send(0, Payload::Fixed(0));
        driver.flush().unwrap();
        let mut bytes = [0; 4];
        peer.read_exact(&mut bytes).unwrap();
        assert_eq!(driver.take_put_off(), 3);
    }
}

#[test]
fn a_kernel_that_takes_nothing_refuses_what_has_no_place_and_keeps_the_rest() {
    let Some((mut driver, listener)) = driver(8) else {
        return;
    };
    connect(&mut driver, 0);
    let (mut peer, _) = listener.accept().unwrap();
    // As many sends as there are places in the queue, and three more.
    driver.refusals.extend([libc::EBUSY; 3 * 16]);
    let places = QUEUE as usize - driver.ring.submission().len();
    for _ in 0..places + 3 {
        driver.send(0, Payload::Fixed(0));
    }
    // A cancellation is not refused to anybody: it is kept.
    driver.refusals.extend([libc::EBUSY; 16]);
    driver.cancel(RECEIVE, 7);
    assert_eq!(driver.backlog.len(), 1);
    let refused = events(&mut driver, 50);
    assert_eq!(refused.len(), 3, "{refused:?}");
    for event in refused {
        assert!(
            matches!(event, NetEvent::Refused(0, libc::EBUSY)),
            "{event:?}"
        );
    }
    assert_eq!(driver.take_put_off(), 4 * 16);
    driver.wait(Some(0)).unwrap();
    assert!(driver.backlog.is_empty());
    let mut bytes = vec![0; 4 * places];
    peer.read_exact(&mut bytes).unwrap();
}

#[test]
fn waits_that_are_refused_in_a_row_are_counted_until_one_is_not() {
    let Some((mut driver, _listener)) = driver(1) else {
        return;
    };
    driver.refusals.extend([libc::EAGAIN; 10]);
    for asked in 1..=10 {
        driver.wait(Some(u64::MAX)).unwrap();
        assert_eq!(driver.refused_waits, asked);
    }
    assert_eq!(driver.take_put_off(), 10);
    driver.wait(Some(0)).unwrap();
    assert_eq!(driver.refused_waits, 0);
}

#[test]
fn an_owned_send_that_is_refused_gives_its_place_back() {
    let Some((mut driver, _listener)) = driver(1) else {
        return;
    };
    connect(&mut driver, 0);
    while !driver.ring.submission().is_full() {
        driver.send(0, Payload::Fixed(0));
    }
    driver.refusals.extend([libc::EAGAIN; 16]);
    driver.send(0, owned(b"request"));
    assert!(!driver.is_sending(0));
    assert_eq!(driver.free.len(), 1);
    driver.close(0);
    let after = events(&mut driver, 20);
    assert!(after.is_empty(), "of a closed connection: {after:?}");
}

#[test]
fn two_owned_sends_that_fail_are_no_failure_of_the_next_connection_at_their_index() {
    let Some((mut driver, listener)) = driver(1) else {
        return;
    };
    connect(&mut driver, 0);
    let (first, _) = listener.accept().unwrap();
    // More than the sockets hold, so that both are under way when the connection is closed.
    driver.send(0, owned(&vec![b'x'; 16 << 20]));
    driver.send(0, owned(&vec![b'y'; 16 << 20]));
    driver.flush().unwrap();
    driver.close(0);
    driver.connect(0, 0);
    let reported = events(&mut driver, 50);
    assert!(
        matches!(reported[..], [NetEvent::Connected(0)]),
        "{reported:?}"
    );
    assert!(!driver.is_sending(0));
    assert_eq!(driver.free.len(), 2);
    let (mut second, _) = listener.accept().unwrap();
    drop(first);
    second.write_all(b"hello").unwrap();
    let reported = events(&mut driver, 20);
    assert!(
        matches!(reported[..], [NetEvent::Received(_)]),
        "{reported:?}"
    );
}

#[test]
fn an_index_is_taken_again_before_anything_went_out() {
    for by_calls in [false, true] {
        let Some((mut driver, listener)) = driver(1) else {
            return;
        };
        if by_calls {
            driver.keep_sockets();
        }
        for _ in 0..3 {
            driver.connect(0, 0);
            driver.close(0);
        }
        connect(&mut driver, 0);
        let peers: Vec<_> = (0..4).map(|_| listener.accept().unwrap().0).collect();
        driver.send(0, Payload::Fixed(0));
        driver.flush().unwrap();
        let lengths: Vec<usize> = peers
            .into_iter()
            .map(|mut peer| peer.read(&mut [0; 8]).unwrap())
            .collect();
        assert_eq!(lengths, [0, 0, 0, 4]);
    }
}

#[test]
fn sending_ends_with_the_last_of_two_sends() {
    let Some((mut driver, listener)) = driver(1) else {
        return;
    };
    connect(&mut driver, 0);
    let (mut peer, _) = listener.accept().unwrap();
    driver.send(0, owned(b"short"));
    driver.flush().unwrap();
    driver.send(0, owned(&vec![b'x'; 16 << 20]));
    events(&mut driver, 20);
    assert!(driver.is_sending(0));
    let reader = std::thread::spawn(move || {
        let mut all = vec![0; (16 << 20) + 5];
        peer.read_exact(&mut all).unwrap();
    });
    let until_ns = monotonic_ns() + 10_000 * MS;
    while driver.is_sending(0) && monotonic_ns() < until_ns {
        events(&mut driver, 5);
    }
    assert!(!driver.is_sending(0));
    reader.join().unwrap();
}

#[test]
fn a_fixed_send_that_failed_midway_is_not_taken_for_sent() {
    let Some((mut driver, listener)) = driver(1) else {
        return;
    };
    connect(&mut driver, 0);
    let (peer, _) = listener.accept().unwrap();
    driver.send(0, Payload::Fixed(1));
    assert!(events(&mut driver, 20).is_empty());
    assert!(driver.is_sending(0));
    // With bytes unread its end is a reset.
    drop(peer);
    let reported = events(&mut driver, 50);
    let broke = |event: &NetEvent| matches!(event, NetEvent::Broken(0, Direction::Write, _));
    assert!(reported.iter().any(broke), "{reported:?}");
    assert!(!driver.is_sending(0));
    assert_eq!(driver.free.len(), 1);
}

#[test]
fn where_the_ring_frees_late_the_end_of_a_connection_does_not_wait_for_it() {
    use super::set_up::ends_late;
    assert!(ends_late((6, 1)) && ends_late((6, 12)) && !ends_late((6, 13)));
    for resets in [false, true] {
        let Some((mut driver, listener)) = driver_that(resets, 1) else {
            return;
        };
        driver.keep_sockets();
        connect(&mut driver, 0);
        let (mut peer, _) = listener.accept().unwrap();
        // What holds the socket back there: another reference to it.
        let held = driver.sockets[0].as_ref().unwrap().try_clone().unwrap();
        driver.close(0);
        let limit = std::time::Duration::from_secs(5);
        peer.set_read_timeout(Some(limit)).unwrap();
        match peer.read(&mut [0; 1]) {
            Ok(0) => assert!(!resets),
            Err(error) => assert!(resets && error.kind() == io::ErrorKind::ConnectionReset),
            Ok(_) => panic!("nothing was sent"),
        }
        drop(held);
        assert!(events(&mut driver, 20).is_empty());
        connect(&mut driver, 0);
        assert!(driver.sockets[0].is_some());
    }
}

/// Why a kernel matters: what a ring gives up alone reaches the peer on some of them only.
#[test]
fn a_ring_frees_late_on_the_kernels_that_are_known_to() {
    let Some((mut driver, listener)) = driver(2) else {
        return;
    };
    connect(&mut driver, 0);
    connect(&mut driver, 1);
    driver.sockets.clear();
    let (_idle, _) = listener.accept().unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    driver.close(1);
    events(&mut driver, 20);
    let limit = std::time::Duration::from_secs(1);
    peer.set_read_timeout(Some(limit)).unwrap();
    let late = peer.read(&mut [0; 1]).is_err();
    let kernel = kernel_version().unwrap();
    assert_eq!(late, super::set_up::ends_late(kernel), "Linux {kernel:?}");
}
