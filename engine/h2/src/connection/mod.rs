//! A client's side of a connection: bytes come in any pieces and mean events, and what is sent becomes
//! frames. It holds as much memory as its streams and the largest frame need, and no server can make
//! it hold more.

mod control;
mod data;
mod frames;

#[cfg(test)]
pub(crate) use frames::MAX_IDLE_FRAMES;

use std::collections::VecDeque;

use crate::error::{ConnectionError, ErrorCode};
use crate::fields::Fields;
use crate::frame::{self, DEFAULT_WINDOW_BYTES, PREFACE, flag, kind};
use crate::head::{Head, HeadPlace, Heads};
use crate::hpack::Encoder;
use crate::settings::{self, Config, Settings};
use crate::stream::Streams;
use frames::Reading;

/// Requests whose blocks are kept, by their number.
const KEPT_BLOCKS: u32 = 256;

/// What the server has done. `key`: whose stream it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A response before the response (1xx).
    Interim {
        key: u32,
        head: &'a Head,
    },
    /// The head of the response; `end`: that is all of it.
    Head {
        key: u32,
        head: &'a Head,
        end: bool,
    },
    Data {
        key: u32,
        bytes: &'a [u8],
        end: bool,
    },
    /// What follows the body; the message is complete.
    Trailers {
        key: u32,
    },
    /// RST_STREAM.
    Reset {
        key: u32,
        code: ErrorCode,
    },
    /// The other side broke the protocol on this stream, which we reset.
    Broken {
        key: u32,
        code: ErrorCode,
        reason: &'static str,
    },
    /// The header list is longer than is allowed; the stream was reset.
    HeadTooLong {
        key: u32,
    },
    /// GOAWAY: no more streams may be opened. Those that the server has not looked at follow, each as
    /// [`Event::Unprocessed`].
    GoAway {
        code: ErrorCode,
    },
    Unprocessed {
        key: u32,
    },
    /// The first SETTINGS have come, or others.
    Settings,
    /// More may be sent.
    Window,
}

/// What happened on a connection, for the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub streams_opened: u64,
    pub pings: u64,
    pub settings: u64,
    /// Header lists as RFC 9113 counts them (section 6.5.2), and the blocks they became.
    pub header_list_bytes_sent: u64,
    pub header_block_bytes_sent: u64,
    pub header_list_bytes_received: u64,
    pub header_block_bytes_received: u64,
    /// Fields of the lists received: each counts 32 bytes beside its name and value.
    pub header_fields_received: u64,
    /// How often the server had used up what it was allowed to send.
    pub receive_window_used_up: u64,
}

/// A block that is sent again while the tables stay.
#[derive(Debug, Default)]
pub(crate) struct KeptBlock {
    /// `None`: there is none.
    version: Option<u64>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Happened {
    Interim(u32, HeadPlace),
    Head(u32, HeadPlace, bool),
    Trailers(u32),
    Reset(u32, ErrorCode),
    Broken(u32, ErrorCode, &'static str),
    HeadTooLong(u32),
    GoAway(ErrorCode),
    Unprocessed(u32),
    Settings,
    Window,
}

/// The client's side of one connection.
#[derive(Debug)]
pub struct Client {
    pub(crate) config: Config,
    /// What the server allows; `None` until it has said it.
    pub(crate) settings: Option<Settings>,
    pub(crate) encoder: Encoder,
    pub(crate) heads: Heads,
    pub(crate) streams: Streams,
    /// The first id that no stream has had.
    pub(crate) next_stream: u32,
    /// What we may send on all streams together.
    send_window: i64,
    receive_window: i64,
    consumed: u32,
    /// GOAWAY came, with the last stream that the server looks at.
    pub(crate) going_away: Option<u32>,
    reading: Reading,
    pub(crate) happened: VecDeque<Happened>,
    kept: Vec<KeptBlock>,
    block: Vec<u8>,
    /// Frames since the last that brought anything on.
    pub(crate) idle_frames: u32,
    pub(crate) tally: Tally,
}

impl Client {
    /// Opens a connection: what is to be sent first goes to `out`.
    pub fn new(config: Config, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(PREFACE);
        frame::write(kind::SETTINGS, 0, 0, &settings::of_client(&config), out);
        let more = config
            .connection_window_bytes
            .saturating_sub(DEFAULT_WINDOW_BYTES);
        if more > 0 {
            frame::write_window_update(0, more, out);
        }
        Self {
            config,
            settings: None,
            encoder: Encoder::new(config.table_bytes),
            heads: Heads::new(config.table_bytes, config.max_head_bytes),
            streams: Streams::default(),
            next_stream: 1,
            send_window: DEFAULT_WINDOW_BYTES.into(),
            receive_window: (DEFAULT_WINDOW_BYTES + more).into(),
            consumed: 0,
            going_away: None,
            reading: Reading::default(),
            happened: VecDeque::new(),
            kept: Vec::new(),
            block: Vec::new(),
            idle_frames: 0,
            tally: Tally::default(),
        }
    }

    pub fn has_settings(&self) -> bool {
        self.settings.is_some()
    }

    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Reads a header block that has come whole, and counts it.
    pub(crate) fn read_block(&mut self, block: &[u8]) -> Result<HeadPlace, ConnectionError> {
        let place = self
            .heads
            .read(block)
            .map_err(|bad| ConnectionError::compression(bad.0))?;
        let head = self.heads.get(place);
        self.tally.header_block_bytes_received += block.len() as u64;
        self.tally.header_list_bytes_received += head.list_bytes as u64;
        self.tally.header_fields_received += u64::from(head.all_fields());
        Ok(place)
    }

    /// Sends a head. The block of fields that have a number is kept while the tables stay.
    pub(crate) fn write_head(&mut self, id: u32, fields: &Fields, end: bool, out: &mut Vec<u8>) {
        self.idle_frames = 0;
        self.tally.header_list_bytes_sent += fields.list_bytes() as u64;
        let max_bytes = self.settings.unwrap_or_default().frame_bytes as usize;
        let number = fields.number().filter(|number| *number < KEPT_BLOCKS);
        let Some(number) = number else {
            self.block.clear();
            encode(&mut self.encoder, fields, &mut self.block);
            self.tally.header_block_bytes_sent += self.block.len() as u64;
            return frame::write_block(id, &self.block, end, max_bytes, out);
        };
        let number = number as usize;
        if self.kept.len() <= number {
            self.kept.resize_with(number + 1, KeptBlock::default);
        }
        let kept = &mut self.kept[number];
        let version = self.encoder.version();
        if version.is_none() || kept.version != version {
            kept.bytes.clear();
            encode(&mut self.encoder, fields, &mut kept.bytes);
            // The block that fills the table is not the one that comes after it.
            kept.version = version.filter(|_| version == self.encoder.version());
        }
        self.tally.header_block_bytes_sent += kept.bytes.len() as u64;
        frame::write_block(id, &kept.bytes, end, max_bytes, out);
    }

    /// Sends of a body what the windows allow, and says how much that was. `end`: the
    /// body ends with these bytes. 0 for bytes that wait for [`Event::Window`].
    pub fn send(&mut self, id: u32, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let most = self.settings.unwrap_or_default().frame_bytes as usize;
        let Some(stream) = self.streams.get_mut(id).filter(|stream| !stream.sent) else {
            return 0;
        };
        let window = stream.send_window.min(self.send_window).max(0);
        let taken = bytes
            .len()
            .min(usize::try_from(window).unwrap_or(usize::MAX));
        let ends = end && taken == bytes.len();
        let mut rest = &bytes[..taken];
        if taken == 0 && !ends {
            return 0;
        }
        self.idle_frames = 0;
        stream.send_window -= taken as i64;
        self.send_window -= taken as i64;
        stream.sent |= ends;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(most));
            rest = behind;
            let last = ends && rest.is_empty();
            let flags = if last { flag::END_STREAM } else { 0 };
            frame::write(kind::DATA, flags, id, piece, out);
            if rest.is_empty() {
                break;
            }
        }
        taken
    }

    /// What of a body may be sent now.
    pub fn window_bytes(&self, id: u32) -> usize {
        let window = self
            .streams
            .get(id)
            .map_or(0, |stream| stream.send_window.min(self.send_window));
        usize::try_from(window).unwrap_or(0)
    }

    /// Whether bytes of this stream wait for the server to allow more.
    pub fn is_blocked(&self, id: u32) -> bool {
        let stream = self.streams.get(id);
        stream.is_some_and(|stream| stream.send_window.min(self.send_window) <= 0)
    }

    /// Ends a stream of which nothing more is wanted.
    pub fn reset(&mut self, id: u32, code: ErrorCode, out: &mut Vec<u8>) {
        if self.streams.remove_reset(id).is_some() {
            frame::write_reset(id, code, out);
        }
    }
}

fn encode(encoder: &mut Encoder, request: &Fields, out: &mut Vec<u8>) {
    encoder.begin(out);
    for (name, value, indexing) in request.fields() {
        encoder.field(name, value, indexing, out);
    }
}
