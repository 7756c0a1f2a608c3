//! The responding part of the state machine: what each outcome looks like on the wire. It knows
//! nothing of how a request was read or how long it waited.

use std::rc::Rc;
use std::sync::Arc;

use super::behaviour::{Body, Closing, has_body};
use super::machine::{
    Action, ECHO_BYTES, HttpState, Machine, OUT_BYTES, PartialResponse, Pending, Phase,
    ResponseHead,
};
use super::random::Outcome;
use super::request::RequestError;
use super::response::{self, BodyWriter, ConnectionHeader, Framing};
use super::routes::Endpoint;

const GARBAGE_BYTES: usize = 64;
/// The endless head comes as some lines every millisecond: no end, and no flood.
const ENDLESS_LINE: &[u8] = b"X-Endless: this header goes on until the client has had enough\r\n";
const ENDLESS_LINES: usize = 64;
pub(super) const ENDLESS_EVERY_NS: u64 = 1_000_000;
const WRONG_PAGE: &str = "<html><body><h1>Something went wrong</h1><p>This is not what was asked for.</p></body></html>\n";
const ERROR_TEXT: &str = "This error is injected.\n";

/// A response before it becomes bytes.
struct Response<'a> {
    status: u16,
    content_type: &'a str,
    body: Body,
    truncated: bool,
    closing: Closing,
}

impl Machine {
    /// Responds to what is not a request.
    pub(super) fn refuse(&mut self, error: RequestError, out: &mut Vec<u8>) -> Action {
        self.counters.malformed.add(1);
        self.counters.answered(error.status());
        let text = error.sentence();
        response::write_head(
            error.status(),
            "text/plain",
            Framing::Length(text.len() as u64),
            ConnectionHeader::Close,
            out,
        );
        out.extend_from_slice(text.as_bytes());
        Action::Close
    }

    pub(super) fn answer(
        &mut self,
        http: &mut HttpState,
        key: u64,
        pending: Pending,
        out: &mut Vec<u8>,
    ) -> Action {
        if pending.endpoint != Endpoint::Stats {
            http.served = http.served.saturating_add(1);
        }
        if pending.endpoint == Endpoint::Any
            && pending.outcome == Outcome::Normal
            && pending.refusal.is_none()
        {
            let usual =
                pending.keep_alive && !pending.http10 && !pending.head_only && !http.is_stream;
            let ready = pending.handler.ready.as_ref().filter(|_| usual);
            if let Some(ready) = ready
                && self.closing(http, &pending) == Closing::Never
            {
                self.counters.answered(pending.handler.settings.status);
                out.extend_from_slice(ready);
                http.phase = Phase::Reading;
                return Action::Read;
            }
            return self.write_usual(http, key, &pending, out);
        }
        if pending.outcome != Outcome::Normal {
            self.counters.fault(pending.outcome);
        }
        match pending.outcome {
            Outcome::Normal => self.write_special(http, key, &pending, out),
            Outcome::Error => {
                let status = pending.handler.settings.error_status;
                self.write_text(http, key, &pending, status, ERROR_TEXT, out)
            }
            Outcome::WrongBody => {
                let closing = self.closing(http, &pending);
                let body = Body::Bytes(Arc::from(WRONG_PAGE.as_bytes()));
                let response = Response {
                    status: 200,
                    content_type: "text/html",
                    body,
                    truncated: false,
                    closing,
                };
                self.write(http, key, &pending, response, out)
            }
            Outcome::Truncate => self.write_usual(http, key, &pending, out),
            Outcome::Reset => Action::Reset,
            Outcome::Garbage => {
                self.random.garbage(GARBAGE_BYTES, out);
                Action::Close
            }
            Outcome::NoAnswer => {
                http.phase = Phase::Mute;
                http.request = None;
                Action::Ignore
            }
            Outcome::HeaderEndless => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: prony\r\n");
                self.endless(out);
                let now_ns = self.shared.clock.now_ns();
                self.wait(http, key, Phase::Endless, now_ns + ENDLESS_EVERY_NS)
            }
        }
    }

    pub(super) fn endless(&self, out: &mut Vec<u8>) {
        for _ in 0..ENDLESS_LINES {
            out.extend_from_slice(ENDLESS_LINE);
        }
    }

    /// What the settings say; `/echo` has its own body.
    fn write_usual(
        &mut self,
        http: &mut HttpState,
        key: u64,
        pending: &Pending,
        out: &mut Vec<u8>,
    ) -> Action {
        if pending.endpoint == Endpoint::Echo {
            return self.write_special(http, key, pending, out);
        }
        let handler = Rc::clone(&pending.handler);
        let settings = &handler.settings;
        let truncated = pending.outcome == Outcome::Truncate;
        let closing = if truncated {
            Closing::Silent
        } else {
            self.closing(http, pending)
        };
        let response = Response {
            status: settings.status,
            content_type: &settings.content_type,
            body: settings.body.clone(),
            truncated,
            closing,
        };
        self.write(http, key, pending, response, out)
    }

    /// `/echo`, the counters, and what was refused.
    fn write_special(
        &mut self,
        http: &mut HttpState,
        key: u64,
        pending: &Pending,
        out: &mut Vec<u8>,
    ) -> Action {
        if let Some(reason) = &pending.refusal {
            return self.write_text(http, key, pending, 400, &format!("{reason}\n"), out);
        }
        let (status, content_type, body) = match pending.endpoint {
            Endpoint::Stats => {
                let text = self.shared.totals_json();
                (200, "application/json", text.into_bytes())
            }
            _ => {
                let echo = std::mem::take(&mut http.request().echo);
                if echo.len() > ECHO_BYTES {
                    let text = "The body is too long for /echo, which keeps at most 16 MiB.\n";
                    return self.write_text(http, key, pending, 413, text, out);
                }
                let content_type = pending
                    .content_type
                    .as_deref()
                    .unwrap_or("application/octet-stream");
                (pending.handler.settings.status, content_type, echo)
            }
        };
        let truncated = pending.outcome == Outcome::Truncate;
        let closing = if truncated {
            Closing::Silent
        } else {
            self.closing(http, pending)
        };
        let response = Response {
            status,
            content_type,
            body: Body::Bytes(Arc::from(body)),
            truncated,
            closing,
        };
        self.write(http, key, pending, response, out)
    }

    fn write_text(
        &mut self,
        http: &mut HttpState,
        key: u64,
        pending: &Pending,
        status: u16,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Action {
        let closing = self.closing(http, pending);
        let body = Body::Bytes(Arc::from(text.as_bytes()));
        let response = Response {
            status,
            content_type: "text/plain",
            body,
            truncated: false,
            closing,
        };
        self.write(http, key, pending, response, out)
    }

    /// Whether the connection ends with this response, as the options, the query or the client ask.
    fn closing(&self, http: &HttpState, pending: &Pending) -> Closing {
        match self.shared.behaviour.close_after {
            Some((limit, closing))
                if http.served >= limit && pending.endpoint != Endpoint::Stats =>
            {
                return closing;
            }
            _ => {}
        }
        match pending.handler.settings.closing {
            Closing::Never if !pending.keep_alive => Closing::Announced,
            closing => closing,
        }
    }

    fn write(
        &mut self,
        http: &mut HttpState,
        key: u64,
        pending: &Pending,
        response: Response<'_>,
        out: &mut Vec<u8>,
    ) -> Action {
        if pending.endpoint != Endpoint::Stats {
            self.counters.answered(response.status);
        }
        if http.is_stream {
            return self.write_to_stream(http, key, pending, response);
        }
        let settings = &pending.handler.settings;
        let mut closing = response.closing;
        let chunked = settings.chunked && !pending.http10;
        let framing = if !has_body(response.status) {
            Framing::Nothing
        } else if chunked {
            Framing::Chunked
        } else if settings.chunked {
            closing = if closing == Closing::Never {
                Closing::Announced
            } else {
                closing
            };
            Framing::UntilClose
        } else {
            Framing::Length(response.body.length())
        };
        let note = match closing {
            Closing::Announced => ConnectionHeader::Close,
            Closing::Never if pending.http10 => ConnectionHeader::KeepAlive,
            Closing::Never | Closing::Silent => ConnectionHeader::Nothing,
        };
        let body = if pending.head_only || framing == Framing::Nothing {
            Body::Pattern(0)
        } else {
            response.body
        };
        let mut stream = BodyWriter::new(
            body,
            chunked && !pending.head_only && framing != Framing::Nothing,
        );
        if response.truncated {
            stream = stream.truncated();
        }
        let close = closing != Closing::Never;
        if let Some(drip_ns) = settings.drip_ns {
            let mut made = Vec::new();
            response::write_head(
                response.status,
                response.content_type,
                framing,
                note,
                &mut made,
            );
            http.request().rest = Some(PartialResponse {
                head: None,
                stream,
                close,
                drip_ns,
                made,
                dripped: 0,
            });
            let now_ns = self.shared.clock.now_ns();
            return self.drip(http, key, now_ns, out);
        }
        response::write_head(response.status, response.content_type, framing, note, out);
        let limit = out.len() + OUT_BYTES;
        stream.fill(out, limit);
        if stream.is_done() {
            return Self::after_response(http, close);
        }
        http.request().rest = Some(PartialResponse {
            head: None,
            stream,
            close,
            drip_ns: 0,
            made: Vec::new(),
            dripped: 0,
        });
        http.phase = Phase::Streaming;
        Action::Drain
    }

    /// The response as a stream of HTTP/2 has it: the head as values, the body unframed.
    fn write_to_stream(
        &mut self,
        http: &mut HttpState,
        key: u64,
        pending: &Pending,
        response: Response<'_>,
    ) -> Action {
        let settings = &pending.handler.settings;
        let bodied = has_body(response.status);
        let head = ResponseHead {
            status: response.status,
            content_type: bodied.then(|| response.content_type.to_owned()),
            length: (bodied && !settings.chunked).then(|| response.body.length()),
            closing: match response.truncated {
                true => Closing::Never,
                false => response.closing,
            },
            cut: response.truncated,
        };
        let body = match bodied && !pending.head_only {
            true => response.body,
            false => Body::Pattern(0),
        };
        let mut stream = BodyWriter::new(body, false);
        if response.truncated {
            stream = stream.truncated();
        }
        http.request().rest = Some(PartialResponse {
            head: Some(Box::new(head)),
            stream,
            close: response.closing != Closing::Never,
            drip_ns: settings.drip_ns.unwrap_or(0),
            made: Vec::new(),
            dripped: 0,
        });
        if settings.drip_ns.is_some() {
            // The head goes out before the first byte.
            let now_ns = self.shared.clock.now_ns();
            return self.wait(http, key, Phase::Dripping, now_ns);
        }
        http.phase = Phase::Streaming;
        Action::Drain
    }

    /// Sends the next byte of a dripped response.
    pub(super) fn drip(
        &mut self,
        http: &mut HttpState,
        key: u64,
        due_ns: u64,
        out: &mut Vec<u8>,
    ) -> Action {
        let Some(rest) = http.request().rest.as_mut() else {
            return Action::Drop;
        };
        if rest.dripped == rest.made.len() {
            rest.made.clear();
            rest.dripped = 0;
            rest.stream.fill(&mut rest.made, 1024);
        }
        if let Some(byte) = rest.made.get(rest.dripped) {
            out.push(*byte);
            rest.dripped += 1;
        }
        if rest.dripped < rest.made.len() || !rest.stream.is_done() {
            let next_ns = due_ns + rest.drip_ns;
            return self.wait(http, key, Phase::Dripping, next_ns);
        }
        let close = rest.close;
        http.request().rest = None;
        Self::after_response(http, close)
    }

    pub(super) fn after_response(http: &mut HttpState, close: bool) -> Action {
        http.phase = Phase::Reading;
        if close { Action::Close } else { Action::Read }
    }
}
