//! What a page embeds, as a browser asks for it with the page: attributes of the tags of HTML, and what a
//! style sheet imports. One response in, paths out; it knows nothing of users and asks for nothing itself.
//! The tags and attributes are those of JMeter's parser ("Retrieve All Embedded Resources").

use std::collections::HashSet;
use std::sync::LazyLock;

use html5gum::{StartTag, State, Token, Tokenizer};
use memchr::memmem;
use url::{Position, Url};

use super::capture_source::{MAX_VALUE_BYTES, regex};
use super::filter::percent_encode;
use super::names::check_name;
use super::redirect::TargetOrigin;
use crate::http::captured::CapturedResponse;
use crate::plan;

/// URLs in an attribute `style`, where they are quoted.
static STYLE_URL: LazyLock<Option<regex::Regex>> =
    LazyLock::new(|| regex::Regex::new(r#"(?i)url\(\s*['"](.*)['"]\s*\)"#).ok());

/// Which resources of a page are wanted.
#[derive(Debug)]
pub struct Resources {
    origin: TargetOrigin,
    matching: Option<regex::bytes::Regex>,
    not_matching: Option<regex::bytes::Regex>,
}

impl Resources {
    /// Of pages of this server. The error says what is wrong.
    pub fn compile(plan: &plan::Resources, origin: &TargetOrigin) -> Result<Self, String> {
        check_name(&plan.into)?;
        let pattern = |text: &Option<String>| {
            let read = text.as_ref().map(|text| regex(text));
            read.transpose().map_err(|why| format!("resources {why}"))
        };
        Ok(Self {
            origin: origin.clone(),
            matching: pattern(&plan.matching)?,
            not_matching: pattern(&plan.not_matching)?,
        })
    }

    /// The JSON list of the paths that the response embeds on the same server, without the slash at
    /// their beginning. A response that is an error embeds nothing.
    pub fn list(&self, seen: &CapturedResponse, path: &[u8]) -> Vec<u8> {
        let mut list = vec![b'['];
        for url in self.urls(seen, path) {
            let path = &url[Position::BeforePath..Position::AfterQuery];
            let path = escaped(path.strip_prefix('/').unwrap_or(path));
            let quoted = serde_json::Value::from(path).to_string();
            if list.len() + quoted.len() + 2 > MAX_VALUE_BYTES {
                break;
            }
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(quoted.as_bytes());
        }
        list.push(b']');
        list
    }

    fn urls(&self, seen: &CapturedResponse, path: &[u8]) -> Vec<Url> {
        let right = matches!(seen.status(), Some([b'2' | b'3', ..]));
        let kind = seen.headers("content-type").last().unwrap_or_default();
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
        let page = std::str::from_utf8(path).ok();
        let Some(page) = page.and_then(|path| self.origin.page(path).ok()) else {
            return Vec::new();
        };
        let found = match kind.trim_ascii().to_ascii_lowercase().as_slice() {
            b"text/html" | b"application/xhtml+xml" | b"application/xml" | b"text/xml" => {
                of_html(&seen.body, page.clone())
            }
            b"text/css" => imports(&seen.body, &page),
            _ => Vec::new(),
        };
        let wanted = |url: &Url| {
            let text = url.as_str().as_bytes();
            url.origin() == page.origin()
                && self.matching.as_ref().is_none_or(|one| one.is_match(text))
                && !self
                    .not_matching
                    .as_ref()
                    .is_some_and(|one| one.is_match(text))
        };
        found
            .into_iter()
            .filter(|url| right && wanted(url))
            .collect()
    }
}

/// URLs in the order of the page, each once.
struct Found {
    base: Url,
    urls: Vec<Url>,
    known: HashSet<String>,
}

impl Found {
    fn add(&mut self, text: &str) {
        let text: String = text
            .trim()
            .chars()
            .filter(|one| !matches!(one, '\n' | '\r' | '\u{8}' | '\u{c}'))
            .collect();
        if text.is_empty() {
            return;
        }
        if let Ok(url) = self.base.join(&text)
            && self.known.insert(url.as_str().to_owned())
        {
            self.urls.push(url);
        }
    }

    fn tag(&mut self, tag: &StartTag<()>) {
        let text = |name: &str| {
            let value = tag.attributes.get(name.as_bytes());
            value.map_or_else(String::new, |value| {
                String::from_utf8_lossy(&value.value).into_owned()
            })
        };
        match tag.name.as_slice() {
            b"img" | b"script" | b"frame" | b"iframe" | b"embed" | b"bgsound" => {
                self.add(&text("src"));
            }
            b"base" => {
                let href = Some(text("href")).filter(|href| !href.is_empty());
                if let Some(Ok(base)) = href.map(|href| self.base.join(&href)) {
                    self.base = base;
                }
            }
            b"link" => {
                let rel = text("rel").to_ascii_lowercase();
                if matches!(rel.as_str(), "stylesheet" | "icon" | "shortcut icon") {
                    self.add(&text("href"));
                }
            }
            b"input" if text("type").eq_ignore_ascii_case("image") => self.add(&text("src")),
            b"input" => {}
            b"object" => {
                self.add(&text("codebase"));
                self.add(&text("data"));
            }
            b"applet" => {
                let (folder, archive) = (text("codebase"), text("archive"));
                let name = if archive.trim().is_empty() {
                    text("code")
                } else {
                    archive
                };
                if folder.trim().is_empty() {
                    self.add(&text("code"));
                } else {
                    self.add(&format!("{folder}/{name}"));
                }
            }
            _ => self.add(&text("background")),
        }
        if let Some(pattern) = &*STYLE_URL {
            for found in pattern.captures_iter(&text("style")) {
                self.add(found.get(1).map_or("", |one| one.as_str()));
            }
        }
    }
}

fn of_html(text: &[u8], base: Url) -> Vec<Url> {
    let mut found = Found {
        base,
        urls: Vec::new(),
        known: HashSet::new(),
    };
    let mut tokens = Tokenizer::new(text);
    while let Some(Ok(token)) = tokens.next() {
        if let Token::StartTag(tag) = token {
            if let Some(state) = text_only(&tag.name) {
                tokens.set_state(state);
            }
            found.tag(&tag);
        }
    }
    found.urls
}

/// How the content of an element is read that is text to a browser that runs scripts.
fn text_only(element: &[u8]) -> Option<State> {
    match element {
        b"script" => Some(State::ScriptData),
        b"textarea" | b"title" => Some(State::RcData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" | b"noscript" => {
            Some(State::RawText)
        }
        _ => None,
    }
}

/// What the rules `@import` at the beginning of a style sheet name (CSS Cascade 4, section 2).
fn imports(text: &[u8], base: &Url) -> Vec<Url> {
    let mut found = Vec::new();
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"/*") {
            let Some(end) = memmem::find(&rest[2..], b"*/") else {
                break;
            };
            rest = &rest[end + 4..];
            continue;
        }
        let is = |word: &[u8]| {
            rest.get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let Some(end) = memchr::memchr(b';', rest) else {
            break;
        };
        if is(b"@import") {
            let named = String::from_utf8_lossy(&rest[7..end]);
            if let Some(url) = imported(named.trim()).and_then(|name| base.join(name).ok()) {
                found.push(url);
            }
        } else if !is(b"@charset") {
            break;
        }
        rest = &rest[end + 1..];
    }
    found
}

/// The URL of `"a.css"`, `url(a.css)` or `url("a.css")`, whatever media stand behind it.
fn imported(text: &str) -> Option<&str> {
    let function = text
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("url("));
    let text = if function {
        text[4..].trim_start()
    } else {
        text
    };
    match text.chars().next()? {
        quote @ ('"' | '\'') => text[1..].split_once(quote).map(|(name, _)| name),
        _ if function => text.split_once(')').map(|(name, _)| name.trim_end()),
        _ => None,
    }
}

/// With those characters as `%xx` that no URL may hold (RFC 3986) and that a browser leaves as they are.
fn escaped(path: &str) -> String {
    let mut out = path.as_bytes().to_vec();
    percent_encode(&mut out, 0, |byte| !br#"|^`{}\"<>"#.contains(&byte));
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
#[path = "resources_tests.rs"]
mod tests;
