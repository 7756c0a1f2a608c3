//! What one user remembers of responses, as a cache does (RFC 9111): validators, which go out with
//! its next request for the same URL, and how long a response stays fresh. It keeps no bodies.
//! `Vary` is looked at only where it is `*`: then nothing is kept.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::http::captured::CapturedResponse;
use crate::plan::{CachePlan, CacheRules};

/// What JMeter takes for the life of a response that says nothing of it.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// What one user's cache knows of responses, by URL.
#[derive(Debug, Default)]
pub struct Cache {
    kept: HashMap<Box<[u8]>, CacheEntry>,
    /// The keys, the oldest first.
    order: VecDeque<Box<[u8]>>,
    /// What the last request asked for, where its response may be kept.
    asked: Option<Box<[u8]>>,
    /// The path of the next request, when it was written to look whether its response is fresh.
    pub drawn: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CacheEntry {
    modified: Option<Box<[u8]>>,
    tag: Option<Box<[u8]>>,
    fresh_until: Option<SystemTime>,
}

impl Cache {
    pub fn forget(&mut self) {
        self.kept.clear();
        self.order.clear();
    }

    /// Whether what stands at this path needs no request then.
    pub fn is_fresh(&self, path: &[u8], then: SystemTime) -> bool {
        let kept = self.kept.get(path);
        kept.is_some_and(|kept| kept.fresh_until.is_some_and(|until| until > then))
    }

    /// Appends the validators of what stands at this path; `keeps`: the response may be kept.
    pub fn write(&mut self, path: &[u8], keeps: bool, out: &mut Vec<u8>) {
        self.asked = keeps.then(|| path.into());
        let Some(kept) = self.kept.get(path) else {
            return;
        };
        for (name, value) in [
            ("If-Modified-Since", &kept.modified),
            ("If-None-Match", &kept.tag),
        ] {
            if let Some(value) = value {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// The response that comes next is to this request for a path, and may be kept.
    pub fn asks_for(&mut self, path: &[u8]) {
        self.asked = Some(path.into());
    }

    /// Another request, whose response is not kept.
    pub fn passes(&mut self) {
        self.asked = None;
    }

    /// Keeps what the response to the last request says.
    pub fn keep(&mut self, seen: &CapturedResponse, plan: &CachePlan, now: SystemTime) {
        let Some(path) = self.asked.take() else {
            return;
        };
        let right = matches!(seen.status(), Some([b'2', ..] | b"304"));
        let last = |name: &str| seen.headers(name).last().map(<[u8]>::to_vec);
        let control =
            last("cache-control").map(|value| String::from_utf8_lossy(&value).into_owned());
        let control = control.unwrap_or_default();
        let vary = last("vary");
        let jmeter = plan.rules == CacheRules::Jmeter;
        if !right || vary.as_deref() == Some(b"*") {
            return;
        }
        if control.contains("no-store") && (plan.fresh || !jmeter) {
            if !jmeter {
                self.remove(&path);
            }
            return;
        }
        let mut kept = CacheEntry {
            modified: last("last-modified").map(Vec::into_boxed_slice),
            tag: last("etag").map(Vec::into_boxed_slice),
            fresh_until: plan
                .fresh
                .then(|| life(seen, &control, jmeter, now))
                .flatten(),
        };
        let expires = last("expires").is_some();
        if kept.modified.is_none() && kept.tag.is_none() && !expires && control.is_empty() {
            return;
        }
        if let Some(known) = self.kept.get_mut(&path) {
            if jmeter && vary.is_none() {
                return;
            }
            if seen.status() == Some(b"304") {
                kept.modified = kept.modified.or_else(|| known.modified.take());
                kept.tag = kept.tag.or_else(|| known.tag.take());
            }
            *known = kept;
            return;
        }
        if self.order.len() >= plan.most_urls.max(1)
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        self.order.push_back(path.clone());
        self.kept.insert(path, kept);
    }

    fn remove(&mut self, path: &[u8]) {
        if self.kept.remove(path).is_some() {
            self.order.retain(|known| **known != *path);
        }
    }
}

/// Until when a response is fresh: by RFC 9111 as it says; JMeter also guesses.
fn life(
    seen: &CapturedResponse,
    control: &str,
    jmeter: bool,
    now: SystemTime,
) -> Option<SystemTime> {
    let expires = seen.headers("expires").last();
    // What is no date has expired.
    let date = expires.map(|value| moment(value).unwrap_or(SystemTime::UNIX_EPOCH));
    if control.contains("no-cache") {
        return date.filter(|_| jmeter);
    }
    if let Some((_, age)) = control.split_once("max-age=") {
        let digits = age.split(|one: char| !one.is_ascii_digit()).next();
        let seconds = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        return Some(now + Duration::from_secs(u64::min(seconds, YEAR.as_secs())));
    }
    if date.is_some() || !jmeter {
        return date;
    }
    let known = |name: &str| seen.headers(name).last().and_then(moment);
    let guessed = match (known("date"), known("last-modified")) {
        (Some(date), Some(modified)) => date.duration_since(modified).unwrap_or_default() / 10,
        _ => YEAR,
    };
    Some(now + guessed)
}

fn moment(value: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(value).ok()?;
    OffsetDateTime::parse(text.trim(), &Rfc2822)
        .ok()
        .map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Wed, 01 Jan 2025 00:00:00 GMT";

    fn now() -> SystemTime {
        moment(b"Thu, 01 Jan 2026 00:00:00 GMT").unwrap()
    }

    /// What goes out after these responses, and for how many seconds nothing does.
    fn after(rules: &str, fresh: bool, heads: &[(&str, &str)]) -> (String, u64) {
        let plan = serde_json::json!({"rules": rules, "fresh": fresh, "most_urls": 2});
        let plan: CachePlan = serde_json::from_value(plan).unwrap();
        let mut cache = Cache::default();
        for (status, head) in heads {
            let mut seen = CapturedResponse::new(false);
            seen.begin(format!("HTTP/1.1 {status} X\r\n{head}\r\n\r\n").as_bytes());
            cache.write(b"/a", true, &mut Vec::new());
            cache.keep(&seen, &plan, now());
        }
        let mut out = Vec::new();
        cache.write(b"/a", true, &mut out);
        let seconds = [1, 49, 99, 3_000_000, 30_000_000];
        let is_fresh =
            |seconds: &&u64| cache.is_fresh(b"/a", now() + Duration::from_secs(**seconds));
        let longest = seconds.iter().rfind(is_fresh);
        (
            String::from_utf8(out).unwrap(),
            longest.copied().unwrap_or(0),
        )
    }

    #[test]
    fn validators_come_back() {
        let both = format!("ETag: \"a\"\r\nLast-Modified: {OLD}");
        let sent = format!("If-Modified-Since: {OLD}\r\nIf-None-Match: \"a\"\r\n");
        assert_eq!(after("rfc9111", false, &[("200", &both)]), (sent, 0));
        assert_eq!(after("rfc9111", false, &[("404", &both)]).0, "");
        let star = format!("{both}\r\nVary: *");
        assert_eq!(after("rfc9111", false, &[("200", &star)]).0, "");
        let changed = [("200", "ETag: \"a\""), ("200", "ETag: \"b\"")];
        assert_eq!(
            after("rfc9111", false, &changed).0,
            "If-None-Match: \"b\"\r\n"
        );
        assert_eq!(
            after("jmeter", false, &changed).0,
            "If-None-Match: \"a\"\r\n"
        );
        let confirmed = [("200", "ETag: \"a\""), ("304", "Cache-Control: max-age=50")];
        assert_eq!(
            after("rfc9111", true, &confirmed),
            ("If-None-Match: \"a\"\r\n".to_owned(), 49)
        );
    }

    #[test]
    fn a_response_is_fresh_as_long_as_it_says_and_by_jmeters_rules_longer() {
        let seconds = |rules: &str, head: &str| after(rules, true, &[("200", head)]).1;
        let future = "Expires: Fri, 01 Jan 2027 00:00:00 GMT";
        for (head, rfc, jmeter) in [
            ("Cache-Control: public, max-age=100", 99, 99),
            ("Cache-Control: max-age=50, must-revalidate", 49, 49),
            (future, 30_000_000, 30_000_000),
            ("Expires: 0", 0, 0),
            ("ETag: \"a\"", 0, 30_000_000),
            ("Cache-Control: no-cache\r\nETag: \"a\"", 0, 0),
            ("Cache-Control: no-cache, max-age=50", 0, 0),
            ("Cache-Control: no-store\r\nETag: \"a\"", 0, 0),
            ("X: y", 0, 0),
        ] {
            assert_eq!(seconds("rfc9111", head), rfc, "{head}");
            assert_eq!(seconds("jmeter", head), jmeter, "{head}");
        }
        let guessed = format!("Last-Modified: {OLD}\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT");
        assert_eq!(seconds("jmeter", &guessed), 3_000_000);
        let both = format!("Cache-Control: no-cache\r\n{future}");
        assert_eq!(seconds("jmeter", &both), 30_000_000);
    }

    #[test]
    fn of_too_many_the_oldest_is_forgotten() {
        let plan: CachePlan = serde_json::from_value(serde_json::json!({"most_urls": 2})).unwrap();
        let mut cache = Cache::default();
        let mut seen = CapturedResponse::new(false);
        seen.begin(b"HTTP/1.1 200 X\r\nETag: \"a\"\r\n\r\n");
        let asked = |cache: &mut Cache, path: &[u8]| {
            let mut out = Vec::new();
            cache.write(path, true, &mut out);
            cache.keep(&seen, &plan, now());
            !out.is_empty()
        };
        let paths: [&[u8]; 4] = [b"/1", b"/2", b"/3", b"/1"];
        assert_eq!(paths.map(|path| asked(&mut cache, path)), [false; 4]);
        assert!(asked(&mut cache, b"/3"));
        cache.forget();
        assert!(!asked(&mut cache, b"/3"));
    }
}
