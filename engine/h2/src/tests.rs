//! A client against the frames of a server that is written here, frame by frame; `tests/library.rs` has
//! another's server.

mod abuse;
mod exchange;
mod sending;

use proptest::prelude::*;

use crate::connection::{Client, Event};
use crate::error::ConnectionError;
use crate::fields::Fields;
use crate::frame::{self, FrameHeader, HEADER_BYTES, flag, kind};
use crate::hpack::{Decoder, Encoder, Indexing};
use crate::settings::Config;
use crate::{ErrorCode, properties};

const CONFIG: Config = Config {
    stream_window_bytes: 1 << 20,
    connection_window_bytes: 1 << 24,
    table_bytes: 4096,
    max_head_bytes: 65_536,
};

/// A frame as the server read it.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// Both sides of a connection.
struct Pair {
    client: Client,
    encoder: Encoder,
    decoder: Decoder,
    /// What the client has sent and the server not read.
    out: Vec<u8>,
}

impl Pair {
    /// A connection on which nothing was exchanged.
    fn fresh(config: Config) -> Self {
        let mut out = Vec::new();
        let client = Client::new(config, &mut out);
        assert!(out.starts_with(frame::PREFACE));
        out.drain(..frame::PREFACE.len());
        Self {
            client,
            encoder: Encoder::new(4096),
            decoder: Decoder::new(4096),
            out,
        }
    }

    /// The same after the server's SETTINGS, with these pairs in them.
    fn with(config: Config, settings: &[(u16, u32)]) -> Self {
        let mut pair = Self::fresh(config);
        assert_eq!(pair.hears(&settings_frame(settings)), ["Settings"]);
        pair.sent();
        pair
    }

    fn new() -> Self {
        Self::with(CONFIG, &[])
    }

    /// What the client makes of bytes.
    fn tries(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, ConnectionError> {
        let mut events = Vec::new();
        while let Some(event) = self.client.read(&mut bytes, &mut self.out)? {
            events.push(described(&event));
        }
        assert!(bytes.is_empty());
        Ok(events)
    }

    fn hears(&mut self, bytes: &[u8]) -> Vec<String> {
        self.tries(bytes).unwrap()
    }

    fn error(&mut self, bytes: &[u8]) -> ConnectionError {
        self.tries(bytes).unwrap_err()
    }

    /// The frames that the client has sent.
    fn sent(&mut self) -> Vec<Frame> {
        frames_of(&std::mem::take(&mut self.out))
    }

    /// The only frame that the client has sent, as kind, stream and payload.
    fn sent_one(&mut self) -> (u8, u32, Vec<u8>) {
        let mut frames = self.sent();
        assert_eq!(frames.len(), 1, "{frames:?}");
        let frame = frames.remove(0);
        (frame.kind, frame.stream, frame.payload)
    }

    fn get(&mut self, key: u32) -> u32 {
        self.client.open(key, &request("GET"), true, &mut self.out)
    }

    fn post(&mut self, key: u32) -> u32 {
        self.client
            .open(key, &request("POST"), false, &mut self.out)
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
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
        block
    }

    /// HEADERS of a response.
    fn head(&mut self, stream: u32, end: bool, fields: &[(&str, &str)]) -> Vec<u8> {
        let block = self.block(fields);
        let mut out = Vec::new();
        frame::write_block(stream, &block, end, 16_384, &mut out);
        out
    }
}

fn frames_of(mut rest: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let header = FrameHeader::read(rest[..HEADER_BYTES].try_into().unwrap());
        let to = HEADER_BYTES + header.length as usize;
        frames.push(Frame {
            kind: header.kind,
            flags: header.flags,
            stream: header.stream,
            payload: rest[HEADER_BYTES..to].to_vec(),
        });
        rest = &rest[to..];
    }
    frames
}

fn request(method: &str) -> Fields {
    let mut request = Fields::default();
    for (name, value) in [
        (":method", method),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/"),
    ] {
        request.push(name.as_bytes(), value.as_bytes(), Indexing::Kept);
    }
    request
}

/// An event in a few words.
fn described(event: &Event<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", ",");
    let ends = |end: bool| if end { " end" } else { "" };
    match event {
        Event::Interim { key, head } => format!("{key} interim {}", head.status),
        Event::Head { key, head, end } => {
            format!("{key} {} {}{}", head.status, text(&head.lines), ends(*end))
        }
        Event::Data { key, bytes, end } => format!("{key} data {}{}", text(bytes), ends(*end)),
        Event::Trailers { key } => format!("{key} trailers"),
        Event::Reset { key, code } => format!("{key} reset {code}"),
        Event::Broken { key, code, reason } => format!("{key} broken {code}: {reason}"),
        Event::HeadTooLong { key } => format!("{key} head too long"),
        Event::GoAway { code } => format!("goaway {code}"),
        Event::Unprocessed { key } => format!("{key} unprocessed"),
        Event::Settings => "Settings".to_owned(),
        Event::Window => "Window".to_owned(),
    }
}

fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(kind, flags, stream, payload, &mut out);
    out
}

fn data(stream: u32, end: bool, bytes: &[u8]) -> Vec<u8> {
    framed(
        kind::DATA,
        if end { flag::END_STREAM } else { 0 },
        stream,
        bytes,
    )
}

fn settings_frame(pairs: &[(u16, u32)]) -> Vec<u8> {
    let pair = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    let payload: Vec<u8> = pairs.iter().flat_map(pair).collect();
    framed(kind::SETTINGS, 0, 0, &payload)
}

fn window(stream: u32, bytes: u32) -> Vec<u8> {
    framed(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Frames that could come, among them some that must not.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let blocks = prop_oneof![
        Just(vec![0x88]),
        Just([&[0x88, 0x5f][..], &[10], b"text/plain"].concat()),
        Just(b"\x88\x0f\x0d\x0212".to_vec()),
        Just(b"\x08\x03100".to_vec()),
        Just(vec![0xbe]),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let payload = prop_oneof![
        4 => blocks,
        2 => proptest::collection::vec(any::<u8>(), 0..300),
        1 => Just(vec![0, 0, 0, 1]),
        1 => Just(vec![0; 8]),
        1 => Just(vec![0; 16_000]),
    ];
    let stream = prop_oneof![4 => 0_u32..10, 1 => any::<u32>()];
    let flags = prop_oneof![3 => Just(4_u8), 3 => Just(5_u8), 1 => Just(0_u8), 2 => any::<u8>()];
    let kind = prop_oneof![5 => Just(kind::HEADERS), 5 => Just(kind::DATA), 3 => 0_u8..12];
    proptest::collection::vec((kind, flags, stream, payload), 0..12).prop_map(|frames| {
        let mut bytes = settings_frame(&[(3, 100)]);
        for (kind, flags, stream, payload) in frames {
            bytes.extend(framed(kind, flags, stream, &payload));
        }
        bytes
    })
}

proptest! {
    #[test]
    fn frames_are_read_the_same_however_they_are_cut(
        bytes in frames(),
        cuts in proptest::collection::vec(0_usize..40, 0..200),
    ) {
        properties::client_reads(&bytes, &cuts);
    }

    #[test]
    fn any_bytes_are_read_the_same_however_they_are_cut(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        cuts in proptest::collection::vec(0_usize..20, 0..40),
    ) {
        properties::client_reads(&bytes, &cuts);
        properties::client_reads(&[&settings_frame(&[])[..], &bytes].concat(), &cuts);
    }

    #[test]
    fn any_header_block_is_read_or_refused(block in proptest::collection::vec(any::<u8>(), 0..200)) {
        properties::header_block(&block);
    }
}
