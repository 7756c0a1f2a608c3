//! Reads HTTP/1.x requests from bytes: the head (through `httparse`) and the framing of the body.
//! Sans-io: it knows nothing of sockets or of what is answered.

use std::mem::MaybeUninit;

use prony_common::chunked::{BadChunk, Chunked};

/// Longest request head that is read; a longer one is answered with 431.
pub const HEAD_LIMIT_BYTES: usize = 64 * 1024;
const HEADERS_LIMIT: usize = 100;

/// Why a request cannot be read; the connection is closed after the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    Malformed,
    HeadTooLong,
    Framing,
    UnknownCoding,
}

impl RequestError {
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed | Self::Framing => 400,
            Self::HeadTooLong => 431,
            Self::UnknownCoding => 501,
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            Self::Malformed => "This is not an HTTP/1.x request.\n",
            Self::HeadTooLong => {
                "The request head is longer than 64 KiB or has more than 100 headers.\n"
            }
            Self::Framing => "The length of the request body is unclear.\n",
            Self::UnknownCoding => "This transfer coding is unknown: chunked is understood.\n",
        }
    }
}

/// How the body of a request is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// What the server needs to know of a request head.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub target: &'a str,
    /// HEAD: the response has no body.
    pub head_only: bool,
    pub http10: bool,
    /// The client's wish after the rules of its version.
    pub keep_alive: bool,
    pub expects_continue: bool,
    pub framing: Framing,
    pub content_type: Option<&'a [u8]>,
    /// Bytes of the input that the head took.
    pub length: usize,
}

/// Reads a request head at the beginning of `input`; `None` when more bytes are needed.
pub fn read_head(input: &[u8]) -> Result<Option<Head<'_>>, RequestError> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_LIMIT];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(input, &mut headers) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_LIMIT_BYTES => length,
        Ok(httparse::Status::Partial) if input.len() <= HEAD_LIMIT_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(RequestError::HeadTooLong),
        Err(_) => return Err(RequestError::Malformed),
    };
    let http10 = request.version == Some(0);
    let mut head = Head {
        target: request.path.unwrap_or("/"),
        head_only: request.method == Some("HEAD"),
        http10,
        keep_alive: !http10,
        expects_continue: false,
        framing: Framing::None,
        content_type: None,
        length,
    };
    for header in request.headers.iter() {
        note_header(&mut head, header.name, header.value)?;
    }
    Ok(Some(head))
}

/// Looks at the few headers that matter; told apart by length first, as this runs for every header
/// of every request.
fn note_header<'a>(head: &mut Head<'a>, name: &str, value: &'a [u8]) -> Result<(), RequestError> {
    match name.len() {
        6 if name.eq_ignore_ascii_case("expect") => {
            head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
        10 if name.eq_ignore_ascii_case("connection") => {
            for token in value.split(|byte| *byte == b',') {
                let token = token.trim_ascii();
                if token.eq_ignore_ascii_case(b"close") {
                    head.keep_alive = false;
                } else if token.eq_ignore_ascii_case(b"keep-alive") && head.http10 {
                    head.keep_alive = true;
                }
            }
        }
        12 if name.eq_ignore_ascii_case("content-type") => head.content_type = Some(value),
        14 if name.eq_ignore_ascii_case("content-length") => {
            let length = decimal(value).ok_or(RequestError::Framing)?;
            let told = Framing::Length(length);
            // Two lengths, or a length beside chunked, are how requests are smuggled: refused.
            if head.framing != Framing::None && head.framing != told {
                return Err(RequestError::Framing);
            }
            head.framing = told;
        }
        17 if name.eq_ignore_ascii_case("transfer-encoding") => {
            if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return Err(RequestError::UnknownCoding);
            }
            if head.framing != Framing::None {
                return Err(RequestError::Framing);
            }
            head.framing = Framing::Chunked;
        }
        _ => {}
    }
    Ok(())
}

fn decimal(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Reads the body of one request, however the bytes are cut up.
#[derive(Debug, Clone)]
pub enum BodyReader {
    /// So many bytes are still to come.
    Length(u64),
    Chunked(Chunked),
}

impl BodyReader {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Length(0),
            Framing::Length(left) => Self::Length(left),
            Framing::Chunked => Self::Chunked(Chunked::strict()),
        }
    }

    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
        }
    }

    /// Takes body bytes from `input`, hands the content to `sink`, and returns how many bytes of
    /// `input` belonged to the body.
    pub fn read(
        &mut self,
        input: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<usize, RequestError> {
        match self {
            Self::Length(left) => {
                let take = (*left).min(input.len() as u64) as usize;
                if take > 0 {
                    sink(&input[..take]);
                    *left -= take as u64;
                }
                Ok(take)
            }
            Self::Chunked(chunked) => chunked.read(input, sink).map_err(|bad| match bad {
                BadChunk::Malformed => RequestError::Framing,
                BadChunk::TooLong => RequestError::HeadTooLong,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_common::chunked::MAX_OVERHEAD_BYTES;
    use proptest::prelude::*;

    fn head(text: &str) -> Result<Option<Head<'_>>, RequestError> {
        read_head(text.as_bytes())
    }

    #[test]
    fn a_plain_request() {
        let read = head("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\nrest")
            .unwrap()
            .unwrap();
        assert_eq!(
            (read.target, read.keep_alive, read.http10, read.head_only),
            ("/a?b=c", true, false, false)
        );
        assert_eq!((read.framing, read.length), (Framing::None, 32));
    }

    #[test]
    fn versions_and_the_connection_header_decide_keep_alive() {
        for (text, keep_alive) in [
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nConnection: TE, Close\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n", true),
            (
                "GET / HTTP/1.0\r\nconnection: keep-alive, close\r\n\r\n",
                false,
            ),
        ] {
            assert_eq!(
                head(text).unwrap().unwrap().keep_alive,
                keep_alive,
                "{text}"
            );
        }
    }

    #[test]
    fn bodies_are_framed_or_refused() {
        let framing = |headers: &str| {
            head(&format!("POST / HTTP/1.1\r\n{headers}\r\n")).map(|read| read.unwrap().framing)
        };
        assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(
            framing("Content-Length: 12\r\ncontent-length: 12\r\n"),
            Ok(Framing::Length(12))
        );
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\n"),
            Ok(Framing::Chunked)
        );
        assert_eq!(
            framing("Content-Length: 12\r\nContent-Length: 13\r\n"),
            Err(RequestError::Framing)
        );
        assert_eq!(
            framing("Content-Length: 12\r\nTransfer-Encoding: chunked\r\n"),
            Err(RequestError::Framing)
        );
        assert_eq!(
            framing("Transfer-Encoding: chunked\r\nContent-Length: 12\r\n"),
            Err(RequestError::Framing)
        );
        assert_eq!(
            framing("Content-Length: -1\r\n"),
            Err(RequestError::Framing)
        );
        assert_eq!(
            framing("Content-Length: 99999999999999999999999\r\n"),
            Err(RequestError::Framing)
        );
        assert_eq!(
            framing("Transfer-Encoding: gzip\r\n"),
            Err(RequestError::UnknownCoding)
        );
    }

    #[test]
    fn limits_are_kept() {
        let long = format!(
            "GET / HTTP/1.1\r\nX: {}\r\n\r\n",
            "a".repeat(HEAD_LIMIT_BYTES)
        );
        assert_eq!(head(&long), Err(RequestError::HeadTooLong));
        assert_eq!(
            head(&long[..HEAD_LIMIT_BYTES + 10]),
            Err(RequestError::HeadTooLong)
        );
        assert_eq!(head(&long[..HEAD_LIMIT_BYTES - 10]), Ok(None));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "X: y\r\n".repeat(HEADERS_LIMIT + 1)
        );
        assert_eq!(head(&many), Err(RequestError::HeadTooLong));
        assert_eq!(
            head("\u{16}\u{3}\u{1} not http"),
            Err(RequestError::Malformed)
        );
    }

    fn read_all(
        framing: Framing,
        pieces: &[&[u8]],
    ) -> Result<(Vec<u8>, usize, bool), RequestError> {
        let mut reader = BodyReader::new(framing);
        let (mut content, mut taken) = (Vec::new(), 0);
        for piece in pieces {
            taken += reader.read(piece, |bytes| content.extend_from_slice(bytes))?;
        }
        Ok((content, taken, reader.is_done()))
    }

    #[test]
    fn chunked_bodies_with_extensions_and_trailers() {
        let wire = b"4\r\nWiki\r\n6;name=value\r\npedia \r\n00\r\nX-Sum: 1\r\nY: 2\r\n\r\nGET";
        let (content, taken, done) = read_all(Framing::Chunked, &[wire]).unwrap();
        assert_eq!(
            (content.as_slice(), taken, done),
            (&b"Wikipedia "[..], wire.len() - 3, true)
        );
    }

    #[test]
    fn broken_chunks_are_refused() {
        for wire in [
            "\r\n",
            "g\r\n",
            "4\n",
            "4\r\nWikipedia",
            "4\r\nWiki\n",
            "4\r\r",
            "11111111111111111\r\n",
            "0\r\n\rx",
        ] {
            assert_eq!(
                read_all(Framing::Chunked, &[wire.as_bytes()]),
                Err(RequestError::Framing),
                "{wire:?}"
            );
        }
        let endless = format!("4;{}", "x".repeat(MAX_OVERHEAD_BYTES as usize + 1));
        assert_eq!(
            read_all(Framing::Chunked, &[endless.as_bytes()]),
            Err(RequestError::HeadTooLong)
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_readers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_head(&bytes);
            let mut reader = BodyReader::new(Framing::Chunked);
            let _ = reader.read(&bytes, |_| {});
        }

        #[test]
        fn near_http_never_panics(text in "(GET|HEAD|P ST) /[a-z?=&%]{0,9} HTTP/1.[019]\r\n([A-Za-z-]{0,17}: ?[a-z0-9, ]{0,9}\r\n){0,5}\r\n") {
            let _ = read_head(text.as_bytes());
        }

        #[test]
        fn a_chunked_body_is_the_same_however_it_is_cut(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in proptest::collection::vec(0usize..400, 0..8),
        ) {
            let mut wire = Vec::new();
            for part in &parts {
                wire.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                wire.extend_from_slice(part);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(wire.len())).collect();
            cuts.sort_unstable();
            let mut pieces: Vec<&[u8]> = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&wire[from..cut]);
                from = cut;
            }
            pieces.push(&wire[from..]);
            prop_assert_eq!(read_all(Framing::Chunked, &pieces), Ok((parts.concat(), wire.len(), true)));
        }

        #[test]
        fn a_head_needs_all_its_bytes(cut in 0usize..62) {
            let whole = "POST /path HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n";
            let cut = cut.min(whole.len() - 1);
            prop_assert_eq!(head(&whole[..cut]), Ok(None));
        }
    }
}
