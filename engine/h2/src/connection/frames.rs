//! Frames, cut from any pieces of bytes, and header blocks, joined from their frames (RFC 9113,
//! sections 4 and 6.10).

use super::{Client, Event, Happened};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{DEFAULT_FRAME_BYTES, FrameHeader, HEADER_BYTES, block_of_headers, flag, kind};

/// Frames in a row that bring nothing on (PING, SETTINGS, PRIORITY, unknown ones and the like): more
/// are a flood. An honest server sends a few between two responses.
pub const MAX_IDLE_FRAMES: u32 = 10_000;

/// What has come of a frame whose rest has not.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The beginning of a frame that is read whole.
    partial: Vec<u8>,
    pub(super) data: Option<Data>,
    block: Option<Block>,
    /// The block that was last joined, for its memory.
    spare: Vec<u8>,
}

/// Of a DATA frame, which is handed on as it comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    /// 0: nobody wants it.
    pub stream: u32,
    /// With the padding.
    pub left: usize,
    pub padding: usize,
    /// The length of the padding has not come.
    pub measures: bool,
    pub end: bool,
}

/// Of a body: whose it is, its bytes, and whether it ends with them.
pub(super) type Piece<'a> = (u32, &'a [u8], bool);

/// A header block that CONTINUATION goes on with.
#[derive(Debug)]
struct Block {
    stream: u32,
    end: bool,
    bytes: Vec<u8>,
}

impl Client {
    /// Takes bytes off `input` up to the next event. `None`: they are used up. What is to be sent
    /// in return goes to `out`. After an error, which `leave` tells the other side, nothing more may
    /// be read.
    pub fn read<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'s>>, ConnectionError> {
        loop {
            if let Some(happened) = self.happened.pop_front() {
                return Ok(Some(self.event(happened)));
            }
            if let Some(data) = self.reading.data {
                if input.is_empty() && data.left > 0 {
                    return Ok(None);
                }
                if let Some((key, bytes, end)) = self.read_data(data, input, out)? {
                    return Ok(Some(Event::Data { key, bytes, end }));
                }
            } else if !self.read_frame(input, out)? {
                return Ok(None);
            }
        }
    }

    fn event(&self, happened: Happened) -> Event<'_> {
        match happened {
            Happened::Interim(key, place) => Event::Interim {
                key,
                head: self.heads.get(place),
            },
            Happened::Head(key, place, end) => Event::Head {
                key,
                head: self.heads.get(place),
                end,
            },
            Happened::Trailers(key) => Event::Trailers { key },
            Happened::Reset(key, code) => Event::Reset { key, code },
            Happened::Broken(key, code, reason) => Event::Broken { key, code, reason },
            Happened::HeadTooLong(key) => Event::HeadTooLong { key },
            Happened::GoAway(code) => Event::GoAway { code },
            Happened::Unprocessed(key) => Event::Unprocessed { key },
            Happened::Settings => Event::Settings,
            Happened::Window => Event::Window,
        }
    }

    /// Reads one frame; false when it is not there whole.
    fn read_frame(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, ConnectionError> {
        if self.reading.partial.is_empty()
            && let Some(bytes) = input.first_chunk()
        {
            let header = self.checked(bytes)?;
            if header.kind == kind::DATA {
                *input = &input[HEADER_BYTES..];
                self.begin_data(header, out)?;
                return Ok(true);
            }
            let to = HEADER_BYTES + header.length as usize;
            if let Some(frame) = input.get(..to) {
                *input = &input[to..];
                self.handle(header, &frame[HEADER_BYTES..], out)?;
                return Ok(true);
            }
        }
        let mut partial = std::mem::take(&mut self.reading.partial);
        take(HEADER_BYTES, input, &mut partial);
        let Some(bytes) = partial.first_chunk() else {
            self.reading.partial = partial;
            return Ok(false);
        };
        let header = self.checked(bytes)?;
        if header.kind == kind::DATA {
            partial.clear();
            self.reading.partial = partial;
            self.begin_data(header, out)?;
            return Ok(true);
        }
        let to = HEADER_BYTES + header.length as usize;
        take(to, input, &mut partial);
        let whole = partial.len() == to;
        if whole {
            self.handle(header, &partial[HEADER_BYTES..], out)?;
            partial.clear();
        }
        self.reading.partial = partial;
        Ok(whole)
    }

    /// A frame's header, when a frame like that may come now.
    fn checked(&self, bytes: &[u8; HEADER_BYTES]) -> Result<FrameHeader, ConnectionError> {
        if self.settings.is_none() && bytes.starts_with(b"HTTP/1") {
            return Err(ConnectionError::protocol(
                "the server speaks HTTP/1.1 on this port, expected HTTP/2",
            ));
        }
        let header = FrameHeader::read(bytes);
        if self.settings.is_none() && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
        }
        if header.length > DEFAULT_FRAME_BYTES {
            return Err(ConnectionError::frame_size(
                "a frame longer than SETTINGS_MAX_FRAME_SIZE",
            ));
        }
        let continues = header.kind == kind::CONTINUATION;
        match &self.reading.block {
            Some(block) if !continues || header.stream != block.stream => Err(
                ConnectionError::protocol("another frame within a header block"),
            ),
            None if continues => Err(ConnectionError::protocol(
                "CONTINUATION without a header block before it",
            )),
            _ => Ok(header),
        }
    }

    /// A frame that brings nothing on.
    pub(crate) fn idles(&mut self, reason: &'static str) -> Result<(), ConnectionError> {
        self.idle_frames += 1;
        if self.idle_frames > MAX_IDLE_FRAMES {
            return Err(ConnectionError::flood(reason));
        }
        Ok(())
    }

    /// Whether a stream is open. The error: it never was.
    pub(super) fn is_open(&self, id: u32) -> Result<bool, ConnectionError> {
        if self.streams.get(id).is_some() {
            return Ok(true);
        }
        if id.is_multiple_of(2) || id >= self.next_stream {
            return Err(ConnectionError::protocol(
                "a frame on a stream that was never opened",
            ));
        }
        Ok(false)
    }

    fn handle(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        match header.kind {
            kind::HEADERS => self.on_headers(header, payload, out),
            kind::CONTINUATION => self.on_continuation(header, payload, out),
            kind::RST_STREAM => self.on_reset(header, payload),
            kind::SETTINGS => self.on_settings(header, payload, out),
            kind::PING => self.on_ping(header, payload, out),
            kind::GOAWAY => self.on_goaway(header, payload),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload, out),
            kind::PRIORITY => {
                if header.stream == 0 {
                    return Err(ConnectionError::protocol("PRIORITY of the connection"));
                }
                if payload.len() != 5 {
                    let code = ErrorCode::FRAME_SIZE_ERROR;
                    self.break_stream(header.stream, code, "PRIORITY that is not 5 bytes", out);
                }
                self.idles("a flood of PRIORITY")
            }
            kind::PUSH_PROMISE => Err(ConnectionError::protocol(
                "PUSH_PROMISE, which our SETTINGS do not allow",
            )),
            _ => self.idles("a flood of unknown frames"),
        }
    }

    fn on_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let (stream, end) = (header.stream, header.has(flag::END_STREAM));
        self.is_open(stream)?;
        let block = block_of_headers(&header, payload)?;
        if header.has(flag::END_HEADERS) {
            return self.on_block(stream, end, block, out);
        }
        let mut bytes = std::mem::take(&mut self.reading.spare);
        bytes.clear();
        bytes.extend_from_slice(block);
        self.reading.block = Some(Block { stream, end, bytes });
        Ok(())
    }

    fn on_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let Some(mut block) = self.reading.block.take() else {
            return Ok(());
        };
        block.bytes.extend_from_slice(payload);
        // It would have to be decoded to keep the tables: it is given up with the connection.
        let most = self.config.max_head_bytes.max(DEFAULT_FRAME_BYTES) as usize;
        if block.bytes.len() > 2 * most {
            return Err(ConnectionError::flood("a header block that does not end"));
        }
        if header.has(flag::END_HEADERS) {
            let result = self.on_block(block.stream, block.end, &block.bytes, out);
            self.reading.spare = block.bytes;
            return result;
        }
        self.reading.block = Some(block);
        self.idles("a flood of CONTINUATION")
    }
}

/// Moves bytes from the input until there are so many.
fn take(bytes: usize, input: &mut &[u8], to: &mut Vec<u8>) {
    let missing = bytes.saturating_sub(to.len());
    let (taken, rest) = input.split_at(missing.min(input.len()));
    to.extend_from_slice(taken);
    *input = rest;
}
