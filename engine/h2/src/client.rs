//! A client's side of a connection: requests in, frames out, and what the server's frames mean. Bytes
//! come in any pieces. It holds as much memory as its streams and the largest frame need, and no
//! server can make it hold more.

mod read;

#[cfg(test)]
pub(crate) use read::MOST_IDLE_FRAMES;

use std::collections::VecDeque;

use crate::error::ErrorCode;
use crate::frame::{self, DEFAULT_WINDOW_BYTES, MAX_STREAM, PREFACE, flag, kind};
use crate::head::{Head, HeadPlace, Heads};
use crate::hpack::Encoder;
use crate::request::Request;
use crate::settings::{Settings, write_ours};
use crate::stream::{Stream, Streams};
use read::Reading;

/// Requests whose blocks are kept, by their number.
const KEPT_BLOCKS: u32 = 256;

/// What a connection is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What the server may send on a stream before it is given more, 1 to 2^31-1.
    pub stream_window_bytes: u32,
    /// The same for all streams together; at least 65535, which no connection is without.
    pub connection_window_bytes: u32,
    /// Of the dynamic table, either way.
    pub table_bytes: u32,
    /// The longest list of header fields, as RFC 9113 counts it (section 6.5.2).
    pub most_head_bytes: u32,
}

/// What a server has done. `key`: whose stream it is.
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
    /// What follows the body; the response is complete.
    Trailers {
        key: u32,
    },
    /// RST_STREAM.
    Reset {
        key: u32,
        code: ErrorCode,
    },
    /// The server broke the protocol on this stream, which we reset.
    Broken {
        key: u32,
        code: ErrorCode,
        reason: &'static str,
    },
    /// The response's header list is longer than is allowed; the stream was reset.
    HeadTooLong {
        key: u32,
    },
    /// GOAWAY: no more streams may be opened. Those that the server has not looked at follow, each
    /// as [`Event::Unprocessed`].
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
    /// How often the server had used up what it was allowed to send.
    pub receive_window_used_up: u64,
}

/// A block that is sent again while the tables stay.
#[derive(Debug, Default)]
struct KeptBlock {
    /// `None`: there is none.
    version: Option<u64>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Happened {
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
    config: Config,
    /// What the server allows; `None` until it has said it.
    settings: Option<Settings>,
    encoder: Encoder,
    heads: Heads,
    streams: Streams,
    next_stream: u32,
    /// What we may send on all streams together.
    send_window: i64,
    receive_window: i64,
    consumed: u32,
    /// GOAWAY came, with the last stream that the server looks at.
    going_away: Option<u32>,
    reading: Reading,
    happened: VecDeque<Happened>,
    kept: Vec<KeptBlock>,
    block: Vec<u8>,
    /// Frames since the last that brought anything on.
    idle_frames: u32,
    tally: Tally,
}

impl Client {
    /// Opens a connection: what is to be sent first goes to `out`.
    pub fn new(config: Config, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(PREFACE);
        write_ours(
            config.stream_window_bytes,
            config.table_bytes,
            config.most_head_bytes,
            out,
        );
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
            heads: Heads::new(config.table_bytes, config.most_head_bytes),
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

    /// Whether another request may go out now. Until the server has said how many it takes, one may.
    pub fn may_open(&self) -> bool {
        let most = match self.settings {
            None => 1,
            Some(settings) => settings.most_streams.unwrap_or(u32::MAX),
        };
        !self.is_closing() && self.streams.len() < most as usize
    }

    /// No more requests may go out, ever: the server goes away, or the ids are used up.
    pub fn is_closing(&self) -> bool {
        self.going_away.is_some() || self.next_stream > MAX_STREAM
    }

    /// How many streams the server takes at once; `None`: it has not said, or any number.
    pub fn most_streams(&self) -> Option<u32> {
        self.settings.and_then(|settings| settings.most_streams)
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

    /// Sends the head of a request; `end`: it has no body. The stream's id. Only while
    /// [`Self::may_open`].
    pub fn open(&mut self, key: u32, request: &Request, end: bool, out: &mut Vec<u8>) -> u32 {
        let id = self.next_stream;
        self.next_stream += 2;
        self.idle_frames = 0;
        let allowed = self.settings.unwrap_or_default();
        let stream = Stream {
            key,
            send_window: allowed.window_bytes.into(),
            receive_window: self.config.stream_window_bytes.into(),
            body_left: None,
            head_request: request.is_head(),
            has_head: false,
            sent: end,
        };
        self.streams.insert(id, stream);
        self.tally.streams_opened += 1;
        self.tally.header_list_bytes_sent += request.list_bytes() as u64;
        let most_bytes = allowed.frame_bytes as usize;
        let number = request.number().filter(|number| *number < KEPT_BLOCKS);
        let Some(number) = number else {
            self.block.clear();
            encode(&mut self.encoder, request, &mut self.block);
            self.tally.header_block_bytes_sent += self.block.len() as u64;
            frame::write_block(id, &self.block, end, most_bytes, out);
            return id;
        };
        let number = number as usize;
        if self.kept.len() <= number {
            self.kept.resize_with(number + 1, KeptBlock::default);
        }
        let kept = &mut self.kept[number];
        let version = self.encoder.version();
        if version.is_none() || kept.version != version {
            kept.bytes.clear();
            encode(&mut self.encoder, request, &mut kept.bytes);
            // The block that fills the table is not the one that comes after it.
            kept.version = version.filter(|_| version == self.encoder.version());
        }
        self.tally.header_block_bytes_sent += kept.bytes.len() as u64;
        frame::write_block(id, &kept.bytes, end, most_bytes, out);
        id
    }

    /// Sends of a request's body what the windows allow, and says how much that was. `end`: the
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
                return taken;
            }
        }
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

    /// Says farewell.
    pub fn leave(&self, code: ErrorCode, out: &mut Vec<u8>) {
        // A client is told of no streams of the server's: there is no push.
        frame::write_goaway(0, code, out);
    }
}

fn encode(encoder: &mut Encoder, request: &Request, out: &mut Vec<u8>) {
    encoder.begin(out);
    for (name, value, indexing) in request.fields() {
        encoder.field(name, value, indexing, out);
    }
}
