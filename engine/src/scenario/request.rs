//! A step's request: compiled from the plan, written as bytes. A step without placeholders is written once before the load starts;
//! any other for every send. It knows nothing of sockets.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rand::Rng;

use super::cookies::Jar;
use super::redirect::Sent;
use super::template::{BadTemplate, Place, Scope, Template};
use super::vars::{Shared, Vars};
use crate::net::outgoing::{Outgoing, Rest};
use crate::plan::{Auth, Body, HttpVersion, Step};

/// Files up to this size are read before the load starts; longer ones while they are sent.
const MAX_LOADED_BYTES: u64 = 1024 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Request {
    method: String,
    path: Template,
    headers: Vec<Header>,
    body: Option<Content>,
    chunked: bool,
    version: HttpVersion,
    /// Whether a header of ours says if the connection stays.
    adds_connection: bool,
    adds_length: bool,
    cookies: bool,
    expects_continue: bool,
}

#[derive(Debug)]
struct Header {
    name: String,
    value: Template,
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

/// What is needed besides to write a request.
pub struct Ink<'a, R> {
    pub shared: &'a Shared,
    pub vars: &'a mut Vars,
    pub rng: &'a mut R,
}

impl Request {
    /// Compiles a checked step; the error says what is wrong with it. `authority` is the target's host and port as in its URL.
    pub fn compile(
        step: &Step,
        authority: &str,
        version: HttpVersion,
        cookies: bool,
        scope: &mut Scope,
    ) -> Result<Self, String> {
        let listed = |name: &str| {
            step.headers
                .iter()
                .any(|(listed, _)| listed.eq_ignore_ascii_case(name))
        };
        let mut headers = Vec::new();
        let mut add = |name: &str, value: Template| {
            headers.push(Header {
                name: name.to_owned(),
                value,
            });
        };
        let path = template(&step.path, "path", scope)?;
        if !listed("host") {
            add("Host", Template::literal(authority.as_bytes()));
        }
        for (name, value) in &step.headers {
            add(name, template(value, &format!("header {name}"), scope)?);
        }
        if let Some(auth) = &step.auth {
            if listed("authorization") {
                return Err("has auth and an Authorization header, expected one of them".to_owned());
            }
            add("Authorization", authorization(auth, scope)?);
        }
        if cookies && listed("cookie") {
            return Err(
                "has a Cookie header, but cookies are kept by the engine (cookies: true), expected one of them"
                    .to_owned(),
            );
        }
        if step.follow_redirects > 0 && step.expect_continue {
            return Err(
                "has follow_redirects and expect_continue, expected one of them".to_owned(),
            );
        }
        let framed = listed("content-length") || listed("transfer-encoding");
        let (body, chunked) = match &step.body {
            None => (None, false),
            Some(body) => (Some(content(body, scope)?), body.chunked),
        };
        if chunked && framed {
            return Err(
                "has a chunked body and a Content-Length or Transfer-Encoding header, expected no such header".to_owned(),
            );
        }
        if let Some(Content::Text(text)) = &body
            && !text.is_literal()
            && framed
        {
            return Err(
                "has a body with placeholders and a Content-Length or Transfer-Encoding header; leave the header out, \
                 the length is written for every request"
                    .to_owned(),
            );
        }
        if step.expect_continue {
            if body.is_none() || listed("expect") {
                return Err(
                    "has expect_continue, expected a body with it and no Expect header".to_owned(),
                );
            }
            add("Expect", Template::literal(&b"100-continue"[..]));
        }
        if step.follow_redirects > 0 && matches!(body, Some(Content::File(..))) {
            return Err(
                "has follow_redirects and a body that is read while it goes out, expected a file of at most 1 MiB"
                    .to_owned(),
            );
        }
        if chunked {
            add("Transfer-Encoding", Template::literal(&b"chunked"[..]));
        }
        Ok(Self {
            method: step.method.clone(),
            version,
            adds_connection: !listed("connection"),
            adds_length: body.is_some() && !framed && !chunked,
            path,
            headers,
            body,
            chunked,
            cookies,
            expects_continue: step.expect_continue,
        })
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        let body = match &self.body {
            Some(Content::Text(text)) => Some(text),
            _ => None,
        };
        std::iter::once(&self.path)
            .chain(self.headers.iter().map(|header| &header.value))
            .chain(body)
    }

    /// Whether it can be written once for all.
    pub fn is_fixed(&self) -> bool {
        !self.cookies
            && !self.expects_continue
            && !matches!(self.body, Some(Content::File(..)))
            && self.templates().all(Template::is_literal)
    }

    /// Length of the file that is read while it goes out; 0 when there is none.
    pub fn streamed_bytes(&self) -> u64 {
        match &self.body {
            Some(Content::File(_, length)) => *length,
            _ => 0,
        }
    }

    /// Whether the body waits until the server asks for it.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    pub fn uses_vars(&self) -> bool {
        self.cookies || self.templates().any(Template::uses_vars)
    }

    /// The captured values without which it cannot be sent.
    pub fn needs(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.templates().flat_map(Template::needs).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Writes the request; `last`: the connection is closed after it. `spare` is memory to use again.
    pub fn write<R: Rng>(&self, last: bool, ink: &mut Ink<'_, R>, spare: Vec<u8>) -> Outgoing {
        let mut out = spare;
        out.clear();
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        let path_from = out.len();
        ink.write(&self.path, Place::Path, &mut out);
        let path = path_from..out.len();
        out.extend_from_slice(self.version_line());
        for header in &self.headers {
            out.extend_from_slice(header.name.as_bytes());
            out.extend_from_slice(b": ");
            ink.write(&header.value, Place::Header, &mut out);
            out.extend_from_slice(b"\r\n");
        }
        if self.cookies {
            let path = out[path].to_vec();
            ink.vars.cookies.write(&path, &mut out);
        }
        if self.adds_connection {
            out.extend_from_slice(self.connection_line(last));
        }
        self.write_body(ink, out)
    }

    /// Writes the request that follows a redirect: the one before, asking for another path. Nothing is drawn anew.
    pub fn write_again(
        &self,
        again: &Again<'_>,
        last: bool,
        cookies: &mut Jar,
        spare: Vec<u8>,
    ) -> Outgoing {
        let mut out = spare;
        out.clear();
        let Some(sent) = Sent::read(again.before) else {
            return Outgoing::new(out, None);
        };
        out.extend_from_slice(if again.as_get { b"GET" } else { sent.method });
        out.push(b' ');
        out.extend_from_slice(again.path.as_bytes());
        out.extend_from_slice(self.version_line());
        let mut anew = Vec::new();
        if self.cookies {
            anew.push("cookie");
        }
        if self.adds_connection {
            anew.push("connection");
        }
        sent.write_headers(&anew, again.as_get, &mut out);
        if self.cookies {
            cookies.write(again.path.as_bytes(), &mut out);
        }
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
            HttpVersion::V1_1 => b" HTTP/1.1\r\n",
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

    fn write_body<R: Rng>(&self, ink: &mut Ink<'_, R>, mut out: Vec<u8>) -> Outgoing {
        let mut text = Vec::new();
        let mut rest = None;
        let length = match &self.body {
            None => 0,
            Some(Content::Text(template)) => {
                ink.write(template, Place::Body, &mut text);
                text.len() as u64
            }
            Some(Content::File(file, length)) => {
                rest = Some(Rest::new(Arc::clone(file), *length, self.chunked));
                *length
            }
        };
        if self.adds_length {
            out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
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

impl<R: Rng> Ink<'_, R> {
    fn write(&mut self, template: &Template, place: Place, out: &mut Vec<u8>) {
        template.render(place, self.shared, self.vars, self.rng, out);
    }
}

fn template(text: &str, place: &str, scope: &mut Scope) -> Result<Template, String> {
    Template::compile(text, scope)
        .map_err(|BadTemplate { at, why }| format!("{place}, character {at}: {why}"))
}

fn authorization(auth: &Auth, scope: &mut Scope) -> Result<Template, String> {
    match auth {
        Auth::Basic { user, password } => {
            if user.contains(':') {
                return Err(
                    "auth.basic.user holds a colon, which RFC 7617 does not allow".to_owned(),
                );
            }
            let credentials = BASE64.encode(format!("{user}:{password}"));
            Ok(Template::literal(
                format!("Basic {credentials}").into_bytes(),
            ))
        }
        Auth::Bearer(token) => {
            if token.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
                return Err("auth.bearer holds a control character, expected a token".to_owned());
            }
            template(&format!("Bearer {token}"), "auth.bearer", scope)
        }
    }
}

fn content(body: &Body, scope: &mut Scope) -> Result<Content, String> {
    match (&body.text, &body.base64, &body.file) {
        (Some(text), None, None) => Ok(Content::Text(template(text, "body", scope)?)),
        (None, Some(text), None) => {
            let bytes = BASE64
                .decode(text)
                .map_err(|error| format!("body.base64 is not base64: {error}"))?;
            Ok(Content::Text(Template::literal(bytes)))
        }
        (None, None, Some(path)) => {
            let failed =
                |error: std::io::Error| format!("body.file {path} cannot be read: {error}");
            let mut file = File::open(path).map_err(failed)?;
            let facts = file.metadata().map_err(failed)?;
            if !facts.is_file() {
                return Err(format!("body.file {path} is not a file"));
            }
            if facts.len() > MAX_LOADED_BYTES {
                return Ok(Content::File(Arc::new(file), facts.len()));
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            Ok(Content::Text(Template::literal(bytes)))
        }
        _ => Err("has a body that is not exactly one of text, base64 and file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use serde_json::{Value, json};

    fn compile(step: Value) -> Result<Request, String> {
        let step: Step = serde_json::from_value(step).unwrap();
        Request::compile(
            &step,
            "h:1",
            HttpVersion::V1_1,
            false,
            &mut Scope::default(),
        )
    }

    fn written(request: &Request, last: bool) -> String {
        let mut ink = Ink {
            shared: &Shared::default(),
            vars: &mut Vars::default(),
            rng: &mut SmallRng::seed_from_u64(1),
        };
        let mut outgoing = request.write(last, &mut ink, Vec::new());
        let mut all = outgoing.bytes().to_vec();
        while outgoing.refill().unwrap() {
            all.extend_from_slice(outgoing.bytes());
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn http_1_0_asks_for_a_connection_that_stays_and_says_nothing_of_one_that_does_not() {
        let request = |step: Value| {
            let step: Step = serde_json::from_value(step).unwrap();
            Request::compile(
                &step,
                "h:1",
                HttpVersion::V1_0,
                false,
                &mut Scope::default(),
            )
            .unwrap()
        };
        let bare = request(json!({"path": "/a"}));
        assert_eq!(
            written(&bare, false),
            "GET /a HTTP/1.0\r\nHost: h:1\r\nConnection: keep-alive\r\n\r\n"
        );
        assert_eq!(written(&bare, true), "GET /a HTTP/1.0\r\nHost: h:1\r\n\r\n");
        let listed = request(json!({"path": "/a", "headers": [["connection", "x"]]}));
        assert_eq!(
            written(&listed, false),
            "GET /a HTTP/1.0\r\nHost: h:1\r\nconnection: x\r\n\r\n"
        );
    }

    #[test]
    fn host_and_length_are_added_only_where_missing() {
        let bare = compile(json!({"path": "/a"})).unwrap();
        assert!(bare.is_fixed());
        assert_eq!(
            written(&bare, false),
            "GET /a HTTP/1.1\r\nHost: h:1\r\n\r\n"
        );
        assert_eq!(
            written(&bare, true),
            "GET /a HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n"
        );
        let full = compile(json!({"method": "PUT", "path": "/",
            "headers": [["host", "x"], ["connection", "close"]], "body": "12"}))
        .unwrap();
        let expected =
            "PUT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nContent-Length: 2\r\n\r\n12";
        assert_eq!(written(&full, false), expected);
        assert_eq!(written(&full, true), expected);
    }

    #[test]
    fn bodies_come_from_text_base64_and_files_with_or_without_a_length() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from a file").unwrap();
        let with =
            |body: Value| written(&compile(json!({"path": "/", "body": body})).unwrap(), false);
        assert!(with(json!({"text": "x"})).ends_with("Content-Length: 1\r\n\r\nx"));
        assert!(with(json!({"base64": "aGk="})).ends_with("Content-Length: 2\r\n\r\nhi"));
        assert!(
            with(json!({"file": file.path()})).ends_with("Content-Length: 11\r\n\r\nfrom a file")
        );
        let chunked = with(json!({"text": "sixteen letters!", "chunked": true}));
        assert!(
            chunked
                .ends_with("Transfer-Encoding: chunked\r\n\r\n10\r\nsixteen letters!\r\n0\r\n\r\n"),
            "{chunked}"
        );
        assert!(with(json!({"text": "", "chunked": true})).ends_with("\r\n\r\n0\r\n\r\n"));
    }

    #[test]
    fn a_long_file_is_read_while_it_is_sent() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "0123456789".repeat(300_000);
        std::fs::write(file.path(), &text).unwrap();
        for chunked in [false, true] {
            let body = json!({"file": file.path(), "chunked": chunked});
            let request = compile(json!({"path": "/", "body": body})).unwrap();
            assert!(!request.is_fixed());
            let sent = written(&request, false);
            let (head, body) = sent.split_once("\r\n\r\n").unwrap();
            if chunked {
                let mut chunks = crate::http::chunked::Chunked::default();
                let mut plain = Vec::new();
                let used = chunks
                    .read(body.as_bytes(), |piece| plain.extend_from_slice(piece))
                    .unwrap();
                assert!(chunks.is_done() && used == body.len() && plain == text.as_bytes());
            } else {
                assert!(head.ends_with("Content-Length: 3000000"), "{head}");
                assert!(body == text);
            }
        }
    }

    #[test]
    fn credentials_become_a_header() {
        let basic =
            json!({"path": "/", "auth": {"basic": {"user": "Aladdin", "password": "open sesame"}}});
        let basic = written(&compile(basic).unwrap(), false);
        assert!(
            basic.contains("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"),
            "{basic}"
        );
        let bearer = compile(json!({"path": "/", "auth": {"bearer": "t-${uuid}"}})).unwrap();
        assert!(written(&bearer, false).contains("Authorization: Bearer t-"));
        assert!(!bearer.is_fixed());
    }

    #[test]
    fn steps_that_contradict_themselves_are_refused() {
        for (step, part) in [
            (
                json!({"path": "/", "body": {"text": "a", "file": "b"}}),
                "exactly one",
            ),
            (json!({"path": "/", "body": {"base64": "?"}}), "not base64"),
            (
                json!({"path": "/", "body": {"file": "nowhere.bin"}}),
                "cannot be read",
            ),
            (
                json!({"path": "/", "body": "${uuid}", "headers": [["content-length", "3"]]}),
                "leave the header out",
            ),
            (
                json!({"path": "/", "body": {"text": "a", "chunked": true}, "headers": [["Content-Length", "1"]]}),
                "no such header",
            ),
            (
                json!({"path": "/", "auth": {"bearer": "a"}, "headers": [["Authorization", "b"]]}),
                "one of them",
            ),
            (
                json!({"path": "/", "expect_continue": true}),
                "expected a body",
            ),
            (json!({"path": "/${a}"}), "path, character 2"),
            (
                json!({"path": "/", "headers": [["X", "é${a"]]}),
                "header X, character 2",
            ),
        ] {
            let refusal = compile(step).unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    proptest! {
        /// The declared length is that of the body, whatever is rendered.
        #[test]
        fn the_length_is_right(text in "[a-zé]{0,20}", letters in 1usize..40, seed: u64) {
            let body = format!("{text}${{random string {letters}}}${{random int -5 100000}}{text}");
            let request = compile(json!({"method": "POST", "path": "/", "body": body})).unwrap();
            let mut ink = Ink { shared: &Shared::default(), vars: &mut Vars::default(), rng: &mut SmallRng::seed_from_u64(seed) };
            let sent = request.write(false, &mut ink, Vec::new());
            let sent = String::from_utf8(sent.bytes().to_vec()).unwrap();
            let (head, body) = sent.split_once("\r\n\r\n").unwrap();
            let declared = head.rsplit_once("Content-Length: ").unwrap().1;
            prop_assert_eq!(declared.parse::<usize>().unwrap(), body.len());
        }
    }
}
