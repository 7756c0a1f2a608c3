//! What a step keeps of its response: the head, and the body when it is asked for; one response at
//! a time, and only up to a limit.

use super::folded::unfold;

/// Longer bodies are not kept: what is looked for in them counts as not found.
pub const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// A copy of one response.
#[derive(Debug, Default)]
pub struct CapturedResponse {
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    pub with_body: bool,
    pub too_long: bool,
}

impl CapturedResponse {
    pub fn new(with_body: bool) -> Self {
        Self {
            with_body,
            ..Self::default()
        }
    }

    /// Forgets the response before.
    pub fn begin(&mut self, head: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(head);
        unfold(&mut self.head);
        self.body.clear();
        self.too_long = false;
    }

    /// The memory that it takes.
    pub fn capacity(&self) -> usize {
        self.head.capacity() + self.body.capacity()
    }

    pub fn feed(&mut self, piece: &[u8]) {
        if !self.with_body || self.too_long {
            return;
        }
        if self.body.len() + piece.len() > MAX_KEPT_BYTES {
            self.too_long = true;
            self.body = Vec::new();
        } else {
            self.body.extend_from_slice(piece);
        }
    }

    /// The digits of the status.
    pub fn status(&self) -> Option<&[u8]> {
        self.head.split(|byte| *byte == b' ').nth(1)?.get(..3)
    }

    /// The values of the headers of this name, in their order.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        // The head was read as HTTP before: after the first line every line is a name, a colon and a value.
        self.head
            .split(|byte| *byte == b'\n')
            .skip(1)
            .filter_map(move |line| {
                let colon = memchr::memchr(b':', line)?;
                line[..colon]
                    .eq_ignore_ascii_case(name.as_bytes())
                    .then(|| line[colon + 1..].trim_ascii())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_by_name_in_their_order() {
        let mut seen = CapturedResponse::new(true);
        seen.begin(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX: y:z\r\nset-cookie:b=2\r\n\r\n");
        let found: Vec<&[u8]> = seen.headers("Set-Cookie").collect();
        assert_eq!(found, [b"a=1".as_slice(), b"b=2"]);
        assert_eq!(seen.headers("x").next(), Some(b"y:z".as_slice()));
        assert_eq!(seen.headers("nothing").next(), None);
        assert_eq!(seen.status(), Some(b"200".as_slice()));
    }

    #[test]
    fn a_folded_header_is_one_line() {
        let mut seen = CapturedResponse::new(true);
        seen.begin(b"HTTP/1.1 200 OK\r\nX: a\r\n\tb: c\n  d\r\nY: 1\r\n\r\n");
        assert_eq!(seen.headers("x").next(), Some(b"a b: c d".as_slice()));
        assert_eq!(seen.headers("y").next(), Some(b"1".as_slice()));
    }

    #[test]
    fn a_body_beyond_the_limit_is_not_kept() {
        let mut seen = CapturedResponse::new(true);
        seen.begin(b"");
        seen.feed(&vec![b'x'; MAX_KEPT_BYTES]);
        assert!(!seen.too_long);
        seen.feed(b"y");
        assert!(seen.too_long && seen.body.is_empty());
    }
}
