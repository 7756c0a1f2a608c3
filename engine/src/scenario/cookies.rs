//! The cookies of one user: kept from `Set-Cookie` and sent back (RFC 6265), as far as one target needs it: names, values, paths and
//! the end of a cookie's life at once. An expiry in the future is not awaited.

use std::borrow::Cow;

use cookie::{Cookie, time::OffsetDateTime};

use super::look::Seen;

/// See the module.
#[derive(Debug, Default)]
pub struct Jar {
    kept: Vec<Kept>,
    /// The path of a cookie that names none, by the last request (RFC 6265, section 5.1.4).
    default_path: Box<str>,
}

#[derive(Debug, PartialEq, Eq)]
struct Kept {
    name: Box<str>,
    value: Box<str>,
    path: Box<str>,
}

/// More cookies per user are not kept, as browsers do.
const MAX_COOKIES: usize = 180;

impl Jar {
    /// Keeps what the answer to the last request sets.
    pub fn keep(&mut self, seen: &Seen) {
        for value in seen.headers("set-cookie") {
            if let Some(cookie) = std::str::from_utf8(value)
                .ok()
                .and_then(|text| Cookie::parse(text).ok())
            {
                self.put(&cookie);
            }
        }
    }

    fn put(&mut self, cookie: &Cookie<'_>) {
        let path = match cookie.path() {
            Some(path) if path.starts_with('/') => path.to_owned(),
            _ => self.default_path.to_string(),
        };
        let same = |kept: &Kept| *kept.name == *cookie.name() && *kept.path == *path;
        self.kept.retain(|kept| !same(kept));
        if self.kept.len() < MAX_COOKIES && !has_ended(cookie) {
            self.kept.push(Kept {
                name: cookie.name().into(),
                value: cookie.value().into(),
                path: path.into(),
            });
        }
    }

    /// Appends the `Cookie` header of a request for this path, or nothing.
    pub fn write(&mut self, path: &[u8], out: &mut Vec<u8>) {
        let default = default_path(path);
        if *self.default_path != *default {
            self.default_path = default.into();
        }
        let mut first = true;
        for kept in &self.kept {
            if matches_path(path, kept.path.as_bytes()) {
                out.extend_from_slice(if first { b"Cookie: " } else { b"; " });
                out.extend_from_slice(kept.name.as_bytes());
                out.push(b'=');
                out.extend_from_slice(kept.value.as_bytes());
                first = false;
            }
        }
        if !first {
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn has_ended(cookie: &Cookie<'_>) -> bool {
    match (cookie.max_age(), cookie.expires_datetime()) {
        (Some(age), _) => !age.is_positive(),
        (None, Some(at)) => at <= OffsetDateTime::now_utc(),
        (None, None) => false,
    }
}

/// Up to the last slash.
fn default_path(request: &[u8]) -> Cow<'_, str> {
    let path = without_query(request);
    let end = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .unwrap_or_default();
    if end == 0 {
        Cow::Borrowed("/")
    } else {
        String::from_utf8_lossy(&path[..end])
    }
}

fn matches_path(request: &[u8], cookie: &[u8]) -> bool {
    let path = without_query(request);
    path.starts_with(cookie)
        && (path.len() == cookie.len() || cookie.ends_with(b"/") || path[cookie.len()] == b'/')
}

fn without_query(request: &[u8]) -> &[u8] {
    request
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(request: &str, heads: &[&str]) -> Jar {
        let mut jar = Jar::default();
        for head in heads {
            let mut seen = Seen::new(false);
            seen.begin(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
            jar.write(request.as_bytes(), &mut Vec::new());
            jar.keep(&seen);
        }
        jar
    }

    fn header(jar: &mut Jar, path: &str) -> String {
        let mut out = Vec::new();
        jar.write(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_come_back_to_their_path() {
        let mut jar = after(
            "/shop/cart?x=1",
            &[
                "Set-Cookie: a=1; HttpOnly",
                "Set-Cookie: b=2; Path=/",
                "Set-Cookie: a=3",
            ],
        );
        assert_eq!(header(&mut jar, "/shop/x?y"), "Cookie: b=2; a=3\r\n");
        assert_eq!(header(&mut jar, "/shopping"), "Cookie: b=2\r\n");
        assert_eq!(header(&mut Jar::default(), "/"), "");
    }

    #[test]
    fn a_cookie_can_be_taken_back() {
        for end in ["a=; Max-Age=0", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
            let mut jar = after("/", &["Set-Cookie: a=1", &format!("Set-Cookie: {end}")]);
            assert_eq!(header(&mut jar, "/"), "", "{end}");
        }
        let mut stays = after("/", &["Set-Cookie: a=1; Max-Age=60"]);
        assert_eq!(header(&mut stays, "/"), "Cookie: a=1\r\n");
    }

    #[test]
    fn what_is_no_cookie_is_left_alone() {
        let mut jar = after("/", &["Set-Cookie: ", "Set-Cookie: novalue", "X: a=1"]);
        assert_eq!(header(&mut jar, "/"), "");
    }
}
