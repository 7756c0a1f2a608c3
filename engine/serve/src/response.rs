//! Writes a response: the head, and the body piece by piece, with a length or chunked. It knows
//! nothing of the request or of when the bytes are sent.

use super::behaviour::Body;

/// Largest chunk of a chunked response.
const CHUNK_BYTES: u64 = 16 * 1024;

/// How the body of a response is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    /// HTTP/1.0: the body ends where the connection ends.
    UntilClose,
    /// No body and no header about one (204, 304).
    Nothing,
}

/// What the `Connection` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionHeader {
    Nothing,
    Close,
    KeepAlive,
}

/// Appends the head of a response.
pub fn write_head(
    status: u16,
    content_type: &str,
    framing: Framing,
    connection: ConnectionHeader,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    number(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\nServer: prony\r\n");
    if framing != Framing::Nothing {
        out.extend_from_slice(b"Content-Type: ");
        out.extend_from_slice(content_type.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            number(length, out);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::UntilClose | Framing::Nothing => {}
    }
    match connection {
        ConnectionHeader::Nothing => {}
        ConnectionHeader::Close => out.extend_from_slice(b"Connection: close\r\n"),
        ConnectionHeader::KeepAlive => out.extend_from_slice(b"Connection: keep-alive\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

fn number(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The reason phrase, for people: clients must not depend on it.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unlisted",
    }
}

/// A body that is written piece by piece, so that a long response needs no long buffer.
#[derive(Debug)]
pub struct BodyWriter {
    body: Body,
    at: u64,
    /// Where to stop: the length, or less when the response is to be cut.
    stop: u64,
    /// Bytes per chunk; 0 when the body is not chunked.
    chunk: u64,
    chunk_left: u64,
    done: bool,
}

impl BodyWriter {
    pub fn new(body: Body, chunked: bool) -> Self {
        let length = body.length();
        // At least two chunks where there are two bytes, or it would test nothing.
        let chunk = if chunked {
            length.div_ceil(2).clamp(1, CHUNK_BYTES)
        } else {
            0
        };
        Self {
            body,
            at: 0,
            stop: length,
            chunk,
            chunk_left: 0,
            done: !chunked && length == 0,
        }
    }

    /// Ends after half of the content, without the last chunk.
    pub fn truncated(mut self) -> Self {
        self.stop /= 2;
        self.done = self.stop == 0;
        self
    }

    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Appends bytes until the body is done or `out` has at least `limit` bytes.
    pub fn fill(&mut self, out: &mut Vec<u8>, limit: usize) {
        let length = self.body.length();
        while !self.done && out.len() < limit {
            if self.chunk > 0 && self.chunk_left == 0 {
                let next = self.chunk.min(length - self.at);
                if next == 0 {
                    out.extend_from_slice(b"0\r\n\r\n");
                    self.done = true;
                    return;
                }
                out.extend_from_slice(format!("{next:x}\r\n").as_bytes());
                self.chunk_left = next;
            }
            let mut take = (self.stop - self.at).min((limit - out.len().min(limit)).max(1) as u64);
            if self.chunk > 0 {
                take = take.min(self.chunk_left);
            }
            self.body.append(self.at, self.at + take, out);
            self.at += take;
            let cut = self.stop < length;
            if self.chunk > 0 {
                self.chunk_left -= take;
                if cut && self.at == self.stop {
                    self.done = true;
                } else if self.chunk_left == 0 {
                    out.extend_from_slice(b"\r\n");
                }
            } else if self.at == self.stop {
                self.done = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(mut stream: BodyWriter, limit: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !stream.is_done() {
            let mut out = Vec::new();
            stream.fill(&mut out, limit);
            assert!(
                !out.is_empty() && out.len() <= limit.max(32) + 32,
                "{} bytes for {limit}",
                out.len()
            );
            all.extend_from_slice(&out);
        }
        all
    }

    #[test]
    fn heads_say_what_they_must() {
        let mut out = Vec::new();
        write_head(
            503,
            "text/html",
            Framing::Length(1234),
            ConnectionHeader::Close,
            &mut out,
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 503 Service Unavailable\r\nServer: prony\r\nContent-Type: text/html\r\nContent-Length: 1234\r\n\
             Connection: close\r\n\r\n"
        );
        let mut out = Vec::new();
        write_head(
            204,
            "text/html",
            Framing::Nothing,
            ConnectionHeader::Nothing,
            &mut out,
        );
        assert_eq!(out, b"HTTP/1.1 204 No Content\r\nServer: prony\r\n\r\n");
        let mut out = Vec::new();
        write_head(
            599,
            "a/b",
            Framing::Chunked,
            ConnectionHeader::KeepAlive,
            &mut out,
        );
        assert!(
            String::from_utf8(out)
                .unwrap()
                .contains("chunked\r\nConnection: keep-alive\r\n")
        );
    }

    #[test]
    fn chunks_add_up() {
        let body = Body::Bytes(std::sync::Arc::from(&b"abcde"[..]));
        assert_eq!(
            written(BodyWriter::new(body.clone(), true), 1000),
            b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        );
        assert_eq!(
            written(BodyWriter::new(body.clone(), true).truncated(), 1000),
            b"3\r\nab"
        );
        assert_eq!(
            written(BodyWriter::new(body.clone(), false).truncated(), 1000),
            b"ab"
        );
        assert_eq!(written(BodyWriter::new(body, false), 2), b"abcde");
        assert_eq!(
            written(BodyWriter::new(Body::Pattern(0), true), 10),
            b"0\r\n\r\n"
        );
        assert_eq!(written(BodyWriter::new(Body::Pattern(0), false), 10), b"");
    }

    proptest! {
        #[test]
        fn the_limit_changes_nothing_but_the_pieces(length in 0u64..60_000, limit in 1usize..70_000, chunked: bool, cut: bool) {
            let stream = || {
                let stream = BodyWriter::new(Body::Pattern(length), chunked);
                if cut { stream.truncated() } else { stream }
            };
            prop_assert_eq!(written(stream(), limit), written(stream(), 1 << 20));
        }
    }
}
