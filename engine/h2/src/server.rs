//! A server's side of a connection, as much of it as the reference server needs: it takes streams,
//! and what comes on them are requests. It pushes nothing.

use crate::connection::{Connection, Happened, Role, first_window};
use crate::error::{ConnectionError, ErrorCode};
use crate::fields::Fields;
use crate::frame;
use crate::head::{Heads, Reads};
use crate::settings::{self, Config};
use crate::stream::Stream;

#[derive(Debug)]
pub struct Responder {
    /// Streams that it takes at once.
    max_streams: u32,
    /// It has said GOAWAY: the last stream that it answers.
    leaves_after: Option<u32>,
}

/// The server's side of one connection.
pub type Server = Connection<Responder>;

impl Server {
    /// Begins a connection: what is to be sent first goes to `out`. The client's preface is read as
    /// the first of its bytes.
    pub fn new(config: Config, max_streams: u32, out: &mut Vec<u8>) -> Self {
        let heads = Heads::new(config.table_bytes, config.max_head_bytes, Reads::Requests);
        let role = Responder {
            max_streams,
            leaves_after: None,
        };
        let ours = settings::of_server(&config, max_streams);
        Self::begin(config, role, heads, &ours, out)
    }

    /// Gives a new stream the key by which its events name it from now on; until then that is its
    /// id. To be called before more is read.
    pub fn accept(&mut self, id: u32, key: u32) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.key = key;
        }
    }

    /// Sends the head of a response; `end`: it has no body.
    pub fn respond(&mut self, id: u32, response: &Fields, end: bool, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| !stream.sent) else {
            return;
        };
        stream.sent = end;
        self.write_head(id, response, end, out);
        if end {
            self.end_sending(id, out);
        }
    }

    /// Says that no further streams are answered; those that are there are.
    pub fn leave(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        let latest = self.next_stream.saturating_sub(2);
        let last = *self.role.leaves_after.get_or_insert(latest);
        frame::write_goaway(last, code, out);
    }

    /// The keys of all streams.
    pub fn keys(&mut self) -> impl Iterator<Item = u32> {
        self.streams.all_mut().map(|(_, stream)| stream.key)
    }

    /// It has said GOAWAY, and every stream that it answers is over.
    pub fn has_left(&self) -> bool {
        self.role.leaves_after.is_some() && self.streams.len() == 0
    }

    /// The end of a request that was already there: trailers.
    fn on_trailers(&mut self, id: u32, end: bool, fault: Option<&'static str>, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let (key, short) = (stream.key, stream.body_left.is_some_and(|left| left > 0));
        let fault = match fault {
            Some(fault) => Some(fault),
            None if !end => Some("trailers that do not end the stream"),
            None if short => Some("the body is not as long as content-length says"),
            None => None,
        };
        if let Some(fault) = fault {
            return self.break_stream(id, ErrorCode::PROTOCOL_ERROR, fault, out);
        }
        self.end_receiving(id, out);
        self.happened.push_back(Happened::Trailers(key));
    }
}

impl Role for Responder {
    const TAKES: bool = true;

    fn on_block(
        connection: &mut Server,
        id: u32,
        end: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let place = connection.read_block(block)?;
        let head = connection.heads.get(place);
        if let Some(stream) = connection.streams.get(id) {
            if stream.received {
                return Err(ConnectionError::new(
                    ErrorCode::STREAM_CLOSED,
                    "HEADERS behind the end of the stream",
                ));
            }
            let fault = match head.is_request() || head.too_long {
                true => Some("trailers with pseudo-header fields, or too long"),
                false => head.fault,
            };
            connection.on_trailers(id, end, fault, out);
            return Ok(());
        }
        if id < connection.next_stream {
            if connection.streams.may_be_late(id) {
                return connection.idles("a flood of HEADERS on streams that were reset");
            }
            return Err(ConnectionError::new(
                ErrorCode::STREAM_CLOSED,
                "HEADERS on a stream that was ended",
            ));
        }
        connection.next_stream = id + 2;
        if connection.role.leaves_after.is_some() {
            // The client will know that nobody looks at it.
            connection.streams.pass_over(id);
            return connection.idles("a flood of streams behind GOAWAY");
        }
        let whole = !(head.method.is_empty() || head.scheme.is_empty() || head.path.is_empty());
        let announced = head.content_length.unwrap_or(0);
        let refused = if connection.streams.len() >= connection.role.max_streams as usize {
            connection.tally.streams_refused += 1;
            Some(ErrorCode::REFUSED_STREAM)
        } else if head.too_long {
            Some(ErrorCode::ENHANCE_YOUR_CALM)
        } else if head.fault.is_some() || !whole || end && announced > 0 {
            Some(ErrorCode::PROTOCOL_ERROR)
        } else {
            None
        };
        if let Some(code) = refused {
            connection.streams.pass_over(id);
            frame::write_reset(id, code, out);
            return connection.idles("a flood of streams that cannot be taken");
        }
        connection.idle_frames = 0;
        let window = connection.config.stream_window_bytes;
        let known = connection.is_acknowledged();
        let stream = Stream {
            key: id,
            send_window: connection.settings.unwrap_or_default().window_bytes.into(),
            receive_window: if known { window } else { first_window(window) }.into(),
            body_left: head.content_length,
            head_request: head.method == b"HEAD",
            has_head: true,
            sent: false,
            received: end,
        };
        connection.streams.insert(id, stream);
        connection.tally.streams_opened += 1;
        connection
            .happened
            .push_back(Happened::Head(id, place, end));
        Ok(())
    }
}
