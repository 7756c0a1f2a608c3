//! Frames of the server, read from any pieces, and what each of them means or breaks (RFC 9113,
//! sections 5 and 6).

use super::{Client, Event, Happened};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{
    self, DEFAULT_FRAME_BYTES, FrameHeader, HEADER_BYTES, MAX_WINDOW_BYTES, block_of_headers, flag,
    kind,
};

/// Frames in a row that bring nothing on (PING, SETTINGS, PRIORITY, unknown ones and the like): more
/// are a flood. An honest server sends a few between two responses.
pub(crate) const MOST_IDLE_FRAMES: u32 = 10_000;

/// What has come of a frame whose rest has not.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The beginning of a frame that is read whole.
    partial: Vec<u8>,
    data: Option<Data>,
    block: Option<Block>,
    /// The block that was last joined, for its memory.
    spare: Vec<u8>,
}

/// Of a DATA frame, which is handed on as it comes.
#[derive(Debug, Clone, Copy)]
struct Data {
    /// 0: nobody wants it.
    stream: u32,
    /// With the padding.
    left: usize,
    padding: usize,
    /// The length of the padding has not come.
    measures: bool,
    end: bool,
}

/// Of a body: whose it is, its bytes, and whether it ends with them.
type Piece<'a> = (u32, &'a [u8], bool);

/// A header block that CONTINUATION goes on with.
#[derive(Debug)]
struct Block {
    stream: u32,
    end: bool,
    bytes: Vec<u8>,
}

impl Client {
    /// Takes bytes off `input` up to the next event. `None`: they are used up. What is to be sent
    /// in return goes to `out`. After an error, which [`Client::leave`] tells the server, nothing
    /// more may be read.
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
    fn idles(&mut self, reason: &'static str) -> Result<(), ConnectionError> {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            return Err(ConnectionError::flood(reason));
        }
        Ok(())
    }

    /// Whether a stream is open. The error: it never was.
    fn is_open(&self, id: u32) -> Result<bool, ConnectionError> {
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

    fn begin_data(
        &mut self,
        header: FrameHeader,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let id = header.stream;
        let open = self.is_open(id)?;
        if !open && !self.streams.may_be_late(id) {
            return Err(ConnectionError::new(
                ErrorCode::STREAM_CLOSED,
                "DATA on a stream that the server had ended",
            ));
        }
        let (padded, end) = (header.has(flag::PADDED), header.has(flag::END_STREAM));
        if padded && header.length == 0 {
            return Err(ConnectionError::frame_size(
                "padded DATA without a length of the padding",
            ));
        }
        if !open {
            self.idles("a flood of DATA on streams that were reset")?;
        } else if header.length == 0 && !end {
            self.idles("a flood of empty DATA")?;
        } else {
            self.idle_frames = 0;
        }
        let length = i64::from(header.length);
        self.receive_window -= length;
        if self.receive_window < 0 {
            return Err(ConnectionError::flow_control(
                "more DATA than the connection's window",
            ));
        }
        let used_up = |left: i64| u64::from(left == 0 && length > 0 && !end);
        self.tally.receive_window_used_up += used_up(self.receive_window);
        self.give_back(header.length, out);
        let mut wanted = false;
        if let Some(stream) = self.streams.get_mut(id) {
            stream.receive_window -= length;
            let left = stream.receive_window;
            if !stream.has_head {
                let reason = "DATA before the response's head";
                self.break_stream(id, ErrorCode::PROTOCOL_ERROR, reason, out);
            } else if left < 0 {
                let reason = "more DATA than the stream's window";
                self.break_stream(id, ErrorCode::FLOW_CONTROL_ERROR, reason, out);
            } else {
                self.tally.receive_window_used_up += used_up(left);
                wanted = true;
            }
        }
        self.reading.data = Some(Data {
            stream: if wanted { id } else { 0 },
            left: header.length as usize,
            padding: 0,
            measures: padded,
            end,
        });
        Ok(())
    }

    /// What came is read at once, so the server may send as much again: it is told in portions.
    fn give_back(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.consumed += bytes;
        let window = self.config.connection_window_bytes;
        if self.consumed >= window.max(frame::DEFAULT_WINDOW_BYTES) / 2 {
            frame::write_window_update(0, self.consumed, out);
            self.receive_window += i64::from(self.consumed);
            self.consumed = 0;
        }
    }

    /// Hands on what has come of a DATA frame.
    fn read_data<'i>(
        &mut self,
        mut data: Data,
        input: &mut &'i [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Piece<'i>>, ConnectionError> {
        if data.measures
            && let Some((length, rest)) = input.split_first()
        {
            *input = rest;
            data.measures = false;
            data.left -= 1;
            data.padding = usize::from(*length);
            if data.padding > data.left {
                return Err(ConnectionError::protocol(
                    "DATA with more padding than payload",
                ));
            }
        }
        let body = data.left - data.padding;
        let (bytes, rest) = input.split_at(body.min(input.len()));
        // Padding comes behind the last byte of the body.
        let skipped = match bytes.len() == body {
            true => data.padding.min(rest.len()),
            false => 0,
        };
        *input = &rest[skipped..];
        data.left -= bytes.len() + skipped;
        data.padding -= skipped;
        let over = data.left == 0;
        let kept = self.take_body(data.stream, bytes, over, over && data.end, out);
        if kept.is_none() && data.stream != 0 && self.streams.get(data.stream).is_none() {
            data.stream = 0;
        }
        self.reading.data = (!over).then_some(data);
        Ok(kept)
    }

    /// Bytes of a response; `over`: a frame ends with them, `end`: the stream does.
    fn take_body<'i>(
        &mut self,
        id: u32,
        bytes: &'i [u8],
        over: bool,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Option<Piece<'i>> {
        let window = self.config.stream_window_bytes;
        let stream = self.streams.get_mut(id)?;
        let key = stream.key;
        if let Some(left) = &mut stream.body_left {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) if !end || rest == 0 => *left = rest,
                _ => {
                    let reason = "the body is not as long as content-length says";
                    self.break_stream(id, ErrorCode::PROTOCOL_ERROR, reason, out);
                    return None;
                }
            }
        }
        if end {
            self.finish(id, out);
        } else if over {
            let used = i64::from(window) - stream.receive_window;
            if used >= i64::from(window.div_ceil(2)) {
                frame::write_window_update(id, used as u32, out);
                stream.receive_window = window.into();
            }
        }
        (end || !bytes.is_empty()).then_some((key, bytes, end))
    }

    /// The response is complete. A request that is not sent whole by then is given up.
    fn finish(&mut self, id: u32, out: &mut Vec<u8>) {
        match self.streams.get(id) {
            Some(stream) if !stream.sent => self.reset(id, ErrorCode::NO_ERROR, out),
            _ => drop(self.streams.remove(id)),
        }
    }

    /// Ends a stream on which the server broke the protocol.
    fn break_stream(&mut self, id: u32, code: ErrorCode, reason: &'static str, out: &mut Vec<u8>) {
        if let Some(stream) = self.streams.remove_reset(id) {
            frame::write_reset(id, code, out);
            let broken = Happened::Broken(stream.key, code, reason);
            self.happened.push_back(broken);
        }
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
        let most = self.config.most_head_bytes.max(DEFAULT_FRAME_BYTES) as usize;
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

    fn on_block(
        &mut self,
        id: u32,
        end: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let place = self
            .heads
            .read(block)
            .map_err(|bad| ConnectionError::compression(bad.0))?;
        let head = self.heads.get(place);
        self.tally.header_block_bytes_received += block.len() as u64;
        self.tally.header_list_bytes_received += head.list_bytes as u64;
        let Some(stream) = self.streams.get_mut(id) else {
            if self.streams.may_be_late(id) {
                return self.idles("a flood of HEADERS on streams that were reset");
            }
            return Err(ConnectionError::new(
                ErrorCode::STREAM_CLOSED,
                "HEADERS on a stream that the server had ended",
            ));
        };
        let key = stream.key;
        if head.too_long {
            self.reset(id, ErrorCode::ENHANCE_YOUR_CALM, out);
            self.happened.push_back(Happened::HeadTooLong(key));
            return Ok(());
        }
        let interim = (100..200).contains(&head.status);
        let fault = match (head.fault, stream.has_head) {
            (Some(fault), _) => Some(fault),
            (None, true) if !end => Some("a second head, or trailers that do not end the stream"),
            (None, true) if head.status != 0 => Some("trailers with :status"),
            (None, true) => None,
            (None, false) if head.status == 0 => Some("a response without :status"),
            (None, false) if head.status == 101 => Some("101, which HTTP/2 does not have"),
            (None, false) if interim && end => Some("an interim response that ends the stream"),
            (None, false) => None,
        };
        if let Some(fault) = fault {
            self.break_stream(id, ErrorCode::PROTOCOL_ERROR, fault, out);
            return Ok(());
        }
        if interim {
            self.happened.push_back(Happened::Interim(key, place));
            return self.idles("a flood of interim responses");
        }
        self.idle_frames = 0;
        let trailers = stream.has_head;
        if !trailers {
            stream.has_head = true;
            let bodiless = stream.head_request || head.status == 204 || head.status == 304;
            stream.body_left = match bodiless {
                true => Some(0),
                false => head.content_length,
            };
        }
        if end && stream.body_left.is_some_and(|left| left > 0) {
            let reason = "the body is not as long as content-length says";
            self.break_stream(id, ErrorCode::PROTOCOL_ERROR, reason, out);
            return Ok(());
        }
        if end {
            self.finish(id, out);
        }
        self.happened.push_back(match trailers {
            true => Happened::Trailers(key),
            false => Happened::Head(key, place, end),
        });
        Ok(())
    }

    fn on_reset(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        let Ok(code) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(ConnectionError::frame_size(
                "RST_STREAM that is not 4 bytes",
            ));
        };
        self.is_open(header.stream)?;
        if let Some(stream) = self.streams.remove(header.stream) {
            let reset = Happened::Reset(stream.key, ErrorCode(code));
            self.happened.push_back(reset);
        }
        self.idles("a flood of RST_STREAM")
    }

    fn on_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("SETTINGS on a stream"));
        }
        if header.has(flag::ACK) {
            if !payload.is_empty() {
                return Err(ConnectionError::frame_size(
                    "an acknowledgement of SETTINGS with a payload",
                ));
            }
            return self.idles("a flood of SETTINGS");
        }
        let before = self.settings.unwrap_or_default();
        let mut settings = before;
        settings.apply(payload)?;
        let change = i64::from(settings.window_bytes) - i64::from(before.window_bytes);
        for stream in self.streams.all_mut() {
            stream.send_window += change;
            if stream.send_window > MAX_WINDOW_BYTES.into() {
                return Err(ConnectionError::flow_control(
                    "SETTINGS that make a window larger than 2^31-1",
                ));
            }
        }
        self.encoder.allow(settings.table_bytes);
        self.settings = Some(settings);
        self.tally.settings += 1;
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], out);
        self.happened.push_back(Happened::Settings);
        self.idles("a flood of SETTINGS")
    }

    fn on_ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(ConnectionError::frame_size("PING that is not 8 bytes"));
        }
        self.tally.pings += 1;
        if !header.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, payload, out);
        }
        self.idles("a flood of PING")
    }

    fn on_goaway(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        const SHORT: ConnectionError = ConnectionError::frame_size("GOAWAY shorter than 8 bytes");
        if header.stream != 0 {
            return Err(ConnectionError::protocol("GOAWAY on a stream"));
        }
        let (last, rest) = payload.split_first_chunk().ok_or(SHORT)?;
        let code = rest.first_chunk().ok_or(SHORT)?;
        let last = u32::from_be_bytes(*last) & frame::MAX_STREAM;
        let code = ErrorCode(u32::from_be_bytes(*code));
        if self.going_away.is_some_and(|before| last > before) {
            return Err(ConnectionError::protocol(
                "GOAWAY with a higher stream than the one before",
            ));
        }
        self.going_away = Some(last);
        self.happened.push_back(Happened::GoAway(code));
        for stream in self.streams.take_above(last) {
            let unprocessed = Happened::Unprocessed(stream.key);
            self.happened.push_back(unprocessed);
        }
        self.idles("a flood of GOAWAY")
    }

    fn on_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let Ok(bytes) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(ConnectionError::frame_size(
                "WINDOW_UPDATE that is not 4 bytes",
            ));
        };
        let (id, bytes) = (header.stream, bytes & MAX_WINDOW_BYTES);
        let most = i64::from(MAX_WINDOW_BYTES);
        if id == 0 {
            self.send_window += i64::from(bytes);
            if bytes == 0 {
                return Err(ConnectionError::protocol("WINDOW_UPDATE by 0"));
            }
            if self.send_window > most {
                return Err(ConnectionError::flow_control(
                    "a window of the connection above 2^31-1",
                ));
            }
            self.happened.push_back(Happened::Window);
            return self.idles("a flood of WINDOW_UPDATE");
        }
        self.is_open(id)?;
        if let Some(stream) = self.streams.get_mut(id) {
            stream.send_window += i64::from(bytes);
            if bytes == 0 {
                self.break_stream(id, ErrorCode::PROTOCOL_ERROR, "WINDOW_UPDATE by 0", out);
            } else if stream.send_window > most {
                let code = ErrorCode::FLOW_CONTROL_ERROR;
                self.break_stream(id, code, "a window of a stream above 2^31-1", out);
            } else {
                self.happened.push_back(Happened::Window);
            }
        }
        self.idles("a flood of WINDOW_UPDATE")
    }
}

/// Moves bytes from the input until there are so many.
fn take(bytes: usize, input: &mut &[u8], to: &mut Vec<u8>) {
    let missing = bytes.saturating_sub(to.len());
    let (taken, rest) = input.split_at(missing.min(input.len()));
    to.extend_from_slice(taken);
    *input = rest;
}
