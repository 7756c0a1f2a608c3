//! The head of a response: its status, the framing of its body and whether the connection stays.

use std::mem::MaybeUninit;

use super::expect::{Expectation, Unmet};

/// Those of a usual head, which need no allocation.
const USUAL_HEADERS: usize = 128;
/// A header line is no shorter.
const SHORTEST_LINE_BYTES: usize = 3;

/// Why a response is not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadResponse {
    /// Not HTTP.
    Malformed,
    HeadTooLong,
    /// Unfinished responses take all the memory that they may.
    NoMemory,
}

/// How the end of the body is known (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub framing: Framing,
    pub keep_alive: bool,
    pub unmet: Option<Unmet>,
}

impl Head {
    /// One after which the real response follows (1xx); after 101 none does, in HTTP.
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }
}

/// Folded lines are read.
pub fn parser() -> httparse::ParserConfig {
    let mut parser = httparse::ParserConfig::default();
    parser.allow_obsolete_multiline_headers_in_responses(true);
    parser
}

/// Reads a head from the start of `input`: its length and what it says, or `None` when it is not
/// complete. One longer than `max_bytes` is taken for endless.
pub fn read_head(
    input: &[u8],
    max_bytes: usize,
    head_request: bool,
    expectation: &Expectation,
) -> Result<Option<(usize, Head)>, BadResponse> {
    let mut usual = [MaybeUninit::uninit(); USUAL_HEADERS];
    let mut many = Vec::new();
    let mut response = httparse::Response::new(&mut []);
    let mut parsed = parser().parse_response_with_uninit_headers(&mut response, input, &mut usual);
    if parsed == Err(httparse::Error::TooManyHeaders) {
        let most = input.len().min(max_bytes) / SHORTEST_LINE_BYTES;
        many.resize(most, MaybeUninit::uninit());
        response = httparse::Response::new(&mut []);
        parsed = parser().parse_response_with_uninit_headers(&mut response, input, &mut many);
    }
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() > max_bytes => {
            return Err(BadResponse::HeadTooLong);
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(BadResponse::HeadTooLong),
        Err(_) => return Err(BadResponse::Malformed),
    };
    if length > max_bytes {
        return Err(BadResponse::HeadTooLong);
    }
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(BadResponse::Malformed);
    };
    if !(100..=999).contains(&status) {
        return Err(BadResponse::Malformed);
    }
    let fields = Fields::read(response.headers)?;
    let bodiless = head_request || status < 200 || status == 204 || status == 304;
    let framing = match (bodiless, fields.coded, fields.length) {
        (true, ..) => Framing::Length(0),
        (false, Coding::Chunked, _) => Framing::Chunked,
        (false, Coding::Other, _) => Framing::UntilClose,
        (false, Coding::None, Some(length)) => Framing::Length(length),
        (false, Coding::None, None) => Framing::UntilClose,
    };
    let wanted = if minor == 0 {
        fields.keep_alive && !fields.close
    } else {
        !fields.close
    };
    let head = Head {
        status,
        framing,
        // After 101 the bytes are of another protocol.
        keep_alive: wanted && framing != Framing::UntilClose && status != 101,
        unmet: expectation.check_head(status, response.headers),
    };
    Ok(Some((length, head)))
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    None,
    Chunked,
    Other,
}

#[derive(Default)]
struct Fields {
    length: Option<u64>,
    coded: Coding,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Self, BadResponse> {
        let mut fields = Self::default();
        for header in headers {
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    for part in header.value.split(|byte| *byte == b',') {
                        let value = decimal(part.trim_ascii())?;
                        if fields.length.is_some_and(|known| known != value) {
                            return Err(BadResponse::Malformed);
                        }
                        fields.length = Some(value);
                    }
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    let last = header
                        .value
                        .rsplit(|byte| *byte == b',')
                        .next()
                        .unwrap_or_default();
                    fields.coded = if last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        Coding::Chunked
                    } else {
                        Coding::Other
                    };
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for part in header.value.split(|byte| *byte == b',') {
                        let word = part.trim_ascii();
                        fields.close |= word.eq_ignore_ascii_case(b"close");
                        fields.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                _ => {}
            }
        }
        Ok(fields)
    }
}

fn decimal(digits: &[u8]) -> Result<u64, BadResponse> {
    if digits.is_empty() {
        return Err(BadResponse::Malformed);
    }
    digits.iter().try_fold(0u64, |value, byte| {
        if !byte.is_ascii_digit() {
            return Err(BadResponse::Malformed);
        }
        value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(byte - b'0')))
            .ok_or(BadResponse::Malformed)
    })
}

/// The last head of a step and the last right body: a response that repeats them byte for byte
/// needs no second reading. The result is the same by construction, and a server under load repeats
/// its head for a second at a time (until `Date` moves on).
#[derive(Debug, Default)]
pub struct HeadCache {
    head: Vec<u8>,
    parsed: Option<Head>,
    body: Vec<u8>,
}

/// Longer bodies are searched each time instead of being kept.
const MAX_RECENT_BODY_BYTES: usize = 64 * 1024;
const MAX_RECENT_HEAD_BYTES: usize = 4 * 1024;

impl HeadCache {
    /// The head at the start of `input`, when it is the recent one.
    #[inline]
    pub fn head(&self, input: &[u8]) -> Option<(usize, Head)> {
        let parsed = self.parsed?;
        input
            .starts_with(&self.head)
            .then_some((self.head.len(), parsed))
    }

    pub fn keep_head(&mut self, bytes: &[u8], head: Head) {
        if bytes.len() <= MAX_RECENT_HEAD_BYTES {
            self.head.clear();
            self.head.extend_from_slice(bytes);
            self.parsed = Some(head);
        }
    }

    /// The recent head in words; `None` when it was too long to keep.
    pub fn text(&self) -> Option<String> {
        self.parsed
            .is_some()
            .then(|| String::from_utf8_lossy(&self.head).into_owned())
    }

    /// Checks a whole body, by comparison with the last right one where that is enough.
    #[inline]
    pub fn check_body(&mut self, expectation: &Expectation, body: &[u8]) -> Option<Unmet> {
        if !expectation.reads_body() {
            return expectation.check_body(body);
        }
        if !self.body.is_empty() && self.body == body {
            return None;
        }
        let unmet = expectation.check_body(body);
        if unmet.is_none() && body.len() <= MAX_RECENT_BODY_BYTES {
            self.body.clear();
            self.body.extend_from_slice(body);
        }
        unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Expect;

    fn head(text: &str, head_request: bool) -> Result<Head, BadResponse> {
        let expectation = Expectation::new(&Expect::default());
        read_head(text.as_bytes(), 65_536, head_request, &expectation).map(|head| head.unwrap().1)
    }

    #[test]
    fn framing_follows_the_standard() {
        let framing = |text: &str| head(text, false).unwrap().framing;
        assert_eq!(
            framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            Framing::Length(5)
        );
        assert_eq!(
            framing("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n"),
            Framing::Length(5)
        );
        assert_eq!(
            framing(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 5\r\n\r\n"
            ),
            Framing::Chunked
        );
        assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n"), Framing::UntilClose);
        assert_eq!(
            framing("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"),
            Framing::Length(0)
        );
        assert_eq!(
            framing("HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Framing::Length(0)
        );
        let to_head = head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true).unwrap();
        assert_eq!(to_head.framing, Framing::Length(0));
    }

    #[test]
    fn the_connection_stays_when_both_sides_say_so() {
        let stays = |text: &str| head(text, false).unwrap().keep_alive;
        assert!(stays("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!stays(
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n"
        ));
        assert!(!stays("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(stays(
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
        ));
        assert!(!stays("HTTP/1.1 200 OK\r\n\r\n"));
    }

    #[test]
    fn bad_lengths_and_other_protocols_are_malformed() {
        for bad in [
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "SSH-2.0-OpenSSH_9.2\r\n\r\n",
            "HTTP/1.1 000 OK\r\n\r\n",
        ] {
            assert_eq!(head(bad, false), Err(BadResponse::Malformed), "{bad}");
        }
    }
}
