//! Where a redirect leads and what is asked for there. It knows no users or connections.

use url::{Position, Url};

/// The target, as a `Location` may name it.
#[derive(Debug, Clone, Default)]
pub struct TargetOrigin {
    pub secure: bool,
    /// Host and port as in the target's URL.
    pub authority: String,
}

/// Whether a response of this status asks the client to go elsewhere on its own.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Whether the request after this response is a GET, whatever the one before was: as browsers do
/// (WHATWG Fetch, HTTP-redirect fetch). `keeps`: only after 303 (RFC 9110, section 15.4).
pub fn becomes_get(status: u16, method: &[u8], keeps: bool) -> bool {
    match status {
        303 => method != b"GET" && method != b"HEAD",
        301 | 302 => method == b"POST" && !keeps,
        _ => false,
    }
}

impl TargetOrigin {
    /// The path and query that a `Location` stands for, after a request for the path `from` (WHATWG
    /// URL, as browsers do). `host` is what the request named, which may be another name of the
    /// same server. The error says where it leads instead.
    pub fn resolve(&self, location: &[u8], from: &str, host: &str) -> Result<String, String> {
        let text = String::from_utf8_lossy(location);
        let text = text.trim();
        let here = self
            .page(from)
            .map_err(|error| format!("the target's URL cannot be read: {error}"))?;
        let to = here
            .join(text)
            .map_err(|error| format!("it leads to {text}, which is no URL: {error}"))?;
        let (scheme, other) = (here.scheme(), to.scheme());
        refuse_if! {
            other != scheme && matches!(other, "http" | "https") =>
                "it leads to {text}, from {scheme}: to {other}:";
            other != scheme => "it leads to {text}, which is no {scheme}:";
        }
        let is = |known: &Url| {
            known.host() == to.host() && known.port_or_known_default() == to.port_or_known_default()
        };
        if !is(&here) && !self.url(host).is_ok_and(|named| is(&named)) {
            let authority = &to[Position::BeforeHost..Position::AfterPort];
            refuse! { "it leads to another host, {authority}" }
        }
        Ok(to[Position::BeforePath..Position::AfterQuery].to_owned())
    }

    /// The URL of what stands at this path and query.
    pub fn page(&self, path: &str) -> Result<Url, url::ParseError> {
        // Not joined: a path that begins with `//` would be read as a host.
        let mut page = self.url(&self.authority)?;
        let (before, query) = path.split_once('?').unzip();
        page.set_path(before.unwrap_or(path));
        page.set_query(query);
        Ok(page)
    }

    fn url(&self, authority: &str) -> Result<Url, url::ParseError> {
        let scheme = if self.secure { "https" } else { "http" };
        Url::parse(&format!("{scheme}://{authority}/"))
    }
}

/// A request that was sent, taken apart.
pub struct SentRequest<'a> {
    pub method: &'a [u8],
    pub path: &'a str,
    headers: &'a [u8],
    body: &'a [u8],
}

impl<'a> SentRequest<'a> {
    /// `None` for bytes that are no request of the engine's.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
        let line = memchr::memmem::find(bytes, b"\r\n")?;
        let mut words = bytes[..line].split(|byte| *byte == b' ');
        let (method, path) = (words.next()?, words.next()?);
        Some(Self {
            method,
            path: std::str::from_utf8(path).ok()?,
            headers: &bytes[(line + 2).min(end + 2)..end + 2],
            body: &bytes[end + 4..],
        })
    }

    /// The host that it named.
    pub fn host(&self) -> &'a str {
        let host = self.lines().find(|line| is_header(line, "host"));
        let value = host.and_then(|line| std::str::from_utf8(line.get(5..)?).ok());
        value.map_or("", str::trim)
    }

    fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.headers
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.len() > 2)
    }

    /// Appends its headers but those of this list; for a GET that it was not before also those that
    /// speak of a body. Where in `out` the first of the headers `after` begins, or their end.
    pub fn write_headers(
        &self,
        left_out: &[&str],
        as_get: bool,
        after: &[&str],
        out: &mut Vec<u8>,
    ) -> usize {
        let mut place = None;
        for line in self.lines() {
            let of_body = line.len() >= 8 && line[..8].eq_ignore_ascii_case(b"content-")
                || is_header(line, "transfer-encoding");
            let unwanted = as_get && of_body || left_out.iter().any(|name| is_header(line, name));
            if !unwanted {
                if place.is_none() && after.iter().any(|name| is_header(line, name)) {
                    place = Some(out.len());
                }
                out.extend_from_slice(line);
            }
        }
        place.unwrap_or(out.len())
    }

    pub fn body(&self, as_get: bool) -> &'a [u8] {
        if as_get { b"" } else { self.body }
    }
}

fn is_header(line: &[u8], name: &str) -> bool {
    line.len() > name.len()
        && line[name.len()] == b':'
        && line[..name.len()].eq_ignore_ascii_case(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(location: &str, from: &str) -> Result<String, String> {
        let origin = TargetOrigin {
            secure: false,
            authority: "h:8080".to_owned(),
        };
        origin.resolve(location.as_bytes(), from, "shop.example")
    }

    #[test]
    fn locations_are_relative_or_on_the_same_host() {
        for (location, path) in [
            ("/x/y?z#part", "/x/y?z"),
            ("http://h:8080/x", "/x"),
            ("HTTP://H:8080", "/"),
            ("http://h:8080?q", "/?q"),
            ("//h:8080/../x", "/x"),
            ("http://Shop.example:80/cart", "/cart"),
            ("next", "/a/b/next"),
            ("./next?x=../y", "/a/b/next?x=../y"),
            ("..", "/a/"),
            ("../../../x", "/x"),
            ("?page=2", "/a/b/c?page=2"),
            ("", "/a/b/c?q=1"),
            ("#there", "/a/b/c?q=1"),
            ("/a b/é", "/a%20b/%C3%A9"),
            ("/at:8", "/at:8"),
            ("1:2", "/a/b/1:2"),
        ] {
            assert_eq!(
                resolved(location, "/a/b/c?q=1"),
                Ok(path.to_owned()),
                "{location}"
            );
        }
    }

    #[test]
    fn a_path_that_begins_with_two_slashes_is_no_host() {
        for (location, path) in [
            ("next", "//x/next"),
            ("?b", "//x/y?b"),
            ("", "//x/y?a?c"),
            ("/z", "/z"),
        ] {
            let to = resolved(location, "//x/y?a?c");
            assert_eq!(to, Ok(path.to_owned()), "{location}");
        }
    }

    #[test]
    fn other_hosts_and_schemes_are_elsewhere() {
        for (location, part) in [
            ("http://other:8080/x", "another host, other:8080"),
            ("http://h/x", "another host, h"),
            ("//h:80/", "another host"),
            ("https://h:8080/x", "from http: to https:"),
            ("mailto:a@b", "no http:"),
        ] {
            let refusal = resolved(location, "/").unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
        let secure = TargetOrigin {
            secure: true,
            authority: "[::1]".to_owned(),
        };
        assert_eq!(
            secure.resolve(b"https://[::1]:443/x", "/", ""),
            Ok("/x".to_owned())
        );
    }

    #[test]
    fn methods_change_as_in_browsers() {
        for (status, method, get) in [
            (301, "POST", true),
            (302, "POST", true),
            (302, "PUT", false),
            (303, "PUT", true),
            (303, "HEAD", false),
            (307, "POST", false),
            (308, "POST", false),
        ] {
            assert_eq!(
                becomes_get(status, method.as_bytes(), false),
                get,
                "{status} {method}"
            );
        }
        assert!(!becomes_get(302, b"POST", true));
        assert!(becomes_get(303, b"POST", true));
    }

    #[test]
    fn a_request_is_written_again_without_what_no_longer_holds() {
        let text = b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Type: x\r\nCookie: a=1\r\nX: y\r\nContent-Length: 2\r\n\r\nhi";
        let sent = SentRequest::read(text).unwrap();
        assert_eq!(
            (sent.method, sent.path, sent.host()),
            (&b"POST"[..], "/a?b", "h")
        );
        let headers = |left_out: &[&str], as_get: bool| {
            let mut out = Vec::new();
            sent.write_headers(left_out, as_get, &[], &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(headers(&["cookie"], true), "Host: h\r\nX: y\r\n");
        assert!(
            headers(&[], false).contains("Cookie: a=1\r\n")
                && headers(&[], false).contains("Content-Length")
        );
        assert_eq!((sent.body(false), sent.body(true)), (&b"hi"[..], &b""[..]));
        let bare = SentRequest::read(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!((bare.host(), bare.lines().count()), ("", 0));
    }

    proptest! {
        /// Whatever a server says, what is asked for is a path in one word, or nothing is.
        #[test]
        fn any_location_is_a_path_or_refused(location in proptest::collection::vec(any::<u8>(), 0..40), from in "/[a-z/.?]{0,12}") {
            let origin = TargetOrigin { secure: false, authority: "h".to_owned() };
            if let Ok(path) = origin.resolve(&location, &from, "h") {
                prop_assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()), "{}", path);
            }
        }
    }
}
