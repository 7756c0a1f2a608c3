//! The streams of all connections of a thread, and the keys by which timers and workers name them.
//! It knows nothing of frames.

use std::mem::take;

use super::behaviour::Closing;
use super::machine::{HttpState, Machine, slot_of};

/// Set in the keys of streams; connections never get that far.
const STREAM: u32 = 1 << 31;

/// One stream between the head of its request and the end of its response.
#[derive(Debug, Default)]
pub struct Stream {
    pub http: HttpState,
    /// The connection's slot.
    pub connection: u32,
    /// As HTTP/2 numbers it; 0: there is none.
    pub id: u32,
    /// Distinguishes it from earlier streams of the same place.
    epoch: u32,
    /// Of the response's body, made and not sent.
    pub unsent: Vec<u8>,
    /// All of the body is made.
    pub whole: bool,
    /// It is among those that have something to send.
    pub queued: bool,
    /// The head of the response has gone out.
    pub responded: bool,
    /// The body ends before its time, in a reset.
    pub cut: bool,
    /// What becomes of the connection after the response.
    pub closing: Closing,
}

#[derive(Debug, Default)]
pub struct Streams {
    places: Vec<Stream>,
    free: Vec<u32>,
}

impl Streams {
    /// A new stream; its key.
    pub fn open(&mut self, connection: u32, id: u32) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Stream::default());
            (self.places.len() - 1) as u32
        });
        let stream = &mut self.places[place as usize];
        stream.connection = connection;
        stream.id = id;
        stream.http.is_stream = true;
        stream.http.place = connection;
        u64::from(stream.epoch) << 32 | u64::from(place | STREAM)
    }

    /// Whether a key is that of a stream.
    pub fn is_key(key: u64) -> bool {
        slot_of(key) & STREAM != 0
    }

    /// The stream that is still the one meant by a key.
    pub fn find(&mut self, key: u64) -> Option<&mut Stream> {
        let place = (slot_of(key) & !STREAM) as usize;
        let stream = self.places.get_mut(place)?;
        (stream.id != 0 && u64::from(stream.epoch) == key >> 32).then_some(stream)
    }

    /// The key of the stream in a place, the form in which the other side's frames name it.
    pub fn key(&self, place: u32) -> u64 {
        let epoch = self
            .places
            .get(place as usize)
            .map_or(0, |stream| stream.epoch);
        u64::from(epoch) << 32 | u64::from(place | STREAM)
    }

    pub fn place(key: u64) -> u32 {
        slot_of(key) & !STREAM
    }

    /// A stream is over.
    pub fn close(&mut self, key: u64, machine: &mut Machine) {
        let Some(stream) = self.find(key) else {
            return;
        };
        machine.closed(&mut stream.http);
        let mut unsent = take(&mut stream.unsent);
        unsent.clear();
        *stream = Stream {
            http: take(&mut stream.http),
            epoch: stream.epoch.wrapping_add(1),
            unsent,
            ..Stream::default()
        };
        self.free.push(Self::place(key));
    }
}
