//! Users on shared connections, against a wire whose other end is written here frame by frame: how
//! connections and streams are shared.

mod bodies;
mod ending;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use prony_h2::frame::{self, FrameHeader, HEADER_BYTES, flag, kind};
use prony_h2::hpack::{Encoder, Indexing};

use super::*;
use crate::net::Sharing;
use crate::net::address::Address;

const CLIENT: prony_h2::Config = prony_h2::Config {
    stream_window_bytes: 1 << 20,
    connection_window_bytes: 1 << 20,
    table_bytes: 4096,
    max_head_bytes: 4096,
};

/// A driver without a network.
struct Wire {
    connects: Vec<ConnId>,
    closed: Vec<ConnId>,
    sent: HashMap<ConnId, Vec<u8>>,
    busy: HashSet<ConnId>,
    events: VecDeque<NetEvent>,
    received: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    now_ns: u64,
    waker: Waker,
}

impl Driver for Wire {
    const NAME: &'static str = "wire";
    const SEND_GROUP: usize = 1;
    const STAMPS_EACH_READ: bool = false;

    fn new(_: Config) -> io::Result<Self> {
        Ok(Self {
            connects: Vec::new(),
            closed: Vec::new(),
            sent: HashMap::new(),
            busy: HashSet::new(),
            events: VecDeque::new(),
            received: VecDeque::new(),
            current: Vec::new(),
            now_ns: 0,
            waker: Waker::new()?,
        })
    }

    fn connect(&mut self, conn: ConnId, _: usize) {
        self.connects.push(conn);
    }

    fn send(&mut self, conn: ConnId, payload: Payload) {
        assert!(!self.busy.contains(&conn), "the last send is under way");
        let Payload::Owned(outgoing) = payload else {
            panic!("nothing of HTTP/2 is sent unchanged");
        };
        self.sent
            .entry(conn)
            .or_default()
            .extend_from_slice(outgoing.bytes());
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.busy.contains(&conn)
    }

    fn close(&mut self, conn: ConnId) {
        self.closed.push(conn);
    }

    fn wait(&mut self, _: Option<u64>) -> io::Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<NetEvent> {
        let event = self.events.pop_front()?;
        if let NetEvent::Received(_) = event {
            self.current = self.received.pop_front().unwrap();
        }
        Some(event)
    }

    fn bytes(&self, _: &Received) -> &[u8] {
        &self.current
    }

    fn release(&mut self, _: Received) {}

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

struct Test {
    driver: Http2Driver<Wire>,
    /// Of the server, by connection.
    encoders: HashMap<ConnId, Encoder>,
    /// Of what was read of the client.
    read: HashMap<ConnId, usize>,
}

impl Test {
    fn new(users: usize, connections: usize) -> Self {
        let address = Address::new("127.0.0.1:1".parse().unwrap());
        let config = Config {
            fixed: Arc::from(vec![GET.to_vec()]),
            http2: Some(Sharing {
                connections,
                users,
                client: CLIENT,
            }),
            ..Config::new(users, vec![address])
        };
        Self {
            driver: Http2Driver::new(config).unwrap(),
            encoders: HashMap::new(),
            read: HashMap::new(),
        }
    }

    /// All users are connected, and the server takes so many streams at once.
    fn connected(users: usize, connections: usize, max_streams: u32) -> Self {
        let mut test = Self::new(users, connections);
        for conn in 0..users as u32 {
            test.driver.connect(conn, 0);
        }
        for side in test.driver.wire.connects.clone() {
            test.driver.wire.events.push_back(NetEvent::Connected(side));
        }
        test.events();
        for side in test.driver.wire.connects.clone() {
            test.gives(side, &settings(max_streams));
        }
        assert_eq!(test.events(), [""; 0]);
        test.frames(0);
        test
    }

    /// Bytes come on a connection.
    fn gives(&mut self, side: ConnId, bytes: &[u8]) {
        self.driver.wire.received.push_back(bytes.to_vec());
        let received = Received::new(side, bytes.len(), false);
        self.driver
            .wire
            .events
            .push_back(NetEvent::Received(received));
    }

    /// The server answers with this status and body.
    fn responds(&mut self, side: ConnId, stream: u32, body: &[u8]) {
        let encoder = self
            .encoders
            .entry(side)
            .or_insert_with(|| Encoder::new(4096));
        let mut block = Vec::new();
        encoder.field(b":status", b"200", Indexing::Kept, &mut block);
        let mut bytes = Vec::new();
        frame::write_block(stream, &block, false, 16_384, &mut bytes);
        frame::write(kind::DATA, flag::END_STREAM, stream, body, &mut bytes);
        self.gives(side, &bytes);
    }

    /// Events for users, in words, until there are none.
    fn events(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        while let Some(event) = self.driver.next() {
            events.push(match event {
                NetEvent::Received(received) => {
                    let text =
                        String::from_utf8_lossy(self.driver.bytes(&received)).replace("\r\n", "|");
                    format!("{}: {text}", received.conn)
                }
                NetEvent::Lost(conn, lost) => {
                    format!("{conn} lost {:?} {}", lost.kind, lost.reason)
                }
                other => format!("{other:?}"),
            });
        }
        events
    }

    fn sends(&mut self, conn: ConnId) {
        self.driver.send(conn, Payload::Fixed(0));
    }

    /// The frames of the client since the last look, as kind, stream and length of the payload.
    fn frames(&mut self, side: ConnId) -> Vec<(u8, u32, u32)> {
        self.driver.flush().unwrap();
        let all = self
            .driver
            .wire
            .sent
            .get(&side)
            .map_or(&[][..], Vec::as_slice);
        let from = self.read.insert(side, all.len()).unwrap_or(0);
        let mut rest = &all[from..];
        rest = rest.strip_prefix(frame::PREFACE).unwrap_or(rest);
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let header = FrameHeader::read(rest[..HEADER_BYTES].try_into().unwrap());
            frames.push((header.kind, header.stream, header.length));
            rest = &rest[HEADER_BYTES + header.length as usize..];
        }
        frames
    }

    /// Streams that were opened since the last look.
    fn opened(&mut self, side: ConnId) -> Vec<u32> {
        let frames = self.frames(side).into_iter();
        frames
            .filter(|frame| frame.0 == kind::HEADERS)
            .map(|frame| frame.1)
            .collect()
    }

    fn figures(&mut self) -> Http2Figures {
        *self.driver.take_http2().unwrap()
    }
}

fn settings(max_streams: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload = [&3_u16.to_be_bytes()[..], &max_streams.to_be_bytes()].concat();
    frame::write(kind::SETTINGS, 0, 0, &payload, &mut bytes);
    bytes
}

fn goaway(last: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_goaway(last, prony_h2::ErrorCode::NO_ERROR, &mut bytes);
    bytes
}

const OK: &str = "HTTP/1.1 200 |content-length: 2||hi";

#[test]
fn users_share_connections_and_each_gets_its_response() {
    let mut test = Test::new(4, 2);
    for conn in 0..4 {
        test.driver.connect(conn, 0);
    }
    // One connection for users 0 and 2, one for 1 and 3.
    assert_eq!(test.driver.wire.connects, [0, 2]);
    test.driver.wire.events.push_back(NetEvent::Connected(0));
    assert_eq!(test.events(), ["Connected(0)", "Joined(2)"]);
    test.gives(0, &settings(100));
    test.events();
    test.frames(0);
    test.sends(2);
    test.sends(0);
    assert_eq!(test.opened(0), [1, 3]);
    test.responds(0, 3, b"hi");
    test.responds(0, 1, b"hi");
    assert_eq!(test.events(), [format!("0: {OK}"), format!("2: {OK}")]);
    let figures = test.figures();
    assert_eq!((figures.connections.opened, figures.streams_opened), (1, 2));
    assert_eq!(figures.stream_waits, 0);
    assert_eq!(figures.max_concurrent_streams, Some(100));
}

#[test]
fn requests_beyond_what_the_server_takes_wait_in_the_client_and_are_counted() {
    let mut test = Test::connected(3, 1, 1);
    for conn in 0..3 {
        test.sends(conn);
    }
    assert_eq!(test.opened(0), [1]);
    assert!(!test.driver.is_sending(0) && test.driver.is_sending(1));
    test.driver.wire.now_ns = 5_000;
    test.responds(0, 1, b"hi");
    assert_eq!(test.events(), [format!("0: {OK}")]);
    assert_eq!(test.opened(0), [3]);
    test.driver.wire.now_ns = 7_000;
    test.responds(0, 3, b"hi");
    assert_eq!(test.events(), [format!("1: {OK}")]);
    assert_eq!(test.opened(0), [5]);
    let figures = test.figures();
    assert_eq!((figures.stream_waits, figures.stream_wait_ns), (2, 12_000));
    assert_eq!(figures.longest_stream_wait_ns, 7_000);
}

/// The longest waits are those that end in a time-out.
#[test]
fn a_wait_that_is_given_up_counts() {
    let mut test = Test::connected(2, 1, 1);
    test.sends(0);
    test.sends(1);
    test.driver.wire.now_ns = 5_000;
    test.driver.close(1);
    let figures = test.figures();
    assert_eq!((figures.stream_waits, figures.stream_wait_ns), (1, 5_000));
    let mut test = Test::connected(2, 1, 100);
    let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
    for conn in 0..2 {
        let bytes = [&head[..], &[b'x'; 100_000]].concat();
        let outgoing = Outgoing::new(bytes, None);
        test.driver.send(conn, Payload::Owned(outgoing));
    }
    test.frames(0);
    test.driver.wire.now_ns = 7_000;
    test.driver.close(1);
    test.responds(0, 1, b"no");
    test.events();
    let figures = test.figures();
    assert_eq!((figures.send_blocks, figures.send_blocked_ns), (2, 14_000));
}

#[test]
fn until_the_server_has_said_how_many_one_request_goes_out() {
    let mut test = Test::new(2, 1);
    test.driver.connect(0, 0);
    test.driver.connect(1, 0);
    test.driver.wire.events.push_back(NetEvent::Connected(0));
    test.events();
    test.sends(0);
    test.sends(1);
    assert_eq!(test.opened(0), [1]);
    test.gives(0, &settings(100));
    assert_eq!(test.events(), [""; 0]);
    assert_eq!(test.opened(0), [3]);
}

#[test]
fn a_response_in_pieces_is_told_in_pieces() {
    let mut test = Test::connected(1, 1, 100);
    test.sends(0);
    test.frames(0);
    let mut bytes = Vec::new();
    frame::write_block(1, &[0x88], false, 100, &mut bytes);
    frame::write(kind::DATA, 0, 1, b"abc", &mut bytes);
    test.gives(0, &bytes);
    assert_eq!(
        test.events(),
        ["0: HTTP/1.1 200 |transfer-encoding: chunked||3|abc|"]
    );
    let mut bytes = Vec::new();
    frame::write(kind::DATA, flag::END_STREAM, 1, b"d", &mut bytes);
    test.gives(0, &bytes);
    assert_eq!(test.events(), ["0: 1|d|0||"]);
}
