//! Tells HTTP/2 from HTTP/1.1 by what a client sends first (RFC 9113, section 3.4).

use prony_h2::frame::PREFACE;

/// What a connection speaks, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Speaks {
    Http2,
    /// These bytes of the preface had come before others did.
    Http1(&'static [u8]),
    /// It is not said yet; so many bytes of the preface have come.
    Open(u8),
}

/// `seen`: bytes of the preface that have come before these.
pub fn spoken(seen: u8, bytes: &[u8]) -> Speaks {
    let (before, expected) = PREFACE.split_at(usize::from(seen));
    let length = expected.len().min(bytes.len());
    if bytes[..length] != expected[..length] {
        return Speaks::Http1(before);
    }
    match length == expected.len() {
        true => Speaks::Http2,
        false => Speaks::Open(seen + length as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_say_what_is_spoken() {
        assert_eq!(spoken(0, b"P"), Speaks::Open(1));
        assert_eq!(spoken(1, b"OST /"), Speaks::Http1(b"P"));
        assert_eq!(spoken(0, b"GET /"), Speaks::Http1(b""));
        assert_eq!(spoken(1, &PREFACE[1..]), Speaks::Http2);
        assert_eq!(spoken(0, &[PREFACE, b"more"].concat()), Speaks::Http2);
    }
}
