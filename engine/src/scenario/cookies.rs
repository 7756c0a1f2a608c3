//! The cookies of one user: kept from `Set-Cookie` and sent back (RFC 6265), as far as one target needs it: names, values, paths and
//! the end of a cookie's life at once. An expiry in the future is not awaited.

use cookie::{Cookie, time::OffsetDateTime};

use super::look::Seen;

/// See the module.
#[derive(Debug, Default)]
pub struct Jar {
    kept: Vec<Kept>,
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
    /// Keeps what the answer to a request for `path` sets.
    pub fn keep(&mut self, seen: &Seen, path: &[u8]) {
        for value in seen.headers("set-cookie") {
            if let Some(cookie) = std::str::from_utf8(value)
                .ok()
                .and_then(|text| Cookie::parse(text).ok())
            {
                self.put(&cookie, path);
            }
        }
    }

    fn put(&mut self, cookie: &Cookie<'_>, request: &[u8]) {
        let path = match cookie.path() {
            Some(path) if path.starts_with('/') => path.to_owned(),
            _ => default_path(request),
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

    /// Appends the `Cookie` header for this path, or nothing.
    pub fn write(&self, path: &[u8], out: &mut Vec<u8>) {
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

/// RFC 6265, section 5.1.4: up to the last slash.
fn default_path(request: &[u8]) -> String {
    let path = without_query(request);
    let end = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .unwrap_or_default();
    if end == 0 {
        "/".to_owned()
    } else {
        String::from_utf8_lossy(&path[..end]).into_owned()
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
            jar.keep(&seen, request.as_bytes());
        }
        jar
    }

    fn header(jar: &Jar, path: &str) -> String {
        let mut out = Vec::new();
        jar.write(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_come_back_to_their_path() {
        let jar = after(
            "/shop/cart?x=1",
            &["Set-Cookie: a=1; HttpOnly", "Set-Cookie: b=2; Path=/", "Set-Cookie: a=3"],
        );
        assert_eq!(header(&jar, "/shop/x?y"), "Cookie: b=2; a=3\r\n");
        assert_eq!(header(&jar, "/shopping"), "Cookie: b=2\r\n");
        assert_eq!(header(&Jar::default(), "/"), "");
    }

    #[test]
    fn a_cookie_can_be_taken_back() {
        for end in ["a=; Max-Age=0", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
            let jar = after("/", &["Set-Cookie: a=1", &format!("Set-Cookie: {end}")]);
            assert_eq!(header(&jar, "/"), "", "{end}");
        }
        let stays = after("/", &["Set-Cookie: a=1; Max-Age=60"]);
        assert_eq!(header(&stays, "/"), "Cookie: a=1\r\n");
    }

    #[test]
    fn what_is_no_cookie_is_left_alone() {
        let jar = after("/", &["Set-Cookie: ", "Set-Cookie: novalue", "X: a=1"]);
        assert_eq!(header(&jar, "/"), "");
    }
}
