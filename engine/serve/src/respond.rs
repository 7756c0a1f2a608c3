//! The answering half of the machine: what each fate looks like on the wire. Sans-io like `exchange`; it knows nothing
//! of how a request was read or how long it waited.

use std::rc::Rc;
use std::sync::Arc;

use super::answer::{self, Framing, Note, Stream};
use super::cases::Place;
use super::draw::Fate;
use super::machine::{ECHO_BYTES, Exchange, Machine, OUT_BYTES, Pending, Phase, Rest, Step};
use super::request::Fault;
use super::script::{Body, Closing, has_body};

const GARBAGE_BYTES: usize = 64;
/// The endless header comes in lines, some every millisecond: no end, but no flood either.
const ENDLESS_LINE: &[u8] = b"X-Endless: this header goes on until the client has had enough\r\n";
const ENDLESS_LINES: usize = 64;
pub(super) const ENDLESS_EVERY_NS: u64 = 1_000_000;
const WRONG_PAGE: &str = "<html><body><h1>Something went wrong</h1><p>This is not what was asked for.</p></body></html>\n";
const ERROR_TEXT: &str = "The script of this server wants an error here.\n";

/// An answer before it becomes bytes.
struct Answer<'a> {
    status: u16,
    content_type: &'a str,
    body: Body,
    truncated: bool,
    closing: Closing,
}

impl Machine {
    /// Answers what cannot be read as a request.
    pub(super) fn refuse(&mut self, fault: Fault, out: &mut Vec<u8>) -> Step {
        self.counters.malformed.add(1);
        self.counters.answered(fault.status());
        let text = fault.sentence();
        answer::head(
            fault.status(),
            "text/plain",
            Framing::Length(text.len() as u64),
            Note::Close,
            out,
        );
        out.extend_from_slice(text.as_bytes());
        Step::Close
    }

    pub(super) fn answer(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        pending: Pending,
        out: &mut Vec<u8>,
    ) -> Step {
        if pending.place != Place::Stats {
            exchange.served = exchange.served.saturating_add(1);
        }
        if pending.place == Place::Any && pending.fate == Fate::Answer && pending.refusal.is_none()
        {
            let usual = pending.keep_alive && !pending.http10 && !pending.head_only;
            let ready = pending.case.ready.as_ref().filter(|_| usual);
            if let Some(ready) = ready
                && self.closing(exchange, &pending) == Closing::Never
            {
                self.counters.answered(pending.case.settings.status);
                out.extend_from_slice(ready);
                exchange.phase = Phase::Reading;
                return Step::Read;
            }
            return self.write_usual(exchange, key, &pending, out);
        }
        if pending.fate != Fate::Answer {
            self.counters.trouble(pending.fate);
        }
        match pending.fate {
            Fate::Answer => self.write_special(exchange, key, &pending, out),
            Fate::Error => {
                let status = pending.case.settings.error_status;
                self.write_text(exchange, key, &pending, status, ERROR_TEXT, out)
            }
            Fate::WrongBody => {
                let closing = self.closing(exchange, &pending);
                let body = Body::Bytes(Arc::from(WRONG_PAGE.as_bytes()));
                let answer = Answer {
                    status: 200,
                    content_type: "text/html",
                    body,
                    truncated: false,
                    closing,
                };
                self.write(exchange, key, &pending, answer, out)
            }
            Fate::Truncate => self.write_usual(exchange, key, &pending, out),
            Fate::Reset => Step::Reset,
            Fate::Garbage => {
                self.dice.garbage(GARBAGE_BYTES, out);
                Step::Close
            }
            Fate::NoAnswer => {
                exchange.phase = Phase::Mute;
                exchange.detail = None;
                Step::Ignore
            }
            Fate::HeaderEndless => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: prony\r\n");
                self.endless(out);
                let now_ns = self.shared.clock.now_ns();
                self.wait(exchange, key, Phase::Endless, now_ns + ENDLESS_EVERY_NS)
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
        exchange: &mut Exchange,
        key: u64,
        pending: &Pending,
        out: &mut Vec<u8>,
    ) -> Step {
        if pending.place == Place::Echo {
            return self.write_special(exchange, key, pending, out);
        }
        let case = Rc::clone(&pending.case);
        let settings = &case.settings;
        let truncated = pending.fate == Fate::Truncate;
        let closing = if truncated {
            Closing::Silent
        } else {
            self.closing(exchange, pending)
        };
        let answer = Answer {
            status: settings.status,
            content_type: &settings.content_type,
            body: settings.body.clone(),
            truncated,
            closing,
        };
        self.write(exchange, key, pending, answer, out)
    }

    /// `/echo`, the counters, and what was refused.
    fn write_special(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        pending: &Pending,
        out: &mut Vec<u8>,
    ) -> Step {
        if let Some(reason) = &pending.refusal {
            return self.write_text(exchange, key, pending, 400, &format!("{reason}\n"), out);
        }
        let (status, content_type, body) = match pending.place {
            Place::Stats => {
                let text = self.shared.totals_json();
                (200, "application/json", text.into_bytes())
            }
            _ => {
                let echo = std::mem::take(&mut exchange.detail().echo);
                if echo.len() > ECHO_BYTES {
                    let text = "This body is too long to be echoed: at most 16 MiB are kept.\n";
                    return self.write_text(exchange, key, pending, 413, text, out);
                }
                let content_type = pending
                    .content_type
                    .as_deref()
                    .unwrap_or("application/octet-stream");
                (pending.case.settings.status, content_type, echo)
            }
        };
        let truncated = pending.fate == Fate::Truncate;
        let closing = if truncated {
            Closing::Silent
        } else {
            self.closing(exchange, pending)
        };
        let answer = Answer {
            status,
            content_type,
            body: Body::Bytes(Arc::from(body)),
            truncated,
            closing,
        };
        self.write(exchange, key, pending, answer, out)
    }

    fn write_text(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        pending: &Pending,
        status: u16,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Step {
        let closing = self.closing(exchange, pending);
        let body = Body::Bytes(Arc::from(text.as_bytes()));
        let answer = Answer {
            status,
            content_type: "text/plain",
            body,
            truncated: false,
            closing,
        };
        self.write(exchange, key, pending, answer, out)
    }

    /// Whether the connection ends with this answer: by the script, by the query, or by the client's wish.
    fn closing(&self, exchange: &Exchange, pending: &Pending) -> Closing {
        match self.shared.script.close_after {
            Some((limit, closing)) if exchange.served >= limit && pending.place != Place::Stats => {
                return closing;
            }
            _ => {}
        }
        match pending.case.settings.closing {
            Closing::Never if !pending.keep_alive => Closing::Announced,
            closing => closing,
        }
    }

    fn write(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        pending: &Pending,
        answer: Answer<'_>,
        out: &mut Vec<u8>,
    ) -> Step {
        if pending.place != Place::Stats {
            self.counters.answered(answer.status);
        }
        let settings = &pending.case.settings;
        let mut closing = answer.closing;
        let chunked = settings.chunked && !pending.http10;
        let framing = if !has_body(answer.status) {
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
            Framing::Length(answer.body.length())
        };
        let note = match closing {
            Closing::Announced => Note::Close,
            Closing::Never if pending.http10 => Note::KeepAlive,
            Closing::Never | Closing::Silent => Note::Nothing,
        };
        let body = if pending.head_only || framing == Framing::Nothing {
            Body::Pattern(0)
        } else {
            answer.body
        };
        let mut stream = Stream::new(
            body,
            chunked && !pending.head_only && framing != Framing::Nothing,
        );
        if answer.truncated {
            stream = stream.truncated();
        }
        let close = closing != Closing::Never;
        if let Some(drip_ns) = settings.drip_ns {
            let mut made = Vec::new();
            answer::head(answer.status, answer.content_type, framing, note, &mut made);
            exchange.detail().rest = Some(Rest {
                stream,
                close,
                drip_ns,
                made,
                dripped: 0,
            });
            let now_ns = self.shared.clock.now_ns();
            return self.drip(exchange, key, now_ns, out);
        }
        answer::head(answer.status, answer.content_type, framing, note, out);
        let limit = out.len() + OUT_BYTES;
        stream.fill(out, limit);
        if stream.is_done() {
            return Self::after_answer(exchange, close);
        }
        exchange.detail().rest = Some(Rest {
            stream,
            close,
            drip_ns: 0,
            made: Vec::new(),
            dripped: 0,
        });
        exchange.phase = Phase::Streaming;
        Step::Drain
    }

    /// Sends the next byte of a dripped answer.
    pub(super) fn drip(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        due_ns: u64,
        out: &mut Vec<u8>,
    ) -> Step {
        let Some(rest) = exchange.detail().rest.as_mut() else {
            return Step::Drop;
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
            return self.wait(exchange, key, Phase::Dripping, next_ns);
        }
        let close = rest.close;
        exchange.detail().rest = None;
        Self::after_answer(exchange, close)
    }

    pub(super) fn after_answer(exchange: &mut Exchange, close: bool) -> Step {
        exchange.phase = Phase::Reading;
        if close { Step::Close } else { Step::Read }
    }
}
