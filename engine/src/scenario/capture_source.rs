//! Where in a response a value is found: its JSON, its head, its cookies, or between what stands
//! around it. One response in, texts out; it knows nothing of users.

use memchr::memmem::Finder;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::http::captured::CapturedResponse;
use crate::plan::{Capture, ResponsePart};

/// The longest value: users keep theirs, and there may be many of them.
pub const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// A place that a capture looks at.
#[derive(Debug)]
pub enum CaptureSource {
    Pointer(String),
    Path(Box<JsonPath>),
    Header(String),
    Cookie(String),
    Regex(Box<regex::bytes::Regex>, Wanted, ResponsePart),
    Boundary(Box<Finder<'static>>, Box<Finder<'static>>, ResponsePart),
    Status,
}

/// What is taken of a match: a group, or a text with groups in it, each behind the text before it.
#[derive(Debug)]
pub enum Wanted {
    Group(usize),
    Template(Vec<(Box<str>, usize)>, Box<str>),
}

type Found = Vec<Box<[u8]>>;

impl Wanted {
    fn new(capture: &Capture, groups: usize) -> Result<Self, String> {
        let wanted = match (&capture.template, capture.group) {
            (Some(_), Some(_)) => refuse! { "has a group and a template, expected one of them" },
            (Some(text), None) => Self::template(text),
            (None, group) => Self::Group(group.unwrap_or(groups.min(1))),
        };
        let last = match &wanted {
            Self::Group(group) => *group,
            Self::Template(pieces, _) => pieces.iter().map(|(_, group)| *group).max().unwrap_or(0),
        };
        refuse_if! { last > groups => "asks for group {last}, but its regex has {groups}"; }
        Ok(wanted)
    }

    fn template(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut before = String::new();
        let mut rest = text;
        while let Some((plain, after)) = rest.split_once('$') {
            before.push_str(plain);
            rest = after;
            let group = after.split_once('$').and_then(|(digits, behind)| {
                let number = digits.bytes().all(|one| one.is_ascii_digit());
                Some((digits.parse().ok().filter(|_| number)?, behind))
            });
            if let Some((group, behind)) = group {
                pieces.push((std::mem::take(&mut before).into(), group));
                rest = behind;
            } else {
                before.push('$');
            }
        }
        before.push_str(rest);
        Self::Template(pieces, before.into())
    }

    /// A group that has no part in the match is nothing, or in a template an empty text.
    fn of(&self, found: &regex::bytes::Captures<'_>) -> Option<Box<[u8]>> {
        let group = |number: usize| found.get(number).map(|group| group.as_bytes());
        match self {
            Self::Group(number) => group(*number).map(Box::from),
            Self::Template(pieces, end) => {
                let mut text = Vec::new();
                for (before, number) in pieces {
                    text.extend_from_slice(before.as_bytes());
                    text.extend_from_slice(group(*number).unwrap_or_default());
                }
                text.extend_from_slice(end.as_bytes());
                Some(text.into())
            }
        }
    }
}

impl CaptureSource {
    /// The error says what is wrong with the capture.
    pub fn compile(capture: &Capture) -> Result<Self, String> {
        refuse_if! {
            (capture.group.is_some() || capture.template.is_some()) && capture.regex.is_none() =>
                "has a group or a template, which only a regex has";
        }
        let searches = capture.regex.is_some() || capture.boundary.is_some();
        refuse_if! {
            capture.part != ResponsePart::Body && !searches =>
                "has in: head, which only a regex and a boundary have";
        }
        let mut found: Vec<Self> = Vec::new();
        if let Some(pointer) = &capture.json {
            check_pointer(pointer)?;
            found.push(Self::Pointer(pointer.clone()));
        }
        if let Some(text) = &capture.jsonpath {
            found.push(Self::Path(Box::new(json_path(text)?)));
        }
        found.extend(capture.header.clone().map(Self::Header));
        found.extend(capture.cookie.clone().map(Self::Cookie));
        if let Some(text) = &capture.regex {
            let regex = regex(text)?;
            let wanted = Wanted::new(capture, regex.captures_len() - 1)?;
            found.push(Self::Regex(Box::new(regex), wanted, capture.part));
        }
        if let Some(boundary) = &capture.boundary {
            let finder = |text: &str| Box::new(Finder::new(text.as_bytes()).into_owned());
            found.push(Self::Boundary(
                finder(&boundary.left),
                finder(&boundary.right),
                capture.part,
            ));
        }
        found.extend(capture.status.then_some(Self::Status));
        match (found.pop(), found.is_empty()) {
            (Some(origin), true) => Ok(origin),
            _ => Err(
                "expected exactly one of json, jsonpath, header, cookie, regex, boundary and status: true"
                    .to_owned(),
            ),
        }
    }

    pub fn needs_body(&self) -> bool {
        match self {
            Self::Header(_) | Self::Cookie(_) | Self::Status => false,
            Self::Regex(.., part) | Self::Boundary(.., part) => *part == ResponsePart::Body,
            Self::Pointer(_) | Self::Path(_) => true,
        }
    }

    pub fn reads_json(&self) -> bool {
        matches!(self, Self::Pointer(_) | Self::Path(_))
    }

    /// What is found, from the first on, and not more than so many; each as a text, or as JSON.
    pub fn find(
        &self,
        seen: &CapturedResponse,
        json: Option<&Value>,
        most: usize,
        as_json: bool,
    ) -> Found {
        let form = if as_json { kept } else { written };
        match self {
            Self::Pointer(pointer) => {
                let found = json.and_then(|json| json.pointer(pointer));
                found.and_then(form).into_iter().collect()
            }
            Self::Path(path) => json.map_or_else(Vec::new, |json| {
                let nodes = path.query(json);
                nodes
                    .iter()
                    .filter_map(|node| form(node))
                    .take(most)
                    .collect()
            }),
            _ if as_json => {
                let texts = self.texts(seen, most);
                let quoted = |text: &[u8]| kept(&String::from_utf8_lossy(text).into());
                texts.iter().filter_map(|text| quoted(text)).collect()
            }
            _ => self.texts(seen, most),
        }
    }

    /// The same where nothing else than texts are found.
    fn texts(&self, seen: &CapturedResponse, most: usize) -> Found {
        match self {
            Self::Pointer(_) | Self::Path(_) => Found::new(),
            Self::Header(name) => seen.headers(name).take(most).map(Box::from).collect(),
            Self::Cookie(name) => seen
                .headers("set-cookie")
                .filter_map(|line| cookie(line, name))
                .take(most)
                .collect(),
            Self::Regex(regex, wanted, part) => regex
                .captures_iter(text_of(seen, *part))
                .filter_map(|found| wanted.of(&found))
                .take(most)
                .collect(),
            Self::Boundary(left, right, part) => between(left, right, text_of(seen, *part), most),
            Self::Status => seen.status().map(Box::from).into_iter().collect(),
        }
    }
}

fn text_of(seen: &CapturedResponse, part: ResponsePart) -> &[u8] {
    match part {
        ResponsePart::Body => &seen.body,
        ResponsePart::Head => &seen.head,
    }
}

/// As JSON; `null` is nothing.
fn kept(value: &Value) -> Option<Box<[u8]>> {
    (!value.is_null()).then(|| value.to_string().into_bytes().into())
}

/// A text as it is, anything else as JSON; `null` is nothing.
pub(super) fn written(value: &Value) -> Option<Box<[u8]>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_bytes().into()),
        other => Some(other.to_string().into_bytes().into()),
    }
}

/// The value of a cookie of this name that a line sets.
fn cookie(line: &[u8], name: &str) -> Option<Box<[u8]>> {
    let pair = line.split(|byte| *byte == b';').next()?;
    let equals = memchr::memchr(b'=', pair)?;
    (pair[..equals].trim_ascii() == name.as_bytes()).then(|| pair[equals + 1..].trim_ascii().into())
}

/// What stands between two texts, in order; an empty one is the beginning or the end.
fn between(left: &Finder<'_>, right: &Finder<'_>, text: &[u8], most: usize) -> Found {
    let mut found = Found::new();
    let mut rest = text;
    while found.len() < most
        && let Some(at) = left.find(rest)
    {
        let from = &rest[at + left.needle().len()..];
        let end = if right.needle().is_empty() {
            Some(from.len())
        } else {
            right.find(from)
        };
        let Some(end) = end else { break };
        found.push(from[..end].into());
        if left.needle().is_empty() {
            break;
        }
        rest = &from[end..];
    }
    found
}

/// The error is the end of a sentence.
pub fn regex(text: &str) -> Result<regex::bytes::Regex, String> {
    regex::bytes::Regex::new(text)
        .map_err(|error| format!("has a regex that cannot be read: {}", last_line(&error)))
}

/// The error is the end of a sentence.
pub fn json_path(text: &str) -> Result<JsonPath, String> {
    JsonPath::parse(text)
        .map_err(|error| format!("has the JSON path {text:?}, which cannot be read: {error}"))
}

/// The regex crate draws a picture over several lines; the last one says what is wrong.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

pub fn check_pointer(pointer: &str) -> Result<(), String> {
    if pointer.is_empty() || pointer.starts_with('/') {
        return Ok(());
    }
    Err(format!(
        "has the JSON pointer {pointer:?}, expected it to begin with / (such as /items/0/id)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn origin(capture: Value) -> Result<CaptureSource, String> {
        let mut capture = capture;
        capture["name"] = "a".into();
        CaptureSource::compile(&serde_json::from_value(capture).unwrap())
    }

    fn found(capture: Value, body: &str, most: usize) -> Vec<String> {
        let mut seen = CapturedResponse::new(true);
        seen.begin(b"HTTP/1.1 302 Found\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: ab=2\r\nset-cookie: a=3\r\n\r\n");
        seen.feed(body.as_bytes());
        let json = serde_json::from_str(body).ok();
        let found = origin(capture)
            .unwrap()
            .find(&seen, json.as_ref(), most, false);
        found
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn values_are_found_one_after_the_other() {
        let body = r#"{"a":[{"b":1},{"b":null},{"b":"two"},{"c":3}]}"#;
        for (capture, expected) in [
            (json!({"json": "/a/2/b"}), vec!["two"]),
            (json!({"jsonpath": "$.a[*].b"}), vec!["1", "two"]),
            (json!({"jsonpath": "$.a[?@.c].c"}), vec!["3"]),
            (json!({"jsonpath": "$.nothing"}), vec![]),
            (json!({"regex": "\"([bc])\":"}), vec!["b", "b", "b", "c"]),
            (
                json!({"boundary": {"left": "{\"b\":", "right": "}"}}),
                vec!["1", "null", "\"two\""],
            ),
            (
                json!({"boundary": {"left": "{\"c\":", "right": ""}}),
                vec!["3}]}"],
            ),
            (
                json!({"boundary": {"left": "", "right": ":"}}),
                vec!["{\"a\""],
            ),
            (
                json!({"boundary": {"left": "Set-Cookie: ", "right": "="}, "in": "head"}),
                vec!["a", "ab"],
            ),
            (json!({"regex": "302 (\\w+)", "in": "head"}), vec!["Found"]),
            (json!({"cookie": "a"}), vec!["1", "3"]),
            (
                json!({"header": "set-cookie"}),
                vec!["a=1; Path=/", "ab=2", "a=3"],
            ),
            (json!({"status": true}), vec!["302"]),
        ] {
            assert_eq!(
                found(capture.clone(), body, usize::MAX),
                expected,
                "{capture}"
            );
            let first: Vec<&str> = expected.into_iter().take(1).collect();
            assert_eq!(found(capture.clone(), body, 1), first, "{capture}");
        }
    }

    #[test]
    fn values_are_found_as_json_too() {
        let mut seen = CapturedResponse::new(true);
        let body = r#"{"a":["x\"","7",7,null,{"b":1,"a":2}]}"#;
        seen.begin(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\n\r\n");
        seen.feed(body.as_bytes());
        let json = serde_json::from_str(body).ok();
        for (capture, expected) in [
            (
                json!({"jsonpath": "$.a[*]"}),
                vec![r#""x\"""#, r#""7""#, "7", r#"{"b":1,"a":2}"#],
            ),
            (json!({"json": "/a"}), vec![&body[5..body.len() - 1]]),
            (json!({"json": "/a/3"}), vec![]),
            (json!({"header": "etag"}), vec![r#""\"e\"""#]),
        ] {
            let found = origin(capture).unwrap().find(&seen, json.as_ref(), 9, true);
            let found: Vec<_> = found
                .iter()
                .map(|value| String::from_utf8_lossy(value))
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_template_joins_groups() {
        let joined = |template: &str| {
            let capture = json!({"name": "x", "regex": "(a)(b)?-(c)", "template": template});
            found(capture, "ab-c a-c", 9)
        };
        assert_eq!(joined("<$3$.$2$>$"), ["<c.b>$", "<c.>$"]);
        assert_eq!(joined("$0$$1$"), ["ab-ca", "a-ca"]);
        assert_eq!(joined("no $x$ group"), ["no $x$ group"; 2]);
        let refused = |more: Value| {
            let mut capture = json!({"name": "x", "regex": "(a)", "template": "$2$"});
            capture
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            origin(capture).unwrap_err()
        };
        assert!(refused(json!({})).contains("asks for group 2"));
        assert!(refused(json!({"group": 1})).contains("one of them"));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for (capture, part) in [
            (json!({}), "exactly one"),
            (json!({"json": "/a", "status": true}), "exactly one"),
            (json!({"json": "id"}), "begin with /"),
            (json!({"jsonpath": "$.["}), "cannot be read"),
            (json!({"regex": "("}), "cannot be read"),
            (json!({"regex": "x", "group": 1}), "has 0"),
            (json!({"json": "/id", "group": 1}), "only a regex"),
            (
                json!({"header": "a", "in": "head"}),
                "only a regex and a boundary",
            ),
        ] {
            let refusal = origin(capture).unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    proptest! {
        /// Whatever stands around, what is found lies between the two texts, in order.
        #[test]
        fn what_is_between_is_found(parts in proptest::collection::vec("[a-c]{0,5}", 0..6)) {
            let body: String = parts.iter().map(|part| format!("<{part}>x")).collect();
            let capture = json!({"boundary": {"left": "<", "right": ">"}});
            prop_assert_eq!(found(capture, &body, usize::MAX), parts);
        }
    }
}
