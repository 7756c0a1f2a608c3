//! Paths as browsers and Node write them (WHATWG URL). It knows no host.

use url::{Position, Url};

/// Writes the path, query and fragment from there on as path and query of a URL.
pub fn normalize(out: &mut Vec<u8>, from: usize) {
    let rooted = out[from..].starts_with(b"/");
    if rooted && out[from..].iter().all(|byte| is_plain(*byte)) {
        without_empty_query(out, from);
        return;
    }
    // What is no UTF-8 comes from a header, which Node reads as ISO-8859-1.
    let written = match std::str::from_utf8(&out[from..]) {
        Ok(text) => text.to_owned(),
        Err(_) => out[from..].iter().map(|byte| char::from(*byte)).collect(),
    };
    if let Ok(url) = Url::parse(&format!("http://h{written}")) {
        out.truncate(from);
        out.extend_from_slice(url[Position::BeforePath..Position::AfterQuery].as_bytes());
    }
    without_empty_query(out, from);
}

/// A client that takes a URL apart sends no `?` without a query.
fn without_empty_query(out: &mut Vec<u8>, from: usize) {
    if memchr::memchr(b'?', &out[from..]).is_some_and(|at| from + at + 1 == out.len()) {
        out.pop();
    }
}

/// What stays as it is everywhere; a dot or a % may be part of a step to the folder above.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-_~!$&()*+,;=:@?".contains(&byte)
}

/// Whether a % of it begins no character of UTF-8: `decodeURI` of JavaScript throws.
pub fn is_malformed(value: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let digit = |place: usize| (*rest.get(place)? as char).to_digit(16);
        let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else {
            return true;
        };
        bytes.extend_from_slice(&rest[..at]);
        bytes.push((high << 4 | low) as u8);
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest);
    value.contains(&b'%') && std::str::from_utf8(&bytes).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_node_writes_it() {
        for (path, written) in [
            ("/a b?c d", "/a%20b?c%20d"),
            ("/a\"<>`{}^|b", "/a%22%3C%3E%60%7B%7D^|b"),
            ("/?a\"<>'`{}^|b", "/?a%22%3C%3E%27`{}^|b"),
            ("/a/../b/./c/%2e%2E/d", "/b/d"),
            ("/a\\b?c\\d", "/a/b?c\\d"),
            ("/a#b?c", "/a"),
            ("/x.y/%20/é?é", "/x.y/%20/%C3%A9?%C3%A9"),
            ("//x//y", "//x//y"),
            ("/a\tb\n", "/ab"),
            ("/a?", "/a"),
            ("/a??", "/a??"),
            ("?", "/"),
        ] {
            let mut out = b"GET ".to_vec();
            out.extend_from_slice(path.as_bytes());
            normalize(&mut out, 4);
            assert_eq!(String::from_utf8(out).unwrap(), format!("GET {written}"));
        }
    }

    #[test]
    fn bytes_of_a_header_are_latin_1() {
        let mut out = b"/M\xfcller".to_vec();
        normalize(&mut out, 0);
        assert_eq!(out, b"/M%C3%BCller");
    }

    #[test]
    fn a_percent_sign_begins_a_character_or_is_malformed() {
        for (value, malformed) in [
            ("a", false),
            ("%20", false),
            ("%C3%A9", false),
            ("é", false),
            ("100%", true),
            ("%zz", true),
            ("%C3", true),
            ("%+1", true),
        ] {
            assert_eq!(is_malformed(value.as_bytes()), malformed, "{value}");
        }
    }
}
