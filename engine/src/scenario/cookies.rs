//! The cookies of one user, of all hosts: kept from `Set-Cookie` and sent back (RFC 6265, sections 5.3 and
//! 5.4). Which domains are public is not known: one without a dot is refused, unless it is the host
//! itself. A server cannot fill the client's memory with them.

use std::net::IpAddr;

use super::set_cookie::SetCookie;
use crate::http::captured::CapturedResponse;

/// A server as cookies see it: its port does not matter (RFC 6265, section 8.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieHost {
    /// In lower case, without brackets.
    name: Box<[u8]>,
    is_address: bool,
    secure: bool,
}

impl CookieHost {
    pub fn new(host: &str, secure: bool) -> Self {
        Self {
            name: host.to_ascii_lowercase().into_bytes().into(),
            is_address: host.parse::<IpAddr>().is_ok(),
            secure,
        }
    }

    /// Whether it is this domain or lies in it (section 5.1.3).
    fn is_in(&self, domain: &[u8]) -> bool {
        match self.name.strip_suffix(domain) {
            Some([]) => true,
            Some([.., b'.']) => !self.is_address,
            _ => false,
        }
    }
}

/// The cookies of one user.
#[derive(Debug, Clone, Default)]
pub struct Jar {
    /// In the order in which they are sent: longer paths first, of one length the oldest first.
    kept: Vec<StoredCookie>,
    /// Cookies set so far.
    set: u32,
    /// The path of a cookie that names none, by the last request (section 5.1.4).
    default_path: Box<[u8]>,
    /// Whether it holds more than requests have put into it themselves.
    given: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StoredCookie {
    /// Name, value, path and domain, one behind the other.
    text: Box<[u8]>,
    value_at: u32,
    path_at: u32,
    domain_at: u32,
    /// How many were set before it.
    set: u32,
    /// The last moment at which it is sent.
    ends_unix_ms: i64,
    /// Only to the host that its domain is.
    host_only: bool,
    secure: bool,
}

impl StoredCookie {
    fn new([name, value, path, domain]: [&[u8]; 4]) -> Self {
        let value_at = name.len();
        let path_at = value_at + value.len();
        Self {
            text: [name, value, path, domain].concat().into(),
            value_at: value_at as u32,
            path_at: path_at as u32,
            domain_at: (path_at + path.len()) as u32,
            set: 0,
            ends_unix_ms: i64::MAX,
            host_only: true,
            secure: false,
        }
    }

    fn name(&self) -> &[u8] {
        &self.text[..self.value_at as usize]
    }

    fn value(&self) -> &[u8] {
        &self.text[self.value_at as usize..self.path_at as usize]
    }

    fn path(&self) -> &[u8] {
        &self.text[self.path_at as usize..self.domain_at as usize]
    }

    fn domain(&self) -> &[u8] {
        &self.text[self.domain_at as usize..]
    }

    fn is_same(&self, other: &Self) -> bool {
        self.text.len() - self.value().len() == other.text.len() - other.value().len()
            && (self.name(), self.path(), self.domain())
                == (other.name(), other.path(), other.domain())
    }

    fn goes_to(&self, host: &CookieHost, path: &[u8]) -> bool {
        let there = if self.host_only {
            self.domain() == &*host.name
        } else {
            host.is_in(self.domain())
        };
        there && (!self.secure || host.secure) && matches_path(path, self.path())
    }
}

/// A longer cookie (name, value, path) is not kept: RFC 6265, section 6.1, asks for no more.
const MAX_COOKIE_BYTES: usize = 4 * 1024;
/// Beyond, those set longest ago make room. Hardly a server takes as long a header.
const MAX_COOKIES: usize = 180;
const MAX_JAR_BYTES: usize = 64 * 1024;

impl Jar {
    /// Puts in a cookie that the plan gives its users.
    pub fn give(&mut self, name: &str, value: &str, path: &str, host: &CookieHost) {
        self.given = true;
        let [name, value, path] = [name, value, path].map(str::as_bytes);
        self.place(StoredCookie::new([name, value, path, &host.name]));
    }

    /// Keeps what the response of this host to the last request sets. Returns how many cookies were
    /// too long or had to make room for others.
    pub fn keep(&mut self, seen: &CapturedResponse, host: &CookieHost, now_ms: i64) -> u64 {
        let headers = seen.headers("set-cookie").filter_map(SetCookie::read);
        let mut dropped = 0;
        for cookie in headers {
            self.given = true;
            dropped += self.put(&cookie, host, now_ms);
        }
        dropped
    }

    /// Puts in the cookies of a request itself, a line for each as in `Set-Cookie`.
    pub fn set(&mut self, lines: &[u8], target: &[u8], host: &CookieHost, now_ms: i64) {
        self.requests(target);
        let lines = lines.split(|byte| *byte == b'\n');
        for cookie in lines.filter_map(SetCookie::read) {
            self.put(&cookie, host, now_ms);
        }
    }

    fn put(&mut self, cookie: &SetCookie<'_>, host: &CookieHost, now_ms: i64) -> u64 {
        let domain = cookie.domain.map(in_lower_case);
        if let Some(domain) = &domain
            && **domain != *host.name
            && !(domain.contains(&b'.') && host.is_in(domain))
        {
            return 0;
        }
        let path = cookie.path.unwrap_or(&self.default_path);
        let whose = domain.as_deref().unwrap_or(&*host.name);
        let mut new = StoredCookie::new([cookie.name, cookie.value, path, whose]);
        new.host_only = domain.is_none();
        new.secure = cookie.secure;
        new.ends_unix_ms = match (cookie.max_age_s, cookie.expires_unix_s) {
            (Some(age_s), _) if age_s <= 0 => i64::MIN,
            (Some(age_s), _) => now_ms.saturating_add(age_s.saturating_mul(1000)),
            (None, Some(unix_s)) => unix_s.saturating_mul(1000),
            (None, None) => i64::MAX,
        };
        let too_long = new.domain_at as usize > MAX_COOKIE_BYTES;
        self.kept.retain(|kept| kept.ends_unix_ms > now_ms);
        if too_long || new.ends_unix_ms <= now_ms {
            self.kept.retain(|kept| !kept.is_same(&new));
            return u64::from(too_long && new.ends_unix_ms > now_ms);
        }
        self.place(new);
        self.make_room()
    }

    /// In the place of the same cookie, which keeps its age; else behind all with paths as long.
    fn place(&mut self, mut new: StoredCookie) {
        self.set = self.set.wrapping_add(1);
        new.set = self.set;
        if let Some(known) = self.kept.iter_mut().find(|kept| kept.is_same(&new)) {
            *known = new;
            return;
        }
        let length = new.path().len();
        let at = self
            .kept
            .partition_point(|kept| kept.path().len() >= length);
        self.kept.insert(at, new);
    }

    fn make_room(&mut self) -> u64 {
        let bytes = |kept: &[StoredCookie]| -> usize {
            kept.iter().map(|cookie| cookie.domain_at as usize).sum()
        };
        let is_full =
            |kept: &[StoredCookie]| kept.len() > MAX_COOKIES || bytes(kept) > MAX_JAR_BYTES;
        let mut evicted = 0;
        while is_full(&self.kept) {
            let age = |kept: &StoredCookie| self.set.wrapping_sub(kept.set);
            let oldest = self.kept.iter().enumerate().max_by_key(|one| age(one.1));
            let Some((oldest, _)) = oldest else { break };
            self.kept.remove(oldest);
            evicted += 1;
        }
        evicted
    }

    /// The response that comes next is to a request for this path.
    pub fn requests(&mut self, target: &[u8]) {
        let default = default_path(target);
        if *self.default_path != *default {
            self.default_path = default.into();
        }
    }

    /// Appends the `Cookie` header of a request to this host. `sets`: it has set some itself.
    pub fn write(
        &mut self,
        target: &[u8],
        host: &CookieHost,
        sets: bool,
        now_ms: i64,
        out: &mut Vec<u8>,
    ) {
        self.requests(target);
        if self.kept.is_empty() || !(self.given || sets) {
            return;
        }
        let path = path_of(target);
        let mut before: &[u8] = b"Cookie: ";
        for kept in &self.kept {
            if kept.ends_unix_ms > now_ms && kept.goes_to(host, path) {
                out.extend_from_slice(before);
                out.extend_from_slice(kept.name());
                out.push(b'=');
                out.extend_from_slice(kept.value());
                before = b"; ";
            }
        }
        if before == b"; " {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A domain as hosts are written; what cannot be one stays as it is, and no host is in it.
fn in_lower_case(domain: &[u8]) -> Vec<u8> {
    if !domain.is_ascii()
        && let Ok(text) = std::str::from_utf8(domain)
        && let Ok(host) = url::Host::parse(text)
    {
        return host.to_string().into_bytes();
    }
    domain.to_ascii_lowercase()
}

/// Of what a request asks for: a proxy is asked for a whole URL.
fn path_of(target: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'?', target).unwrap_or(target.len());
    let target = &target[..end];
    if target.starts_with(b"/") {
        return target;
    }
    let authority = memchr::memmem::find(target, b"://").map_or(0, |at| at + 3);
    let path = memchr::memchr(b'/', &target[authority..]);
    path.map_or(b"/", |at| &target[authority + at..])
}

/// Up to the last slash.
fn default_path(target: &[u8]) -> &[u8] {
    let path = path_of(target);
    match memchr::memrchr(b'/', path) {
        None | Some(0) => b"/",
        Some(end) => &path[..end],
    }
}

/// Section 5.1.4.
fn matches_path(path: &[u8], cookie: &[u8]) -> bool {
    path.starts_with(cookie)
        && (path.len() == cookie.len() || cookie.ends_with(b"/") || path[cookie.len()] == b'/')
}

#[cfg(test)]
#[path = "cookies_tests.rs"]
mod tests;
