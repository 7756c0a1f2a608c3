//! Frames about streams and the connection themselves (RFC 9113, sections 6.4 to 6.9).

use super::{Client, Happened};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{self, FrameHeader, MAX_WINDOW_BYTES, flag, kind};

impl Client {
    pub(super) fn on_reset(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnectionError> {
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

    pub(super) fn on_settings(
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
        for (_, stream) in self.streams.all_mut() {
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

    pub(super) fn on_ping(
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

    pub(super) fn on_goaway(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnectionError> {
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

    pub(super) fn on_window_update(
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
