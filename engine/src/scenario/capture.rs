//! Values taken from an answer, and expectations of its JSON. One answer in, values of the user out; no I/O.

use serde_json::Value;

use super::look::Seen;
use super::vars::Vars;
use crate::plan::{Capture, JsonExpect};

/// What a step does with a kept answer.
#[derive(Debug, Default)]
pub struct Look {
    captures: Vec<Compiled>,
    json: Vec<JsonExpect>,
    /// Whether the user keeps the cookies that the answer sets.
    pub cookies: bool,
}

#[derive(Debug)]
struct Compiled {
    slot: usize,
    from: Origin,
    default: Option<Box<[u8]>>,
}

#[derive(Debug)]
enum Origin {
    Json(String),
    Header(String),
    Regex(Box<regex::bytes::Regex>, usize),
}

/// What was not as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    Expectation,
    Capture,
}

impl Look {
    /// `slot` gives the number of a captured value. The error says what is wrong with a capture.
    pub fn compile(
        captures: &[Capture],
        json: &[JsonExpect],
        cookies: bool,
        mut slot: impl FnMut(&str) -> usize,
    ) -> Result<Self, String> {
        for expect in json {
            check_pointer(&expect.pointer)?;
        }
        let compiled = captures.iter().map(|capture| {
            check_name(&capture.name)?;
            Ok(Compiled {
                from: source(capture).map_err(|why| format!("capture {:?} {why}", capture.name))?,
                slot: slot(&capture.name),
                default: capture.default.as_ref().map(|text| text.as_bytes().into()),
            })
        });
        Ok(Self {
            captures: compiled.collect::<Result<_, String>>()?,
            json: json.to_vec(),
            cookies,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.captures.is_empty() && self.json.is_empty() && !self.cookies
    }

    pub fn needs_body(&self) -> bool {
        let from_body = |capture: &Compiled| !matches!(capture.from, Origin::Header(_));
        !self.json.is_empty() || self.captures.iter().any(from_body)
    }

    /// The numbers of the values that this sets.
    pub fn sets(&self) -> impl Iterator<Item = usize> + '_ {
        self.captures.iter().map(|capture| capture.slot)
    }

    /// Sets the user's values; the first thing that was not as declared.
    pub fn take(&self, seen: &Seen, vars: &mut Vars) -> Option<Missed> {
        let reads_json = !self.json.is_empty()
            || self
                .captures
                .iter()
                .any(|capture| matches!(capture.from, Origin::Json(_)));
        let json: Option<Value> = if reads_json {
            serde_json::from_slice(&seen.body).ok()
        } else {
            None
        };
        let expected = self.json.iter().all(|expect| {
            let found = json.as_ref().and_then(|json| json.pointer(&expect.pointer));
            found.is_some_and(|found| expect.equals.as_ref().is_none_or(|equals| equals == found))
        });
        let mut missed = (!expected).then_some(Missed::Expectation);
        for capture in &self.captures {
            let found = capture.from.find(seen, json.as_ref());
            let value = found.or_else(|| capture.default.clone());
            if value.is_none() {
                missed = missed.or(Some(Missed::Capture));
            }
            if let Some(place) = vars.captured.get_mut(capture.slot) {
                *place = value;
            }
        }
        missed
    }
}

impl Origin {
    fn find(&self, seen: &Seen, json: Option<&Value>) -> Option<Box<[u8]>> {
        match self {
            Self::Header(name) => seen.headers(name).next().map(Box::from),
            Self::Json(pointer) => match json?.pointer(pointer)? {
                Value::Null => None,
                Value::String(text) => Some(text.as_bytes().into()),
                other => Some(other.to_string().into_bytes().into()),
            },
            Self::Regex(regex, group) => regex
                .captures(&seen.body)?
                .get(*group)
                .map(|found| found.as_bytes().into()),
        }
    }
}

fn source(capture: &Capture) -> Result<Origin, String> {
    if capture.group.is_some() && capture.regex.is_none() {
        return Err("has a group, which only a regex has".to_owned());
    }
    match (&capture.json, &capture.header, &capture.regex) {
        (Some(pointer), None, None) => {
            check_pointer(pointer)?;
            Ok(Origin::Json(pointer.clone()))
        }
        (None, Some(name), None) => Ok(Origin::Header(name.clone())),
        (None, None, Some(text)) => {
            let regex = regex::bytes::Regex::new(text).map_err(|error| {
                format!("has a regex that cannot be read: {}", last_line(&error))
            })?;
            let groups = regex.captures_len() - 1;
            let group = capture.group.unwrap_or(groups.min(1));
            if group > groups {
                return Err(format!(
                    "asks for group {group}, but its regex has {groups}"
                ));
            }
            Ok(Origin::Regex(Box::new(regex), group))
        }
        _ => Err("expected exactly one of json, header and regex".to_owned()),
    }
}

/// The regex crate draws a picture over several lines; the last one says what is wrong.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    if pointer.is_empty() || pointer.starts_with('/') {
        return Ok(());
    }
    Err(format!(
        "has the JSON pointer {pointer:?}, expected it to begin with / (such as /items/0/id)"
    ))
}

const GENERATORS: [&str; 6] = ["sequence", "uuid", "random", "time", "user", "iteration"];

pub(super) fn check_name(name: &str) -> Result<(), String> {
    let good = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !good || GENERATORS.contains(&name) {
        return Err(format!(
            "a value has the name {name:?}, expected letters, digits, _ and -, and none of {}",
            GENERATORS.join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::vars::Shape;
    use proptest::prelude::*;
    use serde_json::json;

    fn look(captures: Value, expects: Value) -> Result<(Look, Vars), String> {
        let captures: Vec<Capture> = serde_json::from_value(captures).unwrap();
        let expects: Vec<JsonExpect> = serde_json::from_value(expects).unwrap();
        let mut next = 0;
        let look = Look::compile(&captures, &expects, false, |_| {
            next += 1;
            next - 1
        })?;
        let vars = Vars::new(Shape {
            captured: captures.len(),
            ..Shape::default()
        });
        Ok((look, vars))
    }

    fn answer(body: &[u8]) -> Seen {
        let mut seen = Seen::new(true);
        seen.begin(b"HTTP/1.1 200 OK\r\nLocation: /people/7\r\n\r\n");
        seen.feed(body);
        seen
    }

    fn taken(captures: Value, body: &str) -> (Option<Missed>, Vec<Option<String>>) {
        let (look, mut vars) = look(captures, json!([])).unwrap();
        let missed = look.take(&answer(body.as_bytes()), &mut vars);
        let text = |value: &Option<Box<[u8]>>| {
            value
                .as_ref()
                .map(|value| String::from_utf8_lossy(value).into_owned())
        };
        (missed, vars.captured.iter().map(text).collect())
    }

    #[test]
    fn values_come_from_json_headers_and_regexes() {
        let (missed, values) = taken(
            json!([{"name": "a", "json": "/items/1/id"}, {"name": "b", "header": "location"},
                {"name": "c", "regex": "\"id\":(\\d+)"}, {"name": "d", "regex": "i.ems"}, {"name": "e", "json": "/items/0"}]),
            r#"{"items":[{"id":41},{"id":"forty two"}]}"#,
        );
        assert_eq!(missed, None);
        let expected = ["forty two", "/people/7", "41", "items", r#"{"id":41}"#];
        assert_eq!(values, expected.map(|text| Some(text.to_owned())));
    }

    #[test]
    fn what_is_not_found_is_said_or_has_its_default() {
        let missing = taken(json!([{"name": "a", "json": "/id"}]), r#"{"id":null}"#);
        assert_eq!(missing, (Some(Missed::Capture), vec![None]));
        let none = taken(
            json!([{"name": "a", "json": "/id", "default": "-"}]),
            "not JSON",
        );
        assert_eq!(none, (None, vec![Some("-".to_owned())]));
    }

    #[test]
    fn json_is_expected_to_be_there_or_to_be_equal() {
        let judged = |expect: Value, body: &str| {
            let (look, mut vars) = look(json!([]), json!([expect])).unwrap();
            look.take(&answer(body.as_bytes()), &mut vars)
        };
        assert_eq!(judged(json!({"pointer": "/a"}), r#"{"a":null}"#), None);
        assert_eq!(
            judged(json!({"pointer": "/a", "equals": [1]}), r#"{"a":[1]}"#),
            None
        );
        let missed = Some(Missed::Expectation);
        assert_eq!(judged(json!({"pointer": "/b"}), r#"{"a":1}"#), missed);
        assert_eq!(
            judged(json!({"pointer": "/a", "equals": null}), r#"{"a":1}"#),
            missed
        );
        assert_eq!(judged(json!({"pointer": ""}), "no JSON"), missed);
    }

    #[test]
    fn captures_that_cannot_work_are_refused() {
        for (capture, part) in [
            (json!({"name": "a"}), "exactly one"),
            (json!({"name": "a", "json": "id"}), "begin with /"),
            (json!({"name": "a", "regex": "("}), "cannot be read"),
            (json!({"name": "a", "regex": "x", "group": 1}), "has 0"),
            (json!({"name": "uuid", "json": "/id"}), "name"),
            (json!({"name": "a b", "json": "/id"}), "name"),
            (
                json!({"name": "a", "json": "/id", "group": 1}),
                "only a regex",
            ),
        ] {
            let refusal = look(json!([capture]), json!([])).unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    proptest! {
        /// Whatever the body is, taking never panics.
        #[test]
        fn any_body_can_be_looked_at(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (look, mut vars) = look(json!([{"name": "a", "json": "/a/0"}, {"name": "b", "regex": "a(b)?"}]),
                json!([{"pointer": "/x"}])).unwrap();
            look.take(&answer(&body), &mut vars);
        }
    }
}
