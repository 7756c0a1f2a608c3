//! Between the messages that users write and read, which have the form of HTTP/1.1, and the fields of
//! HTTP/2. What belongs to a connection of HTTP/1.1 stays behind (RFC 9113, section 8.2.2).

use prony_h2::{Fields, Head, Indexing};

/// Fields of HTTP/1.1 that HTTP/2 does not have, in lower case.
const OF_CONNECTIONS: [&[u8]; 7] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
    b"expect",
];

/// Fields whose values are seldom the same twice.
const PASSING: [&[u8]; 6] = [
    b"content-length",
    b"cookie",
    b"if-none-match",
    b"if-modified-since",
    b"referer",
    b"range",
];

/// A request as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub head_bytes: usize,
    pub body_bytes: u64,
}

/// Reads a request; `repeats`: it is the same every time. `None`: it is no whole head.
pub fn read_request(
    bytes: &[u8],
    scheme: &[u8],
    repeats: bool,
    into: &mut Fields,
) -> Option<Written> {
    into.clear();
    let head_bytes = memchr::memmem::find(bytes, b"\r\n\r\n")? + 4;
    let mut lines = bytes[..head_bytes - 4].split(|byte| *byte == b'\n');
    let mut words = lines.next()?.split(|byte| *byte == b' ');
    let (method, path) = (words.next()?, words.next()?);
    let fields = || lines.clone().filter_map(field);
    let authority = fields()
        .find(|(name, _)| name.eq_ignore_ascii_case(b"host"))
        .map_or(&b""[..], |(_, value)| value);
    let kept = |passes: bool| match repeats || !passes {
        true => Indexing::Kept,
        false => Indexing::Passing,
    };
    into.push(b":method", method, Indexing::Kept);
    into.push(b":scheme", scheme, Indexing::Kept);
    // Empty it may not be (RFC 9113, section 8.3.1).
    if !authority.is_empty() {
        into.push(b":authority", authority, Indexing::Kept);
    }
    into.push(b":path", path, kept(true));
    let mut body_bytes = 0;
    for (name, value) in fields() {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if is(b"host")
            || OF_CONNECTIONS.into_iter().any(is)
            || is(b"te") && !value.eq_ignore_ascii_case(b"trailers")
        {
            continue;
        }
        if is(b"content-length") {
            body_bytes = std::str::from_utf8(value).ok()?.parse().ok()?;
        }
        let indexing = match is(b"authorization") {
            true => Indexing::Secret,
            false => kept(PASSING.into_iter().any(is)),
        };
        into.push(name, value, indexing);
    }
    Some(Written {
        head_bytes,
        body_bytes,
    })
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..at], line[at + 1..].trim_ascii()))
}

/// How the end of a response's body is given in the form of HTTP/1.1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Framing {
    /// There is none, or the head that came says how long it is.
    #[default]
    Said,
    /// Not said yet; if the rest comes before anybody looks, by its length.
    Open,
    Chunked,
}

/// A response on its way to its user.
#[derive(Debug, Default)]
pub struct Text {
    bytes: Vec<u8>,
    framing: Framing,
    /// Where a length would be said.
    head_end: usize,
}

/// More memory than this is not kept for the next response.
const KEPT_BYTES: usize = 64 * 1024;

impl Text {
    /// An interim response, or the head of the response. `bodiless`: no body follows whatever it says.
    pub fn head(&mut self, head: &Head, bodiless: bool) {
        let digits = [
            b'0' + (head.status / 100 % 10) as u8,
            b'0' + (head.status / 10 % 10) as u8,
            b'0' + (head.status % 10) as u8,
        ];
        self.bytes.extend_from_slice(b"HTTP/1.1 ");
        self.bytes.extend_from_slice(&digits);
        self.bytes.extend_from_slice(b" \r\n");
        self.bytes.extend_from_slice(&head.lines);
        self.head_end = self.bytes.len();
        self.framing = match bodiless || head.content_length.is_some() {
            true => Framing::Said,
            false => Framing::Open,
        };
        if self.framing == Framing::Said {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    pub fn body(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        if self.framing == Framing::Chunked {
            self.bytes
                .extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            self.bytes.extend_from_slice(piece);
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bytes.extend_from_slice(piece);
        }
    }

    /// The response is complete.
    pub fn end(&mut self) {
        match self.framing {
            Framing::Said => {}
            Framing::Open => {
                let length = self.bytes.len() - self.head_end;
                let line = format!("content-length: {length}\r\n\r\n");
                self.insert(line.as_bytes());
            }
            Framing::Chunked => self.bytes.extend_from_slice(b"0\r\n\r\n"),
        }
        self.framing = Framing::Said;
    }

    /// What has come is shown before the rest is there.
    pub fn show(&mut self) {
        if self.framing == Framing::Open {
            let length = self.bytes.len() - self.head_end;
            let mut line = b"transfer-encoding: chunked\r\n\r\n".to_vec();
            if length > 0 {
                line.extend_from_slice(format!("{length:x}\r\n").as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
            self.insert(&line);
            self.framing = Framing::Chunked;
        }
    }

    fn insert(&mut self, line: &[u8]) {
        let at = self.head_end;
        drop(self.bytes.splice(at..at, line.iter().copied()));
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.framing = Framing::Said;
    }

    /// Hands what has come over in exchange for memory that is used again.
    pub fn take(&mut self, into: &mut Vec<u8>) {
        into.clear();
        if into.capacity() > KEPT_BYTES {
            *into = Vec::new();
        }
        std::mem::swap(&mut self.bytes, into);
        self.head_end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(request: &Fields) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let field = |(name, value, indexing): (&[u8], &[u8], Indexing)| {
            format!("{}={} {indexing:?}", text(name), text(value))
        };
        request.fields().map(field).collect()
    }

    #[test]
    fn a_request_becomes_fields_without_those_of_a_connection() {
        let mut request = Fields::default();
        let text = b"POST /a?b HTTP/1.1\r\nAccept: */*\r\nHost: h:1\r\nConnection: close\r\nTE: gzip\r\nAuthorization: x\r\n\
            Content-Length: 3\r\n\r\nabc";
        let written = read_request(text, b"https", false, &mut request).unwrap();
        assert_eq!(
            (text.len() - written.head_bytes, written.body_bytes),
            (3, 3)
        );
        assert_eq!(
            fields(&request),
            [
                ":method=POST Kept",
                ":scheme=https Kept",
                ":authority=h:1 Kept",
                ":path=/a?b Passing",
                "accept=*/* Kept",
                "authorization=x Secret",
                "content-length=3 Passing",
            ]
        );
        read_request(
            b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            b"http",
            true,
            &mut request,
        )
        .unwrap();
        assert_eq!(fields(&request)[3], ":path=/ Kept");
        read_request(b"GET / HTTP/1.1\r\n\r\n", b"http", true, &mut request).unwrap();
        assert_eq!(fields(&request)[2], ":path=/ Kept");
        assert_eq!(
            read_request(b"GET / HTTP/1.1\r\n", b"http", true, &mut request),
            None
        );
    }

    fn head(status: u16, lines: &str, length: Option<u64>) -> Head {
        Head {
            status,
            lines: lines.as_bytes().to_vec(),
            content_length: length,
            ..Head::default()
        }
    }

    fn taken(text: &mut Text) -> String {
        let mut bytes = Vec::new();
        text.take(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_whole_response_says_its_length() {
        let mut text = Text::default();
        text.head(&head(200, "a: 1\r\n", None), false);
        text.body(b"he");
        text.body(b"llo");
        text.end();
        assert_eq!(
            taken(&mut text),
            "HTTP/1.1 200 \r\na: 1\r\ncontent-length: 5\r\n\r\nhello"
        );
        text.head(&head(200, "content-length: 2\r\n", Some(2)), false);
        text.show();
        assert_eq!(
            taken(&mut text),
            "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n"
        );
        text.body(b"ab");
        text.end();
        assert_eq!(taken(&mut text), "ab");
    }

    #[test]
    fn a_response_that_is_shown_in_pieces_is_chunked() {
        let mut text = Text::default();
        text.head(&head(103, "link: x\r\n", None), true);
        text.head(&head(200, "", None), false);
        text.body(b"0123456789");
        text.show();
        let first = "HTTP/1.1 103 \r\nlink: x\r\n\r\nHTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n";
        assert_eq!(taken(&mut text), first);
        text.body(b"ab");
        text.show();
        text.body(b"");
        text.end();
        assert_eq!(taken(&mut text), "2\r\nab\r\n0\r\n\r\n");
        text.head(&head(200, "", None), false);
        text.show();
        assert_eq!(
            taken(&mut text),
            "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n"
        );
        text.end();
        assert_eq!(taken(&mut text), "0\r\n\r\n");
    }

    #[test]
    fn what_has_no_body_says_no_length() {
        let mut text = Text::default();
        text.head(&head(304, "etag: x\r\n", None), true);
        text.end();
        assert_eq!(taken(&mut text), "HTTP/1.1 304 \r\netag: x\r\n\r\n");
    }
}
