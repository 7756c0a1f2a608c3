//! Bodies as they come: DATA frames, handed on piece by piece, and the windows that bound them
//! (RFC 9113, sections 5.2 and 6.1).

use super::frames::{Data, Piece};
use super::{Client, Happened};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{self, FrameHeader, flag};
use crate::stream::Stream;

impl Client {
    pub(super) fn begin_data(
        &mut self,
        header: FrameHeader,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let id = header.stream;
        let open = self.is_open(id)?;
        if !open && !self.streams.may_be_late(id) {
            return Err(ConnectionError::new(
                ErrorCode::STREAM_CLOSED,
                "DATA on a stream that was ended",
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

    /// What came is read at once, so the server may send as much again: the window is given back in portions.
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
    pub(super) fn read_data<'i>(
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
            self.end_receiving(id, out);
        } else if over {
            give_back_stream(id, stream, window, out);
        }
        (end || !bytes.is_empty()).then_some((key, bytes, end))
    }

    /// The response is complete. A request that did not go out whole by then is given up.
    pub(crate) fn end_receiving(&mut self, id: u32, out: &mut Vec<u8>) {
        match self.streams.get(id) {
            Some(stream) if stream.sent => drop(self.streams.remove(id)),
            _ => self.reset(id, ErrorCode::NO_ERROR, out),
        }
    }

    /// Ends a stream on which the server broke the protocol.
    pub(crate) fn break_stream(
        &mut self,
        id: u32,
        code: ErrorCode,
        reason: &'static str,
        out: &mut Vec<u8>,
    ) {
        if let Some(stream) = self.streams.remove_reset(id) {
            frame::write_reset(id, code, out);
            let broken = Happened::Broken(stream.key, code, reason);
            self.happened.push_back(broken);
        }
    }
}

/// As for the connection: what came is read.
fn give_back_stream(id: u32, stream: &mut Stream, window: u32, out: &mut Vec<u8>) {
    let used = i64::from(window) - stream.receive_window;
    if used >= i64::from(window.div_ceil(2)) {
        frame::write_window_update(id, used as u32, out);
        stream.receive_window = window.into();
    }
}
