//! One upload over TLS, to a server in the same thread.

use std::io::{Read, Write};

use rustls::ServerConnection;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;

use super::*;
use crate::net::address::Address;
use crate::net::read_ahead::Orders;
use crate::payload::{Outgoing, PIECE_BYTES, Payload, Rest};

/// What records add to a piece.
const RECORDS_BYTES: usize = 1024;

/// A driver without a network, whose kernel takes one send per turn.
struct Wire {
    server: ServerConnection,
    sent_bytes: Vec<usize>,
    plain: Vec<u8>,
    events: VecDeque<NetEvent>,
    incoming: Vec<u8>,
    busy: bool,
    /// It takes a send at once.
    quick: bool,
    /// Whether the last wait had a limit.
    limited: bool,
    waker: Waker,
}

impl Driver for Wire {
    const NAME: &'static str = "wire";
    const SEND_GROUP: usize = 1;
    const STAMPS_EACH_READ: bool = false;

    fn new(_: Config) -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
            .unwrap();
        Ok(Self {
            server: ServerConnection::new(Arc::new(config)).unwrap(),
            sent_bytes: Vec::new(),
            plain: Vec::new(),
            events: VecDeque::new(),
            incoming: Vec::new(),
            busy: false,
            quick: false,
            limited: false,
            waker: Waker::new()?,
        })
    }

    fn connect(&mut self, conn: ConnId, _: usize) {
        self.events.push_back(NetEvent::Connected(conn));
    }

    fn send(&mut self, conn: ConnId, payload: Payload) {
        assert!(!self.busy, "the last send is under way");
        let Payload::Owned(outgoing) = payload else {
            panic!("nothing of TLS is sent unchanged");
        };
        self.busy = !self.quick;
        self.sent_bytes.push(outgoing.bytes().len());
        let mut bytes = outgoing.bytes();
        while !bytes.is_empty() {
            self.server.read_tls(&mut bytes).unwrap();
            self.server.process_new_packets().unwrap();
            // Its end: more may come.
            let _ = self.server.reader().read_to_end(&mut self.plain);
        }
        while self.server.wants_write() {
            self.server.write_tls(&mut self.incoming).unwrap();
        }
        if !self.incoming.is_empty() {
            let received = Received::new(conn, self.incoming.len(), false);
            self.events.push_back(NetEvent::Received(received));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_sending(&self, _: ConnId) -> bool {
        self.busy
    }

    fn close(&mut self, _: ConnId) {}

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.limited = until_ns.is_some();
        self.busy = false;
        Ok(())
    }

    fn next(&mut self) -> Option<NetEvent> {
        let event = self.events.pop_front()?;
        // What the server answers to was taken.
        self.busy = false;
        Some(event)
    }

    fn bytes(&self, _: &Received) -> &[u8] {
        &self.incoming
    }

    fn release(&mut self, _: Received) {
        self.incoming.clear();
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// A connection that is secured, and what has to be read for it.
fn secured(fixed: Vec<u8>) -> (TlsDriver<Wire>, Orders) {
    let (read_ahead, orders) = ReadAhead::new();
    let plan = serde_json::from_value(json!({"insecure": true})).unwrap();
    let tls = ClientTls::new(&plan, std::iter::once(Some("localhost"))).unwrap();
    let address = Address::new("127.0.0.1:1".parse().unwrap());
    let mut driver = TlsDriver::<Wire>::new(Config {
        fixed: Arc::from(vec![fixed]),
        tls: Some(Arc::new(tls)),
        read_ahead,
        ..Config::new(1, vec![address])
    })
    .unwrap();
    driver.connect(0, 0);
    let mut events = Vec::new();
    for _ in 0..10 {
        driver.wait(None).unwrap();
        while let Some(event) = driver.next() {
            events.push(event);
        }
    }
    let done = |event: &NetEvent| matches!(event, NetEvent::Secured(0, _));
    assert!(events.iter().any(done), "{events:?}");
    driver.wire.sent_bytes.clear();
    (driver, orders)
}

/// Turns until nothing is sent any more; how much each turn sent.
fn sent_in_turns(driver: &mut TlsDriver<Wire>, mut read: impl FnMut()) -> Vec<usize> {
    let mut turns = vec![driver.wire.sent_bytes.iter().sum()];
    while driver.is_sending(0) {
        driver.wire.sent_bytes.clear();
        read();
        driver.wait(None).unwrap();
        assert!(driver.next().is_none());
        turns.push(driver.wire.sent_bytes.iter().sum());
        assert!(turns.len() < 100);
    }
    turns
}

#[test]
fn a_long_request_is_encrypted_a_piece_per_turn() {
    let body = vec![b'x'; 5 * PIECE_BYTES + 17];
    let (mut driver, _orders) = secured(body.clone());
    driver.send(0, Payload::Fixed(0));
    let turns = sent_in_turns(&mut driver, || {});
    assert!(driver.wire.plain == body);
    assert!(turns.len() >= 6, "{turns:?}");
    let most = turns.iter().max();
    assert!(most < Some(&(PIECE_BYTES + RECORDS_BYTES)), "{turns:?}");
}

#[test]
fn a_file_is_encrypted_a_piece_per_turn_as_it_is_read() {
    const HEAD: &[u8] = b"POST / HTTP/1.1\r\n\r\n";
    let body = vec![b'y'; 3 * PIECE_BYTES + 17];
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&body).unwrap();
    let (mut driver, orders) = secured(Vec::new());
    let rest = Rest::new(Arc::new(file), body.len() as u64, false);
    driver.send(0, Payload::Owned(Outgoing::new(HEAD.to_vec(), Some(rest))));
    for _ in 0..3 {
        driver.wait(None).unwrap();
        assert!(driver.next().is_none());
        assert!(driver.wire.plain == HEAD, "nothing has been read");
    }
    let mut pieces = 4;
    let turns = sent_in_turns(&mut driver, || {
        if pieces > 0 {
            pieces -= 1;
            assert!(orders.read_next());
        }
    });
    assert!(driver.wire.plain == [HEAD, &body].concat());
    let most = turns.iter().max();
    assert!(most < Some(&(PIECE_BYTES + RECORDS_BYTES)), "{turns:?}");
}

#[test]
fn what_follows_a_piece_that_was_taken_at_once_does_not_wait_for_an_event() {
    let (mut driver, _orders) = secured(vec![b'x'; 2 * PIECE_BYTES]);
    driver.wire.quick = true;
    driver.send(0, Payload::Fixed(0));
    assert!(driver.is_sending(0));
    driver.wait(None).unwrap();
    assert!(!driver.is_sending(0) && driver.wire.limited);
    driver.wait(None).unwrap();
    assert!(!driver.wire.limited);
}
