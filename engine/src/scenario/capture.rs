//! Values taken from an answer, and expectations that need the whole of it. One answer in, values of the user out; no I/O.

use rand::Rng;
use serde_json::Value;

use super::look::Seen;
use super::origin::{Origin, check_pointer, regex};
use super::vars::Vars;
use crate::plan::{Capture, Expect, JsonExpect};

/// What a step does with a kept answer.
#[derive(Debug, Default)]
pub struct Look {
    captures: Vec<Compiled>,
    json: Vec<JsonExpect>,
    /// Each with whether it must be found.
    regexes: Vec<(regex::bytes::Regex, bool)>,
    /// Whether the user keeps the cookies that the answer sets.
    pub cookies: bool,
}

#[derive(Debug)]
struct Compiled {
    slot: usize,
    from: Origin,
    which: Which,
    default: Option<Box<[u8]>>,
    optional: bool,
    always: bool,
}

/// Which of the values that are found.
#[derive(Debug)]
enum Which {
    /// By number, from 1.
    Nth(usize),
    Random,
    /// Each has a name of its own: the place of their count, and number and place of those that something refers to.
    All(usize, Vec<(usize, usize)>),
}

/// What was not as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    Expectation,
    Capture,
}

/// The numbered names (`id_3`) that something in a plan refers to: only those are kept of a capture of all matches.
#[derive(Debug, Default)]
pub struct Numbered(String);

impl Numbered {
    /// `scenarios` as JSON.
    pub fn new(scenarios: String) -> Self {
        Self(scenarios)
    }

    /// The numbers, rising, that stand behind this name.
    fn of(&self, name: &str) -> Vec<usize> {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
        let (text, prefix) = (self.0.as_bytes(), format!("{name}_"));
        let mut found: Vec<usize> = memchr::memmem::find_iter(text, &prefix)
            .filter(|at| *at == 0 || !word(&text[at - 1]))
            .filter_map(|at| {
                let after = &self.0[at + prefix.len()..];
                let digits = after.bytes().take_while(u8::is_ascii_digit).count();
                let ends = !after.as_bytes().get(digits).is_some_and(word);
                // Not 01: that is another name.
                let number: usize = after[..digits].parse().ok()?;
                (ends && number > 0 && !after.starts_with('0')).then_some(number)
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The names that a capture gives values to.
    pub fn names(&self, capture: &Capture) -> Vec<String> {
        let name = &capture.name;
        let mut names = vec![name.clone()];
        if capture.which == -1 {
            names.push(format!("{name}_matchNr"));
            names.extend(
                self.of(name)
                    .iter()
                    .map(|number| format!("{name}_{number}")),
            );
        }
        names
    }
}

impl Look {
    /// `slot` gives the number of a captured value. The error says what is wrong with a capture or an expectation.
    pub fn compile(
        captures: &[Capture],
        expect: &Expect,
        cookies: bool,
        numbered: &Numbered,
        mut slot: impl FnMut(&str) -> usize,
    ) -> Result<Self, String> {
        for expect in &expect.json {
            check_pointer(&expect.pointer)?;
            if expect.absent && expect.equals.is_some() {
                return Err(format!(
                    "expects something and nothing at the JSON pointer {:?}, expected one of equals and absent",
                    expect.pointer
                ));
            }
        }
        let mut regexes = Vec::new();
        for (name, texts, wanted) in [
            ("body_matches", &expect.body_matches, true),
            ("body_not_matches", &expect.body_not_matches, false),
        ] {
            for text in texts {
                let regex = regex(text).map_err(|why| format!("expect.{name} {why}"))?;
                regexes.push((regex, wanted));
            }
        }
        let compiled = captures.iter().map(|capture| {
            check_name(&capture.name)?;
            Compiled::new(capture, numbered, &mut slot)
                .map_err(|why| format!("capture {:?} {why}", capture.name))
        });
        Ok(Self {
            captures: compiled.collect::<Result<_, String>>()?,
            json: expect.json.clone(),
            regexes,
            cookies,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.captures.is_empty() && !self.judges() && !self.cookies
    }

    fn judges(&self) -> bool {
        !self.json.is_empty() || !self.regexes.is_empty()
    }

    pub fn needs_body(&self) -> bool {
        self.judges()
            || self
                .captures
                .iter()
                .any(|capture| capture.from.needs_body())
    }

    /// The numbers of the values that this sets.
    pub fn sets(&self) -> impl Iterator<Item = usize> + '_ {
        self.captures.iter().flat_map(|capture| {
            let (count, numbered) = match &capture.which {
                Which::All(count, numbered) => (Some(*count), &numbered[..]),
                _ => (None, &[][..]),
            };
            let numbered = numbered.iter().map(|(_, slot)| *slot);
            std::iter::once(capture.slot).chain(count).chain(numbered)
        })
    }

    /// Sets the user's values; the first thing that was not as declared. From an answer that is not right already only what is
    /// captured always is taken.
    pub fn take(
        &self,
        seen: &Seen,
        right: bool,
        vars: &mut Vars,
        rng: &mut impl Rng,
    ) -> Option<Missed> {
        let taken = |capture: &&Compiled| right || capture.always;
        let reads_json = right && !self.json.is_empty()
            || self
                .captures
                .iter()
                .filter(taken)
                .any(|capture| capture.from.reads_json());
        let json: Option<Value> = if reads_json {
            serde_json::from_slice(&seen.body).ok()
        } else {
            None
        };
        let met = !right || self.is_met(&seen.body, json.as_ref());
        let mut missed = (!met).then_some(Missed::Expectation);
        for capture in self.captures.iter().filter(taken) {
            if !capture.take(seen, json.as_ref(), vars, rng) {
                missed = missed.or(Some(Missed::Capture));
            }
        }
        missed
    }

    fn is_met(&self, body: &[u8], json: Option<&Value>) -> bool {
        self.json.iter().all(|expect| {
            let found = json.and_then(|json| json.pointer(&expect.pointer));
            match found {
                None => expect.absent && json.is_some(),
                Some(found) => {
                    !expect.absent && expect.equals.as_ref().is_none_or(|equals| equals == found)
                }
            }
        }) && self
            .regexes
            .iter()
            .all(|(regex, wanted)| regex.is_match(body) == *wanted)
    }
}

impl Compiled {
    fn new(
        capture: &Capture,
        numbered: &Numbered,
        slot: &mut impl FnMut(&str) -> usize,
    ) -> Result<Self, String> {
        if capture.optional && capture.default.is_some() {
            return Err("has a default and is optional, expected one of them".to_owned());
        }
        let from = Origin::compile(capture)?;
        let name = &capture.name;
        Ok(Self {
            slot: slot(name),
            which: match capture.which {
                0 => Which::Random,
                -1 => {
                    let each = |number| (number, slot(&format!("{name}_{number}")));
                    let each = numbered.of(name).into_iter().map(each).collect();
                    Which::All(slot(&format!("{name}_matchNr")), each)
                }
                number => Which::Nth(usize::try_from(number).map_err(|_| {
                    format!(
                        "has match {number}, expected 1 or more (which one), 0 (any) or -1 (all)"
                    )
                })?),
            },
            from,
            default: capture.default.as_ref().map(|text| text.as_bytes().into()),
            optional: capture.optional,
            always: capture.always,
        })
    }

    /// False when nothing is found and that was not to be.
    fn take(&self, seen: &Seen, json: Option<&Value>, vars: &mut Vars, rng: &mut impl Rng) -> bool {
        let most = match self.which {
            Which::Nth(number) => number,
            _ => usize::MAX,
        };
        let mut found = self.from.find(seen, json, most);
        let value = match &self.which {
            Which::Nth(number) => (found.len() >= *number).then(|| found.swap_remove(number - 1)),
            Which::Random if found.is_empty() => None,
            Which::Random => Some(found.swap_remove(rng.random_range(0..found.len()))),
            Which::All(count, numbered) => {
                vars.set(*count, found.len().to_string().into_bytes());
                for (number, slot) in numbered {
                    if let Some(place) = vars.captured.get_mut(*slot) {
                        *place = found.get_mut(number - 1).map(std::mem::take);
                    }
                }
                if !found.is_empty() {
                    return true;
                }
                None
            }
        };
        if value.is_none() && self.optional {
            return true;
        }
        let value = value.or_else(|| self.default.clone());
        let is_there = value.is_some();
        if let Some(place) = vars.captured.get_mut(self.slot) {
            *place = value;
        }
        is_there
    }
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
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use serde_json::json;

    fn look(captures: Value, expects: Value) -> Result<(Look, Vars), String> {
        let captures: Vec<Capture> = serde_json::from_value(captures).unwrap();
        let expects: Expect = serde_json::from_value(expects).unwrap();
        let numbered = Numbered::new("/${a_2}/${a_1}/${ba_3}/${a_04}/${a_5x}/${a_2}".to_owned());
        let mut next = 0;
        let look = Look::compile(&captures, &expects, false, &numbered, |_| {
            next += 1;
            next - 1
        })?;
        let vars = Vars::new(Shape {
            captured: next,
            ..Shape::default()
        });
        Ok((look, vars))
    }

    fn rng() -> SmallRng {
        SmallRng::seed_from_u64(1)
    }

    fn answer(body: &[u8]) -> Seen {
        let mut seen = Seen::new(true);
        seen.begin(b"HTTP/1.1 200 OK\r\nLocation: /people/7\r\n\r\n");
        seen.feed(body);
        seen
    }

    fn taken(captures: Value, body: &str) -> (Option<Missed>, Vec<Option<String>>) {
        let (look, mut vars) = look(captures, json!({})).unwrap();
        let missed = look.take(&answer(body.as_bytes()), true, &mut vars, &mut rng());
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
    fn which_of_several_is_taken_is_said() {
        let body = r#"{"items":[{"id":41},{"id":42}]}"#;
        let which = |number: i64| {
            taken(
                json!([{"name": "a", "jsonpath": "$.items[*].id", "match": number}]),
                body,
            )
        };
        assert_eq!(which(2), (None, vec![Some("42".to_owned())]));
        assert_eq!(which(3), (Some(Missed::Capture), vec![None]));
        let (missed, any) = which(0);
        assert!(missed.is_none() && ["41", "42"].contains(&any[0].as_deref().unwrap()));
        // The value itself, then those that something refers to, then their count.
        let all = taken(
            json!([{"name": "a", "regex": "\\d(\\d)", "match": -1}]),
            body,
        );
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(all, (None, vec![None, text("1"), text("2"), text("2")]));
        let one = taken(json!([{"name": "a", "regex": "4[2]", "match": -1}]), body);
        assert_eq!(one, (None, vec![None, text("42"), None, text("1")]));
        let none = json!({"name": "a", "regex": "x", "match": -1, "optional": true});
        assert_eq!(
            taken(json!([none]), body),
            (None, vec![None, None, None, text("0")])
        );
    }

    #[test]
    fn what_is_optional_stays_as_it_was_and_what_is_always_taken_is() {
        let captures = json!([{"name": "a", "json": "/id", "optional": true}, {"name": "b", "json": "/id", "always": true}]);
        let (look, mut vars) = look(captures, json!({})).unwrap();
        vars.set(0, b"before".to_vec());
        assert_eq!(
            look.take(&answer(br#"{"id":7}"#), false, &mut vars, &mut rng()),
            None
        );
        let values = |vars: &Vars| {
            vars.captured
                .iter()
                .map(|value| value.as_deref().map(<[u8]>::to_vec))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            values(&vars),
            [Some(b"before".to_vec()), Some(b"7".to_vec())]
        );
        look.take(&answer(b"{}"), true, &mut vars, &mut rng());
        assert_eq!(values(&vars), [Some(b"before".to_vec()), None]);
    }

    #[test]
    fn json_and_regexes_are_expected_to_be_there_or_not() {
        let judged = |expect: Value, body: &str| {
            let (look, mut vars) = look(json!([]), expect).unwrap();
            look.take(&answer(body.as_bytes()), true, &mut vars, &mut rng())
        };
        let missed = Some(Missed::Expectation);
        for (expect, body, expected) in [
            (json!({"pointer": "/a"}), r#"{"a":null}"#, None),
            (
                json!({"pointer": "/a", "equals": [1]}),
                r#"{"a":[1]}"#,
                None,
            ),
            (json!({"pointer": "/b"}), r#"{"a":1}"#, missed),
            (
                json!({"pointer": "/a", "equals": null}),
                r#"{"a":1}"#,
                missed,
            ),
            (json!({"pointer": ""}), "no JSON", missed),
            (json!({"pointer": "/b", "absent": true}), r#"{"a":1}"#, None),
            (
                json!({"pointer": "/a", "absent": true}),
                r#"{"a":1}"#,
                missed,
            ),
            (json!({"pointer": "/a", "absent": true}), "no JSON", missed),
        ] {
            assert_eq!(judged(json!({"json": [expect]}), body), expected, "{body}");
        }
        assert_eq!(
            judged(json!({"body_matches": ["^h.l", "o$"]}), "hello"),
            None
        );
        assert_eq!(
            judged(json!({"body_matches": ["^h", "x"]}), "hello"),
            missed
        );
        assert_eq!(judged(json!({"body_not_matches": ["x"]}), "hello"), None);
        assert_eq!(
            judged(json!({"body_not_matches": ["x", "l+"]}), "hello"),
            missed
        );
        let contrary = json!({"json": [{"pointer": "/a", "absent": true, "equals": 1}]});
        assert!(
            look(json!([]), contrary)
                .unwrap_err()
                .contains("something and nothing")
        );
        assert!(
            look(json!([]), json!({"body_matches": ["("]}))
                .unwrap_err()
                .contains("expect.body_matches has a regex")
        );
    }

    #[test]
    fn captures_that_cannot_work_are_refused() {
        for (capture, part) in [
            (json!({"name": "a"}), "capture \"a\" expected exactly one"),
            (json!({"name": "uuid", "json": "/id"}), "name"),
            (json!({"name": "a b", "json": "/id"}), "name"),
            (
                json!({"name": "a", "status": true, "match": -2}),
                "match -2",
            ),
            (
                json!({"name": "a", "status": true, "optional": true, "default": ""}),
                "one of them",
            ),
        ] {
            let refusal = look(json!([capture]), json!({})).unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    proptest! {
        /// Whatever the body is, taking never panics.
        #[test]
        fn any_body_can_be_looked_at(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (look, mut vars) = look(json!([{"name": "a", "json": "/a/0"}, {"name": "b", "regex": "a(b)?"}]),
                json!({"json": [{"pointer": "/x"}], "body_not_matches": ["^a"]})).unwrap();
            look.take(&answer(&body), true, &mut vars, &mut rng());
        }
    }
}
