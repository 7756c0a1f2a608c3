//! Requests and responses: the client opens streams, and what comes on them are responses.

use crate::connection::{Client, Happened};
use crate::error::{ConnectionError, ErrorCode};
use crate::fields::Fields;
use crate::frame::{self, MAX_STREAM};
use crate::stream::Stream;

impl Client {
    /// Whether another request may go out now. Until the server has said how many it takes, one may.
    pub fn may_open(&self) -> bool {
        let most = match self.settings {
            None => 1,
            Some(settings) => settings.max_streams.unwrap_or(u32::MAX),
        };
        !self.is_closing() && self.streams.len() < most as usize
    }

    /// No more requests may go out, ever: the server goes away, or the ids are used up.
    pub fn is_closing(&self) -> bool {
        self.going_away.is_some() || self.next_stream > MAX_STREAM
    }

    /// How many streams the server takes at once; `None`: it has not said, or any number.
    pub fn max_streams(&self) -> Option<u32> {
        self.settings.and_then(|settings| settings.max_streams)
    }

    /// Sends the head of a request; `end`: it has no body. The stream's id. Only while
    /// [`Self::may_open`].
    pub fn open(&mut self, key: u32, request: &Fields, end: bool, out: &mut Vec<u8>) -> u32 {
        let id = self.next_stream;
        self.next_stream += 2;
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
        self.write_head(id, request, end, out);
        id
    }

    /// Sends GOAWAY.
    pub fn leave(&self, code: ErrorCode, out: &mut Vec<u8>) {
        // A client knows of no streams of the server's: there is no push.
        frame::write_goaway(0, code, out);
    }

    /// A whole header block has come.
    pub(crate) fn on_block(
        &mut self,
        id: u32,
        end: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let place = self.read_block(block)?;
        let head = self.heads.get(place);
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
            self.end_receiving(id, out);
        }
        self.happened.push_back(match trailers {
            true => Happened::Trailers(key),
            false => Happened::Head(key, place, end),
        });
        Ok(())
    }
}
