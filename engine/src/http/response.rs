//! Reads responses from the bytes of a connection, in whatever pieces they arrive. The common case,
//! a whole response in one piece, allocates nothing; memory for anything else exists only while
//! such a response is under way.

use super::expect::{BodyCheck, Expectation, Unmet};
use super::head::{BadResponse, Framing, Head, HeadCache, read_head};
use super::memory::{Budget, Held, UsedUp};
use crate::http::captured::CapturedResponse;
use prony_common::chunked::Chunked;
use prony_common::digests::BodyDigest;

/// A longer body gets no digest: SHA-256 of it would delay the responses behind it.
pub(super) const MAX_DIGEST_BYTES: u64 = 64 * 1024;

/// What must be known of the request to read its response.
pub struct Exchange<'a> {
    pub head_request: bool,
    /// A longer head is taken for endless.
    pub max_head_bytes: usize,
    pub expectation: &'a Expectation,
    pub recent: &'a mut HeadCache,
    /// Of the memory of what is incomplete.
    pub budget: &'a Budget,
    /// Where a copy of the response goes, when one is wanted.
    pub captured: Option<&'a mut CapturedResponse>,
    /// Where the digest of its body goes, when it is sampled and has at most [`MAX_DIGEST_BYTES`].
    pub digest: Option<&'a mut Option<u64>>,
    /// Set when the server asked for the body (100).
    pub continues: bool,
    /// More responses are expected behind this one.
    pub more: bool,
    /// Set with a response: so many bytes of the piece came behind it.
    pub behind: usize,
}

impl Exchange<'_> {
    /// Notes what came behind a response; true when nothing should have.
    fn is_surplus(&mut self, behind: usize) -> bool {
        self.behind = behind;
        behind > 0 && !self.more
    }
}

/// A whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// After any chunking is undone.
    pub body_bytes: u64,
    /// Whether the server lets the connection stay.
    pub keep_alive: bool,
    pub unmet: Option<Unmet>,
    /// More bytes followed than the response has: its framing is broken.
    pub surplus: bool,
}

/// A response that is not complete yet.
#[derive(Debug)]
enum Partial {
    /// The bytes of the head so far.
    Head(Vec<u8>, Held),
    Body(PartialBody),
}

#[derive(Debug)]
struct PartialBody {
    head: Head,
    left: Left,
    check: BodyCheck,
    /// The copy so far, when one is wanted.
    captured: Option<Box<CapturedResponse>>,
    /// The memory of the copy.
    held: Held,
    /// Of the body so far, when it is sampled.
    digest: Option<Box<BodyDigest>>,
}

#[derive(Debug)]
enum Left {
    Bytes(u64),
    Chunked(Chunked),
    UntilClose,
}

/// Reads one response after the other. Eight bytes while idle.
#[derive(Debug, Default)]
pub struct ResponseReader {
    partial: Option<Box<Partial>>,
}

impl ResponseReader {
    /// Reads a piece. `None`: more is needed.
    #[inline]
    pub fn feed(
        &mut self,
        input: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, BadResponse> {
        if self.partial.is_none()
            && let Some((length, head)) = exchange.recent.head(input)
            && head.framing == Framing::Length((input.len() - length) as u64)
        {
            let (head_bytes, body) = input.split_at(length);
            return Ok(Some(whole(head, head_bytes, body, exchange, 0)));
        }
        self.feed_slowly(input, exchange)
    }

    fn feed_slowly(
        &mut self,
        input: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, BadResponse> {
        match self.partial.take().map(|partial| *partial) {
            None => self.read_from_head(input, exchange),
            Some(Partial::Head(mut stored, mut held)) => {
                held.set(stored.len() + input.len())?;
                let worth_reading = extend_head(&mut stored, input);
                if stored.len() > exchange.max_head_bytes || worth_reading {
                    drop(held);
                    self.read_from_head(&stored, exchange)
                } else {
                    self.partial = Some(Box::new(Partial::Head(stored, held)));
                    Ok(None)
                }
            }
            Some(Partial::Body(body)) => self.read_body(body, input, exchange),
        }
    }

    /// At the start of a head, after any interim responses (1xx).
    fn read_from_head(
        &mut self,
        mut input: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, BadResponse> {
        loop {
            if input.is_empty() {
                return Ok(None);
            }
            let Some((length, head)) = head_of(input, exchange)? else {
                let mut held = exchange.budget.nothing();
                held.set(input.len())?;
                self.partial = Some(Box::new(Partial::Head(input.to_vec(), held)));
                return Ok(None);
            };
            let (head_bytes, rest) = input.split_at(length);
            if head.is_interim() {
                exchange.continues |= head.status == 100;
                input = rest;
                continue;
            }
            if let Framing::Length(bytes) = head.framing
                && bytes <= rest.len() as u64
            {
                let body = &rest[..bytes as usize];
                let behind = rest.len() - body.len();
                return Ok(Some(whole(head, head_bytes, body, exchange, behind)));
            }
            let left = match head.framing {
                Framing::Length(bytes) => Left::Bytes(bytes),
                Framing::Chunked => Left::Chunked(Chunked::lenient()),
                Framing::UntilClose => Left::UntilClose,
            };
            let body = PartialBody {
                head,
                left,
                check: BodyCheck::default(),
                captured: exchange.captured.as_ref().map(|wanted| {
                    let mut captured = Box::new(CapturedResponse::new(wanted.with_body));
                    captured.begin(head_bytes);
                    captured
                }),
                held: exchange.budget.nothing(),
                digest: exchange
                    .digest
                    .as_ref()
                    .filter(|_| !matches!(head.framing, Framing::Length(bytes) if bytes > MAX_DIGEST_BYTES))
                    .map(|_| Box::default()),
            };
            return self.read_body(body, rest, exchange);
        }
    }

    fn read_body(
        &mut self,
        mut body: PartialBody,
        input: &[u8],
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, BadResponse> {
        let (check, captured) = (&mut body.check, &mut body.captured);
        let digest = &mut body.digest;
        let mut feed = |piece: &[u8]| {
            check.feed(exchange.expectation, piece);
            if let Some(captured) = captured {
                captured.feed(piece);
            }
            if check.seen() > MAX_DIGEST_BYTES {
                *digest = None;
            } else if let Some(digest) = digest {
                digest.update(piece);
            }
        };
        let (used, done) = match &mut body.left {
            Left::Bytes(left) => {
                let used = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                feed(&input[..used]);
                *left -= used as u64;
                (used, *left == 0)
            }
            Left::Chunked(chunked) => {
                let used = chunked
                    .read(input, feed)
                    .map_err(|_| BadResponse::Malformed)?;
                (used, chunked.is_done())
            }
            Left::UntilClose => {
                feed(input);
                (input.len(), false)
            }
        };
        if done {
            return Ok(Some(body.finish(exchange, input.len() - used)));
        }
        if let Some(captured) = &body.captured {
            body.held.set(captured.capacity())?;
        }
        self.partial = Some(Box::new(Partial::Body(body)));
        Ok(None)
    }

    /// The server closed its side: a response that ends by that is complete, anything else is not.
    pub fn close(&mut self, exchange: &mut Exchange<'_>) -> Option<Response> {
        match self.partial.take().map(|partial| *partial) {
            Some(Partial::Body(body)) if matches!(body.left, Left::UntilClose) => {
                Some(body.finish(exchange, 0))
            }
            _ => None,
        }
    }

    /// Forgets a response under way.
    pub fn reset(&mut self) {
        self.partial = None;
    }
}

impl From<UsedUp> for BadResponse {
    fn from(_: UsedUp) -> Self {
        Self::NoMemory
    }
}

impl PartialBody {
    fn finish(self, exchange: &mut Exchange<'_>, behind: usize) -> Response {
        let surplus = exchange.is_surplus(behind);
        if let (Some(wanted), Some(captured)) = (&mut exchange.captured, self.captured) {
            **wanted = *captured;
        }
        if let (Some(wanted), Some(digest)) = (&mut exchange.digest, self.digest) {
            **wanted = Some(digest.first_bits());
        }
        Response {
            status: self.head.status,
            body_bytes: self.check.seen(),
            keep_alive: self.head.keep_alive && !surplus,
            unmet: self
                .head
                .unmet
                .or_else(|| self.check.finish(exchange.expectation)),
            surplus,
        }
    }
}

/// A response whose body lies in one piece.
#[inline]
fn whole(
    head: Head,
    head_bytes: &[u8],
    body: &[u8],
    exchange: &mut Exchange<'_>,
    behind: usize,
) -> Response {
    let surplus = exchange.is_surplus(behind);
    if let Some(captured) = &mut exchange.captured {
        captured.begin(head_bytes);
        captured.feed(body);
    }
    if let Some(wanted) = &mut exchange.digest
        && body.len() as u64 <= MAX_DIGEST_BYTES
    {
        let mut digest = BodyDigest::default();
        digest.update(body);
        **wanted = Some(digest.first_bits());
    }
    Response {
        status: head.status,
        body_bytes: body.len() as u64,
        keep_alive: head.keep_alive && !surplus,
        unmet: head
            .unmet
            .or_else(|| exchange.recent.check_body(exchange.expectation, body)),
        surplus,
    }
}

fn head_of(
    input: &[u8],
    exchange: &mut Exchange<'_>,
) -> Result<Option<(usize, Head)>, BadResponse> {
    if let Some(recent) = exchange.recent.head(input) {
        return Ok(Some(recent));
    }
    let found = read_head(
        input,
        exchange.max_head_bytes,
        exchange.head_request,
        exchange.expectation,
    )?;
    // An interim head alone in a piece would be taken for a whole response without a body.
    if let Some((length, head)) = found
        && !head.is_interim()
    {
        exchange.recent.keep_head(&input[..length], head);
    }
    Ok(found)
}

/// Adds to an incomplete head and says whether reading it again can show anything new: when its end
/// may be there, or, to refuse garbage early without reading a dripping head at every byte, when it
/// has grown by a kilobyte or is still short.
fn extend_head(stored: &mut Vec<u8>, input: &[u8]) -> bool {
    let before = stored.len();
    stored.extend_from_slice(input);
    let from = before.saturating_sub(3);
    let fresh = &stored[from..];
    stored.len() <= 128
        || before / 1024 != stored.len() / 1024
        || memchr::memmem::find(fresh, b"\n\r\n").is_some()
        || memchr::memmem::find(fresh, b"\n\n").is_some()
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
