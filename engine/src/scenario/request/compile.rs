//! From a checked step of the plan to the request that is written for it; refuses what contradicts
//! itself. It must not know how a request is written.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Content, Header, Request};
use crate::plan::{Auth, Body, BodyPart, CachePlan, HttpVersion, Step};
use crate::scenario::cookies::CookieHost;
use crate::scenario::template::{Scope, Template};

/// Files up to this size are read before the load starts; longer ones while they are sent.
const MAX_LOADED_BYTES: u64 = 1024 * 1024;
/// The files of a body of several parts, together.
const MAX_JOINED_BYTES: u64 = 16 * 1024 * 1024;

impl Request {
    /// Compiles a checked step; the error says what is wrong with it. `authority` is the target's
    /// host and port as in its URL, `cookies` where its cookies go.
    pub fn compile(
        step: &Step,
        authority: &str,
        version: HttpVersion,
        cookies: Option<Arc<CookieHost>>,
        cache: Option<CachePlan>,
        scope: &mut Scope,
    ) -> Result<Self, String> {
        let lines = step.header_lines.as_deref().unwrap_or_default();
        let lines = lines.split("\r\n").filter_map(|line| line.split_once(':'));
        let names: Vec<&str> = lines
            .map(|(name, _)| name)
            .chain(step.headers.iter().map(|(name, _)| name.as_str()))
            .collect();
        let listed = |name: &str| names.iter().any(|one| one.eq_ignore_ascii_case(name));
        let mut headers = Vec::new();
        let mut add = |name: &str, value: Template| headers.push(Header::new(name, value));
        let path = Template::of(&step.path, "path", scope)?;
        if !listed("host") {
            add("Host", Template::literal(authority.as_bytes()));
        }
        let hosts = usize::from(!listed("host"));
        for (name, value) in &step.headers {
            add(name, Template::of(value, &format!("header {name}"), scope)?);
        }
        let lines = step.header_lines.as_deref();
        let lines = lines
            .map(|text| Template::of(text, "header_lines", scope))
            .transpose()?;
        if let Some(auth) = &step.auth {
            refuse_if! {
                listed("authorization") =>
                    "has auth and an Authorization header, expected one of them";
            }
            add("Authorization", authorization(auth, scope)?);
        }
        let mut added = Vec::new();
        let mut add = |name: &str, value: Template| added.push(Header::new(name, value));
        let set_cookies = match &step.set_cookies {
            Some(_) if cookies.is_none() => refuse! {
                "has set_cookies, but users keep no cookies: expected cookies: true"
            },
            Some(text) => Some(Template::of(text, "set_cookies", scope)?),
            None => None,
        };
        refuse_if! {
            step.follow_redirects > 0 && step.expect_continue =>
                "has follow_redirects and expect_continue, expected one of them";
        }
        let coded = coded_by_header(step)?;
        let framed = listed("content-length") || coded;
        let body = step.body.as_ref();
        let chunked = body.is_some_and(|body| body.chunked);
        let body = body.map(|body| content(body, scope)).transpose()?;
        refuse_if! {
            chunked && framed || coded && listed("content-length") =>
                "says twice how its body ends, expected one of chunked, a Transfer-Encoding header and a Content-Length header";
        }
        if let Some(Content::Text(text)) = &body
            && !text.is_literal()
            && listed("content-length")
        {
            refuse! {
                "has a body with placeholders and a Content-Length header; leave the header out, the length is written for every request"
            }
        }
        let declared = step
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = match &body {
            None => Some(0),
            Some(Content::Text(text)) => text.literal_bytes(),
            Some(Content::File(_, length)) => Some(*length),
        };
        if let (Some((_, declared)), Some(length)) = (declared, length)
            && declared.trim().parse() != Ok(length)
        {
            refuse! {
                "has a Content-Length header of {declared:?} and a body of {length} bytes; leave the header out, the length is written"
            }
        }
        if step.expect_continue {
            refuse_if! {
                body.is_none() || listed("expect") =>
                    "has expect_continue, expected a body with it and no Expect header";
            }
            add("Expect", Template::literal(&b"100-continue"[..]));
        }
        refuse_if! {
            step.follow_redirects > 0 && matches!(body, Some(Content::File(..))) =>
                "has follow_redirects and a body that is read while it goes out, expected a file of at most 1 MiB";
        }
        if chunked {
            add("Transfer-Encoding", Template::literal(&b"chunked"[..]));
        }
        refuse_if! {
            cache.is_some() && (listed("if-none-match") || listed("if-modified-since")) =>
                "has If-None-Match or If-Modified-Since, but the users have a cache, expected one of them";
        }
        let index = |name: &str, at: Option<usize>| match at {
            Some(at) if at > step.headers.len() => Err(format!(
                "{name} is {at}, expected at most {}, the number of its headers",
                step.headers.len()
            )),
            at => Ok(at.map(|at| hosts + at)),
        };
        let added_at = index("added_headers_at", step.added_headers_at)?;
        let mut lines_at = index("header_lines_at", step.header_lines_at)?;
        let length_at = added_at.map(|at| at + added.len());
        let place = added_at.unwrap_or(headers.len());
        if added_at.is_some_and(|added_at| lines_at.is_some_and(|at| at > added_at)) {
            lines_at = lines_at.map(|at| at + added.len());
        }
        headers.splice(place..place, added);
        Ok(Self {
            method: step.method.clone(),
            version,
            adds_connection: !listed("connection"),
            adds_length: body.is_some() && !framed && !chunked,
            path,
            path_as: step.path_as,
            of_node: step.node_headers,
            lines_at: lines_at.unwrap_or(headers.len()),
            set_cookies,
            added_at: added_at.unwrap_or(headers.len()),
            length_at,
            headers,
            lines,
            body,
            chunked: chunked || coded,
            cookies,
            cache,
            expects_continue: step.expect_continue,
            page: None,
        })
    }
}

/// Whether a header of its own says that the body comes in chunks.
fn coded_by_header(step: &Step) -> Result<bool, String> {
    let codings = step.headers.iter().filter_map(|(name, value)| {
        name.eq_ignore_ascii_case("transfer-encoding")
            .then_some(value)
    });
    let codings: Vec<&String> = codings.collect();
    match codings[..] {
        [] => Ok(false),
        [coding] if coding.trim().eq_ignore_ascii_case("chunked") => Ok(true),
        [coding, ..] => Err(format!(
            "has a Transfer-Encoding header of {coding:?}, expected chunked: its body is sent in no other form"
        )),
    }
}

fn authorization(auth: &Auth, scope: &mut Scope) -> Result<Template, String> {
    match auth {
        Auth::Basic { user, password } => {
            refuse_if! {
                user.contains(':') =>
                    "auth.basic.user holds a colon, which RFC 7617 does not allow";
            }
            let credentials = BASE64.encode(format!("{user}:{password}"));
            Ok(Template::literal(
                format!("Basic {credentials}").into_bytes(),
            ))
        }
        Auth::Bearer(token) => {
            refuse_if! {
                token.bytes().any(|byte| byte < b' ' || byte == 0x7f) =>
                    "auth.bearer holds a control character, expected a token";
            }
            Template::of(&format!("Bearer {token}"), "auth.bearer", scope)
        }
    }
}

/// Pieces as one template; files are read whole.
fn joined(parts: &[BodyPart], scope: &mut Scope) -> Result<Template, String> {
    let mut all = Template::default();
    let mut left = MAX_JOINED_BYTES;
    for part in parts {
        match (&part.text, &part.file) {
            (Some(text), None) => all.append(Template::of(text, "body.parts", scope)?),
            (None, Some(path)) => {
                let failed =
                    |error: std::io::Error| format!("body.parts: {path} cannot be read: {error}");
                let mut bytes = Vec::new();
                let file = File::open(path).map_err(failed)?;
                let read = file
                    .take(left + 1)
                    .read_to_end(&mut bytes)
                    .map_err(failed)?;
                left = left.checked_sub(read as u64).ok_or_else(|| {
                    format!(
                        "body.parts has files of more than {} MiB, expected less",
                        MAX_JOINED_BYTES >> 20
                    )
                })?;
                all.append(Template::literal(bytes));
            }
            _ => refuse! { "body.parts has one that is not exactly one of text and file" },
        }
    }
    Ok(all)
}

fn content(body: &Body, scope: &mut Scope) -> Result<Content, String> {
    match (&body.text, &body.base64, &body.file, &body.parts[..]) {
        (Some(text), None, None, []) => Ok(Content::Text(Template::of(text, "body", scope)?)),
        (None, None, None, parts @ [_, ..]) => Ok(Content::Text(joined(parts, scope)?)),
        (None, Some(text), None, []) => {
            let bytes = BASE64
                .decode(text)
                .map_err(|error| format!("body.base64 is not base64: {error}"))?;
            Ok(Content::Text(Template::literal(bytes)))
        }
        (None, None, Some(path), []) => {
            let failed =
                |error: std::io::Error| format!("body.file {path} cannot be read: {error}");
            let mut file = File::open(path).map_err(failed)?;
            let facts = file.metadata().map_err(failed)?;
            refuse_if! { !facts.is_file() => "body.file {path} is not a file"; }
            if facts.len() > MAX_LOADED_BYTES {
                return Ok(Content::File(Arc::new(file), facts.len()));
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            Ok(Content::Text(Template::literal(bytes)))
        }
        _ => Err("has a body that is not exactly one of text, base64, file and parts".to_owned()),
    }
}
