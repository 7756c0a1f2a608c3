//! What must hold for any bytes: asserted here once, for the property tests and the fuzz targets.

use crate::connection::{Client, Event};
use crate::fields::Fields;
use crate::head::Heads;
use crate::hpack::{Encoder, Indexing};
use crate::settings::Config;

const CONFIG: Config = Config {
    stream_window_bytes: 70_000,
    connection_window_bytes: 100_000,
    table_bytes: 4096,
    max_head_bytes: 4096,
};

/// What a client made of some bytes: its events, and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    events: Vec<String>,
    /// The body of a stream, piece by piece, is one event.
    bodies: Vec<(u32, Vec<u8>)>,
    error: Option<String>,
    out: Vec<u8>,
}

/// A client with four requests under way, of which one is HEAD and one has not been sent whole.
fn client(out: &mut Vec<u8>) -> Client {
    let mut client = Client::new(CONFIG, out);
    for (key, method) in [(10, "GET"), (11, "HEAD"), (12, "POST"), (13, "GET")] {
        let mut request = Fields::default();
        for (name, value) in [(":method", method), (":scheme", "http"), (":path", "/")] {
            request.push(name.as_bytes(), value.as_bytes(), Indexing::Kept);
        }
        client.open(key, &request, method != "POST", out);
    }
    client
}

fn receive_all<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Received {
    let mut received = Received::default();
    let mut client = client(&mut received.out);
    for mut piece in pieces {
        loop {
            match client.read(&mut piece, &mut received.out) {
                Ok(Some(Event::Data { key, bytes, end })) => {
                    let known = received.bodies.iter_mut().find(|body| body.0 == key);
                    match known {
                        Some(body) => body.1.extend_from_slice(bytes),
                        None => received.bodies.push((key, bytes.to_vec())),
                    }
                    if end {
                        received.events.push(format!("end of {key}"));
                    }
                }
                Ok(Some(event)) => {
                    if let Event::Broken { key, .. } = event {
                        // How much was handed on before depends on the cuts.
                        received.bodies.retain(|body| body.0 != key);
                    }
                    received.events.push(format!("{event:?}"));
                }
                Ok(None) => break,
                Err(error) => {
                    received.error = Some(error.to_string());
                    return received;
                }
            }
        }
        assert!(piece.is_empty(), "bytes were left");
    }
    received
}

/// A client reads any bytes the same way however they are cut, and holds no more than a frame, a
/// header block and what its streams need.
pub fn client_reads(bytes: &[u8], cuts: &[usize]) {
    let whole = receive_all(std::iter::once(bytes));
    let mut at = 0;
    let mut pieces = Vec::new();
    for cut in cuts {
        let to = (at + cut).min(bytes.len());
        pieces.push(&bytes[at..to]);
        at = to;
    }
    pieces.push(&bytes[at..]);
    let cut = receive_all(pieces.into_iter());
    assert_eq!(whole, cut);
}

/// No header block panics or becomes more than is allowed, and what was read can be written again.
pub fn header_block(block: &[u8]) {
    let mut heads = Heads::new(4096, 4096);
    for _ in 0..2 {
        let Ok(place) = heads.read(block) else { return };
        let head = heads.get(place).clone();
        assert!(head.lines.len() <= 4096 + 4);
        assert!(head.status == 0 || (100..1000).contains(&head.status));
        if head.fault.is_some() || head.too_long || head.status == 0 {
            continue;
        }
        let (mut encoder, mut again) = (Encoder::new(4096), Vec::new());
        let status = head.status.to_string();
        encoder.field(b":status", status.as_bytes(), Indexing::Kept, &mut again);
        for line in head
            .lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let at = line.windows(2).position(|pair| pair == b": ");
            let (name, value) = line.split_at(at.unwrap_or(line.len()));
            let value = value.get(2..).unwrap_or_default();
            encoder.field(name, value, Indexing::Passing, &mut again);
        }
        let mut other = Heads::new(4096, 4096);
        let place = other.read(&again);
        assert_eq!(place.ok().map(|place| other.get(place).clone()), Some(head));
    }
}
