//! One user uploads a file from a disk that does not answer while 63 others ask and are answered.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::*;
use crate::net::address::Address;
use crate::net::epoll::Epoll;
use crate::net::rings::Rings;
use crate::net::sys::monotonic_ns;
use crate::net::tests::driver_on_this_host;
use crate::net::uring::Uring;
use crate::net::{Config, ConnId, Driver, NetEvent};
use crate::payload::{PIECE_BYTES, Payload, Rest};

const USERS: ConnId = 64;
const HEAD: &[u8] = b"POST / HTTP/1.1\r\n\r\n";
const PIECES: usize = 3;

/// Handles what has happened; who has been answered.
fn turn<D: Driver>(driver: &mut D) -> Vec<ConnId> {
    let mut answered = Vec::new();
    driver.wait(Some(monotonic_ns() + 1_000_000)).unwrap();
    while let Some(event) = driver.next() {
        match event {
            NetEvent::Received(received) => {
                answered.push(received.conn);
                driver.release(received);
            }
            NetEvent::Connected(_) | NetEvent::Woken => {}
            other => panic!("{other:?}"),
        }
    }
    answered
}

struct Test<D> {
    driver: D,
    peers: Vec<TcpStream>,
    orders: Orders,
    received: Vec<u8>,
}

impl<D: Driver> Test<D> {
    fn new() -> Option<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (read_ahead, orders) = ReadAhead::new();
        let address = Address::new(listener.local_addr().unwrap());
        let config = Config {
            fixed: Arc::from(vec![b"ping".to_vec()]),
            read_ahead,
            ..Config::new(USERS as usize, vec![address])
        };
        let mut driver = driver_on_this_host::<D>(config)?;
        let mut peers = Vec::new();
        for conn in 0..USERS {
            driver.connect(conn, 0);
            turn(&mut driver);
            peers.push(listener.accept().unwrap().0);
            turn(&mut driver);
        }
        peers[0].set_nonblocking(true).unwrap();
        Some(Self {
            driver,
            peers,
            orders,
            received: Vec::new(),
        })
    }

    fn uploads(&mut self, bytes: usize) -> Vec<u8> {
        let body: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&body).unwrap();
        let rest = Rest::new(Arc::new(file), bytes as u64, false);
        let outgoing = Outgoing::new(HEAD.to_vec(), Some(rest));
        self.driver.send(0, Payload::Owned(outgoing));
        self.driver.flush().unwrap();
        [HEAD, &body].concat()
    }

    /// Goes on until the server has this much of the upload.
    fn until_received(&mut self, bytes: usize) {
        let until_ns = monotonic_ns() + 60_000_000_000;
        while self.received.len() < bytes {
            assert!(monotonic_ns() < until_ns, "{}", self.received.len());
            turn(&mut self.driver);
            match self.peers[0].read_to_end(&mut self.received) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The others ask and are answered.
    fn others_get(&mut self) {
        for conn in 1..USERS {
            self.driver.send(conn, Payload::Fixed(0));
        }
        self.driver.flush().unwrap();
        for peer in &mut self.peers[1..] {
            let mut bytes = [0; 4];
            peer.read_exact(&mut bytes).unwrap();
            peer.write_all(b"pong").unwrap();
        }
        let until_ns = monotonic_ns() + 60_000_000_000;
        let mut answered = Vec::new();
        while answered.len() < USERS as usize - 1 {
            assert!(monotonic_ns() < until_ns, "{answered:?}");
            answered.extend(turn(&mut self.driver));
        }
        answered.sort_unstable();
        assert_eq!(answered, (1..USERS).collect::<Vec<_>>());
    }
}

fn a_slow_disk_holds_up_nobody_else<D: Driver>() {
    let Some(mut test) = Test::<D>::new() else {
        return;
    };
    let body = test.uploads((PIECES - 1) * PIECE_BYTES + 17);
    for read in 0..PIECES {
        // Nobody reads: the others are served, and the upload waits behind what was read.
        test.others_get();
        test.until_received(HEAD.len() + read * PIECE_BYTES);
        assert!(test.driver.is_sending(0));
        assert_eq!(test.received, body[..HEAD.len() + read * PIECE_BYTES]);
        assert!(test.orders.read_next());
    }
    test.until_received(body.len());
    assert!(test.received == body);
    let until_ns = monotonic_ns() + 60_000_000_000;
    while test.driver.is_sending(0) && monotonic_ns() < until_ns {
        turn(&mut test.driver);
    }
    assert!(!test.driver.is_sending(0));
    // Its memory and its place are free for the next.
    let again = test.uploads(5);
    test.received.clear();
    assert!(test.orders.read_next());
    test.until_received(again.len());
    assert!(test.received == again);
}

#[test]
fn a_slow_disk_holds_up_nobody_else_on_any_driver() {
    a_slow_disk_holds_up_nobody_else::<Epoll>();
    a_slow_disk_holds_up_nobody_else::<Uring>();
    a_slow_disk_holds_up_nobody_else::<Rings>();
}

/// A connection that is closed while its file is read, and the next at its place.
fn who_gives_up_leaves_nothing<D: Driver>() {
    let Some(mut test) = Test::<D>::new() else {
        return;
    };
    test.uploads(PIECE_BYTES);
    test.until_received(HEAD.len());
    test.driver.close(0);
    assert!(!test.driver.is_sending(0));
    assert!(test.orders.read_next());
    test.others_get();
    let end = test.peers[0].read(&mut [0; 1]).unwrap();
    assert_eq!(end, 0, "nothing of the file was sent");
}

#[test]
fn who_gives_up_an_upload_leaves_nothing_behind() {
    who_gives_up_leaves_nothing::<Epoll>();
    who_gives_up_leaves_nothing::<Uring>();
}

#[test]
fn a_file_that_became_shorter_breaks_its_connection() {
    fn breaks<D: Driver>() {
        let Some(mut test) = Test::<D>::new() else {
            return;
        };
        let file = tempfile::tempfile().unwrap();
        let rest = Rest::new(Arc::new(file), 10, false);
        let outgoing = Outgoing::new(HEAD.to_vec(), Some(rest));
        test.driver.send(0, Payload::Owned(outgoing));
        assert!(test.orders.read_next());
        let until_ns = monotonic_ns() + 60_000_000_000;
        loop {
            assert!(monotonic_ns() < until_ns, "nothing broke");
            test.driver.wait(Some(monotonic_ns() + 1_000_000)).unwrap();
            match test.driver.next() {
                Some(NetEvent::Broken(0, crate::net::Direction::Write, _)) => break,
                Some(NetEvent::Woken) | None => {}
                other => panic!("{other:?}"),
            }
        }
    }
    breaks::<Epoll>();
    breaks::<Uring>();
}
