//! A step's request, written as bytes. A step without placeholders is written once before the load starts;
//! any other for every send. It knows nothing of sockets.

mod compile;

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::cookies::CookieHost;
use super::filter::RequestPart;
use super::redirect::SentRequest;
use super::standard_url;
use super::template::Template;
use super::vars::{Shared, Vars};
use crate::payload::{Outgoing, Rest};
use crate::plan::{CachePlan, CacheRules, HttpVersion, PathForm};

/// The request of a step, compiled.
#[derive(Debug)]
pub struct Request {
    method: String,
    path: Template,
    path_as: PathForm,
    headers: Vec<Header>,
    /// Whether header values are Node's.
    of_node: bool,
    /// Further lines of the head, as they are sent.
    lines: Option<Template>,
    /// Before which header they stand; at the end, after them all.
    lines_at: usize,
    body: Option<Content>,
    chunked: bool,
    version: HttpVersion,
    /// Whether a header of ours says if the connection stays.
    adds_connection: bool,
    adds_length: bool,
    /// Where its cookies go; `None`: users keep none.
    cookies: Option<Arc<CookieHost>>,
    /// Put into them before it is written.
    set_cookies: Option<Template>,
    cache: Option<CachePlan>,
    /// Before which header the validators of the cache stand, and the cookies; at the end, after them all.
    added_at: usize,
    /// Before which header the length stands; `None`: it is the last.
    length_at: Option<usize>,
    expects_continue: bool,
    /// The value that holds what was asked for, until the response says what the page embeds.
    pub page: Option<usize>,
}

#[derive(Debug)]
struct Header {
    name: String,
    value: Template,
}

impl Header {
    fn new(name: &str, value: Template) -> Self {
        let name = name.to_owned();
        Self { name, value }
    }
}

#[derive(Debug)]
enum Content {
    Text(Template),
    /// With its length.
    File(Arc<File>, u64),
}

/// A request that was sent, and how the next differs from it.
pub struct Again<'a> {
    pub before: &'a [u8],
    pub path: &'a str,
    /// It is a GET, without a body.
    pub as_get: bool,
}

/// The context that a request is rendered with.
pub struct RenderContext<'a, R> {
    pub shared: &'a Shared,
    pub vars: &'a mut Vars,
    pub rng: &'a mut R,
}

/// The target in the first line of a request.
pub fn target_of(request: &[u8]) -> Option<&[u8]> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    line.split(|byte| *byte == b' ').nth(1)
}

/// Writes UTF-8 in ISO-8859-1.
fn in_latin1(out: &mut Vec<u8>) {
    let latin1 = match std::str::from_utf8(out) {
        Ok(text) if !text.is_ascii() => text
            .chars()
            .map(|one| u8::try_from(one).unwrap_or(b'?'))
            .collect(),
        _ => return,
    };
    *out = latin1;
}

/// Takes out the lines before `end` that begin so, whatever the case of letters.
fn without_line(out: &mut Vec<u8>, end: usize, begins: &[u8]) {
    let mut ends: Vec<usize> = memchr::memchr_iter(b'\n', &out[..end])
        .map(|at| at + 1)
        .collect();
    while let Some(to) = ends.pop() {
        let from = ends.last().copied().unwrap_or(to);
        let line = &out[from..to];
        if line
            .get(..begins.len())
            .is_some_and(|first| first.eq_ignore_ascii_case(begins))
        {
            out.drain(from..to);
        }
    }
}

impl Request {
    fn templates(&self) -> impl Iterator<Item = &Template> {
        let body = match &self.body {
            Some(Content::Text(text)) => Some(text),
            _ => None,
        };
        std::iter::once(&self.path)
            .chain(self.headers.iter().map(|header| &header.value))
            .chain(&self.lines)
            .chain(&self.set_cookies)
            .chain(body)
    }

    /// Whether a value of this user makes a request of it that its form does not allow.
    pub fn cannot_hold(&self, shared: &Shared, vars: &Vars) -> bool {
        let in_path = self.path_as == PathForm::Url
            && self
                .path
                .values(shared, vars)
                .any(standard_url::is_malformed);
        let other = |value: &[u8]| {
            std::str::from_utf8(value).is_ok_and(|text| text.chars().any(|one| one > '\u{ff}'))
        };
        let values = self.headers.iter().map(|header| &header.value);
        in_path
            || self.of_node
                && values
                    .chain(&self.set_cookies)
                    .any(|text| text.values(shared, vars).any(other))
    }

    /// Rows of the feeder that its target takes values of.
    pub fn rows(&self, shared: &Shared) -> Option<u32> {
        self.path.rows(shared)
    }

    /// Whether it can be written once for all.
    pub fn is_fixed(&self) -> bool {
        self.cookies.is_none()
            && self.cache.is_none()
            && self.page.is_none()
            && !self.expects_continue
            && !matches!(self.body, Some(Content::File(..)))
            && self.templates().all(Template::is_literal)
    }

    /// Length of the file that is read while it goes out; 0 when there is none.
    pub fn has_file(&self) -> bool {
        matches!(self.body, Some(Content::File(..)))
    }

    /// Whether the body waits until the server asks for it.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    pub fn uses_vars(&self) -> bool {
        self.cookies.is_some()
            || self.cache.is_some()
            || self.page.is_some()
            || self.templates().any(Template::uses_vars)
    }

    /// The captured values without which it cannot be sent.
    pub fn needs(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.templates().flat_map(Template::needs).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Writes the request; `last`: the connection is closed after it. `spare` is memory to use again.
    pub fn write<R: Rng>(
        &self,
        last: bool,
        context: &mut RenderContext<'_, R>,
        spare: Vec<u8>,
    ) -> Outgoing {
        let mut out = spare;
        out.clear();
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        let path_from = out.len();
        match context
            .vars
            .cache
            .as_mut()
            .and_then(|cache| cache.drawn.take())
        {
            Some(drawn) => out.extend_from_slice(&drawn),
            None => self.write_path(context, &mut out),
        }
        let path = path_from..out.len();
        if let Some(slot) = self.page {
            context.vars.set(slot, out[path.clone()].to_vec());
        }
        out.extend_from_slice(self.version_line());
        let mut length_from = None;
        for (place, header) in self.headers.iter().enumerate() {
            if place == self.lines_at {
                self.write_lines(context, &mut out);
            }
            if place == self.added_at {
                self.write_kept(path.clone(), context, &mut out);
            }
            if Some(place) == self.length_at {
                length_from = Some(out.len());
            }
            out.extend_from_slice(header.name.as_bytes());
            out.extend_from_slice(b": ");
            context.write(&header.value, RequestPart::Header, &mut out);
            out.extend_from_slice(b"\r\n");
        }
        if self.lines_at >= self.headers.len() {
            self.write_lines(context, &mut out);
        }
        if self.added_at >= self.headers.len() {
            self.write_kept(path, context, &mut out);
        }
        if self.adds_connection {
            out.extend_from_slice(self.connection_line(last));
        }
        self.write_body(context, out, length_from)
    }

    fn write_path<R: Rng>(&self, context: &mut RenderContext<'_, R>, out: &mut Vec<u8>) {
        let from = out.len();
        match self.path_as {
            PathForm::Url => {
                context.write(&self.path, RequestPart::Body, out);
                standard_url::normalize(out, from);
            }
            _ => context.write(&self.path, RequestPart::Path, out),
        }
    }

    fn write_lines<R: Rng>(&self, context: &mut RenderContext<'_, R>, out: &mut Vec<u8>) {
        if let Some(lines) = &self.lines {
            context.write(lines, RequestPart::Body, out);
        }
    }

    /// What the user keeps for this path: validators of the cache, then cookies.
    fn write_kept<R: Rng>(
        &self,
        path: Range<usize>,
        context: &mut RenderContext<'_, R>,
        out: &mut Vec<u8>,
    ) {
        let own = self.set_cookies.as_ref().map_or_else(Vec::new, |cookies| {
            cookies.text(context.shared, context.vars, context.rng)
        });
        let vars = &mut *context.vars;
        if let Some(plan) = &self.cache {
            let keeps = self.method == "GET";
            let cache = vars.cache.get_or_insert_default();
            if keeps || plan.rules == CacheRules::Jmeter {
                let path = out[path.clone()].to_vec();
                cache.write(&path, keeps, out);
            } else {
                cache.passes();
            }
        }
        if let Some(host) = &self.cookies {
            let (path, now_ms) = (out[path].to_vec(), vars.unix_ms());
            if !own.is_empty() {
                vars.cookies.set(&own, &path, host, now_ms);
            }
            let from = out.len();
            vars.cookies
                .write(&path, host, !own.is_empty(), now_ms, out);
            if out.len() > from {
                without_line(out, from, b"cookie:");
            }
        }
    }

    /// Whether its response is in the user's cache and still fresh after this time; if not, its
    /// path stays as it was written for that.
    pub fn is_fresh<R: Rng>(&self, context: &mut RenderContext<'_, R>, after: Duration) -> bool {
        if !self.cache.is_some_and(|plan| plan.fresh) || self.method != "GET" {
            return false;
        }
        let mut path = Vec::new();
        self.write_path(context, &mut path);
        let then = context.vars.now() + after;
        let cache = context.vars.cache.get_or_insert_default();
        let fresh = cache.is_fresh(&path, then);
        cache.drawn = (!fresh).then_some(path);
        if let Some(slot) = self.page.filter(|_| fresh) {
            context.vars.set(slot, Vec::new());
        }
        fresh
    }

    /// Writes the request that follows a redirect: the one before, for another path.
    pub fn write_again(
        &self,
        again: &Again<'_>,
        last: bool,
        vars: &mut Vars,
        spare: Vec<u8>,
    ) -> Outgoing {
        let mut out = spare;
        out.clear();
        let Some(sent) = SentRequest::read(again.before) else {
            return Outgoing::new(out, None);
        };
        out.extend_from_slice(if again.as_get { b"GET" } else { sent.method });
        out.push(b' ');
        out.extend_from_slice(again.path.as_bytes());
        if let Some(slot) = self.page {
            vars.set(slot, again.path.as_bytes().to_vec());
        }
        out.extend_from_slice(self.version_line());
        let mut anew = Vec::new();
        if self.cookies.is_some() {
            anew.push("cookie");
        }
        if self.cache.is_some() {
            anew.extend(["if-none-match", "if-modified-since"]);
        }
        if self.adds_connection {
            anew.push("connection");
        }
        let mut kept = Vec::new();
        if self.cache.is_some() {
            let keeps = again.as_get || self.method == "GET";
            let cache = vars.cache.get_or_insert_default();
            cache.write(again.path.as_bytes(), keeps, &mut kept);
        }
        if let Some(host) = &self.cookies {
            let (sets, now_ms) = (self.set_cookies.is_some(), vars.unix_ms());
            vars.cookies
                .write(again.path.as_bytes(), host, sets, now_ms, &mut kept);
        }
        let after = self.headers[self.added_at..].iter();
        let mut after: Vec<&str> = after.map(|header| header.name.as_str()).collect();
        if self.adds_length && !after.is_empty() {
            after.push("content-length");
        }
        let place = sent.write_headers(&anew, again.as_get, &after, &mut out);
        out.splice(place..place, kept);
        if self.adds_connection {
            out.extend_from_slice(self.connection_line(last));
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(sent.body(again.as_get));
        Outgoing::new(out, None)
    }

    fn version_line(&self) -> &'static [u8] {
        match self.version {
            HttpVersion::V1_0 => b" HTTP/1.0\r\n",
            // Users write one form of message; HTTP/2 makes fields of it.
            HttpVersion::V1_1 | HttpVersion::V2 => b" HTTP/1.1\r\n",
        }
    }

    /// What the version means without a word is not said.
    fn connection_line(&self, last: bool) -> &'static [u8] {
        match (self.version, last) {
            (HttpVersion::V1_0, false) => b"Connection: keep-alive\r\n",
            (HttpVersion::V1_1, true) => b"Connection: close\r\n",
            _ => b"",
        }
    }

    /// `length_from`: where its length stands in the head; `None`: at the end.
    fn write_body<R: Rng>(
        &self,
        context: &mut RenderContext<'_, R>,
        mut out: Vec<u8>,
        length_from: Option<usize>,
    ) -> Outgoing {
        let mut text = Vec::new();
        let mut rest = None;
        let length = match &self.body {
            None => 0,
            Some(Content::Text(template)) => {
                context.write(template, RequestPart::Body, &mut text);
                text.len() as u64
            }
            Some(Content::File(file, length)) => {
                rest = Some(Rest::new(Arc::clone(file), *length, self.chunked));
                *length
            }
        };
        if self.adds_length {
            let at = length_from.unwrap_or(out.len());
            out.splice(at..at, format!("Content-Length: {length}\r\n").into_bytes());
        }
        if self.of_node && text.is_empty() {
            in_latin1(&mut out);
        }
        out.extend_from_slice(b"\r\n");
        if self.chunked && rest.is_none() {
            if !text.is_empty() {
                out.extend_from_slice(format!("{:x}\r\n", text.len()).as_bytes());
                out.append(&mut text);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
        } else {
            out.append(&mut text);
        }
        Outgoing::new(out, rest)
    }
}

impl<R: Rng> RenderContext<'_, R> {
    fn write(&mut self, template: &Template, place: RequestPart, out: &mut Vec<u8>) {
        template.render(place, self.shared, self.vars, self.rng, out);
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
