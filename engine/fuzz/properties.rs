//! What must hold for any bytes that are read from outside: responses, chunks, templates and plans.
//! Shared by the property tests beside this file and by the fuzz targets; a module of the engine; each function
//! panics where its property does not hold.

use std::sync::atomic::AtomicU64;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::Value;

use crate::check::read_plan;
use crate::http::expect::Expectation;
use crate::http::head::{HeadCache, parser};
use crate::http::memory::Budget;
use crate::http::response::{Exchange, Response, ResponseReader};
use crate::plan::Expect;
use crate::scenario::filter::RequestPart;
use crate::scenario::template::{Scope, Template};
use crate::scenario::vars::{Shared, ValueCounts, Vars};
use prony_common::chunked::Chunked;

#[cfg(test)]
#[path = "properties_tests.rs"]
mod tests;

/// Splits a fuzzer's input: how many cuts, where they are, then the message itself.
pub fn with_cuts(data: &[u8]) -> (Vec<usize>, &[u8]) {
    let Some((count, rest)) = data.split_first() else {
        return (Vec::new(), data);
    };
    let (places, message) = rest.split_at(usize::from(count % 8).min(rest.len()));
    let cuts = places
        .iter()
        .map(|place| usize::from(*place) * message.len().max(1) / 256)
        .collect();
    (cuts, message)
}

fn pieces<'a>(message: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| (*cut).min(message.len())).collect();
    ends.push(message.len());
    ends.sort_unstable();
    let mut from = 0;
    let mut found = Vec::new();
    for end in ends {
        if from < end {
            found.push(&message[from..end]);
            from = end;
        }
    }
    found
}

/// How one exchange ended when the server closed after its bytes. Refused and incomplete are one:
/// whether garbage is reported early or when the connection ends may depend on the pieces, what a
/// response is may not.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    Answered { status: u16, body_bytes: u64 },
    NoResponse,
}

fn read(
    message: &[u8],
    cuts: &[usize],
    head_request: bool,
    recent: &mut HeadCache,
) -> Option<Response> {
    let expectation = Expectation::new(&Expect::default());
    let mut reader = ResponseReader::default();
    let mut exchange = Exchange {
        max_head_bytes: 65_536,
        head_request,
        expectation: &expectation,
        recent,
        budget: &Budget::new(u64::MAX),
        captured: None,
        digest: None,
        continues: false,
        more: false,
        behind: 0,
    };
    let mut at = 0;
    for piece in pieces(message, cuts) {
        at += piece.len();
        match reader.feed(piece, &mut exchange) {
            Ok(Some(mut response)) => {
                // Bytes that a later piece would have brought are as much surplus as those in the same piece.
                response.surplus |= at < message.len();
                response.keep_alive &= !response.surplus;
                return Some(response);
            }
            Ok(None) => {}
            Err(_) => return None,
        }
    }
    reader.close(&mut exchange)
}

/// Whatever the pieces, and whether or not its head was seen before, a message is the same response
/// or none; what `httparse` takes for no head is never a response.
pub fn response(message: &[u8], cuts: &[usize], head_request: bool) -> ReadOutcome {
    let mut recent = HeadCache::default();
    let whole = read(message, &[], head_request, &mut recent);
    let again = read(message, &[], head_request, &mut recent);
    assert_eq!(
        whole, again,
        "a head that was seen before reads differently"
    );
    let in_pieces = read(message, cuts, head_request, &mut HeadCache::default());
    assert_eq!(whole, in_pieces, "cut at {cuts:?} it reads differently");
    let remembered = read(message, cuts, head_request, &mut recent);
    assert_eq!(
        whole, remembered,
        "cut at {cuts:?} and remembered it reads differently"
    );
    let mut headers = vec![httparse::EMPTY_HEADER; message.len()];
    let mut judge = httparse::Response::new(&mut headers);
    match parser().parse_response(&mut judge, message) {
        Ok(httparse::Status::Complete(length)) => {
            let code = judge.code.unwrap_or_default();
            if let Some(response) = whole
                && (code >= 200 || code == 101)
            {
                assert_eq!(response.status, code);
                assert!(response.body_bytes as usize <= message.len() - length);
            }
        }
        Ok(httparse::Status::Partial) => assert_eq!(whole, None, "an incomplete head was answered"),
        Err(_) => assert_eq!(whole, None, "a refused head was answered"),
    }
    match whole {
        Some(response) => ReadOutcome::Answered {
            status: response.status,
            body_bytes: response.body_bytes,
        },
        None => ReadOutcome::NoResponse,
    }
}

/// Whatever the pieces, a chunked body is the same; one that follows the standard strictly is what
/// `httparse` makes of it.
pub fn chunked(input: &[u8], cuts: &[usize]) {
    let decode = |cuts: &[usize]| {
        let mut decoder = Chunked::lenient();
        let (mut body, mut used) = (Vec::new(), 0);
        for piece in pieces(input, cuts) {
            match decoder.read(piece, |part| body.extend_from_slice(part)) {
                Ok(length) => used += length,
                Err(_) => return (body, None, false),
            }
            if decoder.is_done() {
                break;
            }
        }
        (body, Some(used), decoder.is_done())
    };
    let whole = decode(&[]);
    assert_eq!(whole, decode(cuts), "cut at {cuts:?} it reads differently");
    assert!(whole.0.len() <= input.len());
    if let Some((body, used)) = strictly_chunked(input) {
        assert_eq!(whole, (body, Some(used), true));
    }
}

/// The body and the length of the message, when every line of it ends with CRLF and it is complete.
fn strictly_chunked(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        if !input.get(at)?.is_ascii_hexdigit() {
            return None;
        }
        let Ok(httparse::Status::Complete((length, size))) =
            httparse::parse_chunk_size(&input[at..])
        else {
            return None;
        };
        // To httparse a line feed of its own belongs to the extension; here it ends the line, as
        // for Python's http.client.
        let line = &input[at..at + length];
        if memchr::memchr(b'\n', line) != Some(length - 1) {
            return None;
        }
        at += length;
        if size == 0 {
            break;
        }
        let end = at.checked_add(usize::try_from(size).ok()?)?;
        body.extend_from_slice(input.get(at..end)?);
        at = end + 2;
        if input.get(end..at)? != b"\r\n" {
            return None;
        }
    }
    loop {
        let line = &input[at..];
        let length = memchr::memchr(b'\n', line)?;
        if length == 0 || line[length - 1] != b'\r' || line[..length - 1].contains(&b'\r') {
            return None;
        }
        at += length + 1;
        if length == 1 {
            return Some((body, at));
        }
    }
}

/// Any text compiles or is refused with a place in it; what compiles renders, the same for the same
/// seed, and a value never ends a header's line.
pub fn template(text: &str) {
    let mut scope = Scope::default();
    let captured = scope.capture("id");
    scope.visible.push(captured);
    let template = match Template::compile(text, &mut scope) {
        Ok(template) => template,
        Err(bad) => {
            assert!((1..=text.chars().count()).contains(&bad.at), "{bad:?}");
            assert!(!bad.why.is_empty());
            return;
        }
    };
    if text.contains("string") {
        return; // Up to a mebibyte of random letters each: nothing new to learn from them.
    }
    let render = |place: RequestPart| {
        let shared = Shared {
            sequences: (0..scope.sequences()).map(|_| AtomicU64::new(0)).collect(),
            ..Shared::default()
        };
        let mut vars = Vars::new(ValueCounts {
            variables: 0,
            captured: 1,
            counters: scope.user_sequences(),
            feeders: 0,
        });
        vars.captured[0] = Some(b"a \"7\"\r\nX: y\xff".as_slice().into());
        let mut out = Vec::new();
        let mut rng = SmallRng::seed_from_u64(7);
        template.render(place, &shared, &mut vars, &mut rng, &mut out);
        out
    };
    // A UUID is another one in every run, whatever the seed.
    if !text.contains("uuid") {
        for place in [RequestPart::Path, RequestPart::Header, RequestPart::Body] {
            assert_eq!(render(place), render(place));
        }
    }
    if !text.contains(['\r', '\n']) {
        assert!(!render(RequestPart::Header).contains(&b'\n'));
    }
    if template.is_literal() {
        assert_eq!(
            render(RequestPart::Body),
            text.replace("$${", "${").as_bytes()
        );
    }
}

/// Any line is a plan or refused in a sentence; a plan that is written out and read again is the same plan.
pub fn plan(line: &str) {
    match read_plan(line) {
        Ok(plan) => {
            let (written, text) = (
                serde_json::json!(&plan),
                serde_json::json!(&plan).to_string(),
            );
            match read_plan(&text) {
                Ok(again) => assert!(same(&serde_json::json!(&again), &written), "{text}"),
                Err(refusal) => panic!("written out it is refused: {refusal}: {text}"),
            }
        }
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(!sentence.is_empty());
        }
    }
}

/// Equal, numbers up to the last digits that reading them may change.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) if left != right => {
            let (left, right) = (left.as_f64(), right.as_f64());
            left.zip(right)
                .is_some_and(|(left, right)| (left - right).abs() <= 1e-12 * left.abs())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        (left, right) => left == right,
    }
}
