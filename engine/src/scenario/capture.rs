//! Values taken from a response, and expectations that need the whole of it. No I/O.

use std::sync::Arc;

use rand::Rng;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::capture_source::{CaptureSource, MAX_VALUE_BYTES, check_pointer, json_path, regex};
use super::cookies::CookieHost;
use super::names::{Numbered, check_name};
use super::resources::Resources;
use super::template::{Scope, Template};
use super::vars::{Shared, Vars};
use crate::http::captured::CapturedResponse;
use crate::plan::{CachePlan, Capture, Expect, FilledPart, FilledText, JsonExpect, ResponsePart};

/// What a step does with a kept response.
#[derive(Debug, Default)]
pub struct Look {
    captures: Vec<Compiled>,
    json: Vec<ExpectedJson>,
    /// JSON pointer, and the value that must be there as JSON.
    filled: Vec<(String, Template)>,
    texts: Vec<(FilledText, Template)>,
    regexes: Vec<Sought>,
    /// Who sets the cookies that the user keeps; `None`: it keeps none.
    pub cookies: Option<Arc<CookieHost>>,
    /// Whether the user's cache keeps what the response says of itself.
    pub cache: Option<CachePlan>,
    /// What the page embeds, and the value that becomes their list; until then the path.
    pub resources: Option<(usize, Resources)>,
}

/// What must be in a JSON body, with the path to the values and the regex of what one must match.
#[derive(Debug)]
struct ExpectedJson {
    wanted: JsonExpect,
    path: Option<JsonPath>,
    matches: Option<regex::bytes::Regex>,
}

#[derive(Debug)]
struct Compiled {
    slot: usize,
    from: CaptureSource,
    which: Which,
    default: Option<Box<[u8]>>,
    optional: bool,
    always: bool,
    as_json: bool,
}

/// A regex that must be found in a part of the response, or must not.
#[derive(Debug)]
struct Sought {
    regex: regex::bytes::Regex,
    part: ResponsePart,
    wanted: bool,
}

/// Which of the values that are found.
#[derive(Debug)]
enum Which {
    /// By number, from 1.
    Nth(usize),
    Random,
    /// Each has a name: the place of their count, and number and place of those referred to.
    All(usize, Vec<(usize, usize)>),
}

/// What was not as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    Head,
    Expectation,
    Capture,
    /// A value has more than [`MAX_VALUE_BYTES`].
    TooLong,
}

impl Look {
    /// `slot` gives the number of a captured value. The error says what is wrong.
    pub fn compile(
        captures: &[Capture],
        expect: &Expect,
        cookies: Option<Arc<CookieHost>>,
        numbered: &Numbered,
        mut slot: impl FnMut(&str) -> usize,
    ) -> Result<Self, String> {
        let mut json = Vec::new();
        for expect in &expect.json {
            check_pointer(&expect.pointer)?;
            let several = usize::from(expect.absent)
                + usize::from(expect.equals.is_some())
                + usize::from(expect.equals_json.is_some())
                + usize::from(expect.matches.is_some());
            refuse_if! {
                several > 1 =>
                    "expects several things at the JSON pointer {:?}, expected one of equals, equals_json, matches and absent", expect.pointer;
            }
            let matches = expect.matches.as_deref().map(regex).transpose();
            let matches = matches.map_err(|why| {
                format!("expects at the JSON pointer {:?}: {why}", expect.pointer)
            })?;
            let path = expect.path.as_deref().map(json_path).transpose()?;
            refuse_if! {
                path.is_some() && (!expect.pointer.is_empty() || expect.equals_json.is_some()) =>
                    "expects at the JSON path {:?} a pointer or equals_json too, expected one of equals, matches and absent", expect.path.as_deref().unwrap_or_default();
            }
            json.push(ExpectedJson {
                wanted: expect.clone(),
                path,
                matches,
            });
        }
        let mut regexes = Vec::new();
        let (body, head) = (ResponsePart::Body, ResponsePart::Head);
        for (name, texts, part, wanted) in [
            ("body_matches", &expect.body_matches, body, true),
            ("body_not_matches", &expect.body_not_matches, body, false),
            ("head_matches", &expect.head_matches, head, true),
            ("head_not_matches", &expect.head_not_matches, head, false),
        ] {
            for text in texts {
                let regex = regex(text).map_err(|why| format!("expect.{name} {why}"))?;
                regexes.push(Sought {
                    regex,
                    part,
                    wanted,
                });
            }
        }
        let compiled = captures.iter().map(|capture| {
            check_name(&capture.name)?;
            Compiled::new(capture, numbered, &mut slot)
                .map_err(|why| format!("capture {:?} {why}", capture.name))
        });
        Ok(Self {
            captures: compiled.collect::<Result<_, String>>()?,
            json,
            filled: Vec::new(),
            texts: Vec::new(),
            regexes,
            cookies,
            cache: None,
            resources: None,
        })
    }

    /// Whether what it keeps depends on what the request asked for.
    pub fn remembers(&self) -> bool {
        self.cookies.is_some() || self.cache.is_some() || self.resources.is_some()
    }

    /// Keeps what the response gives the user beside values. `target`: what its request asked for,
    /// where that was not the last. Returns how many cookies were dropped.
    pub fn remember(&self, seen: &CapturedResponse, target: Option<&[u8]>, vars: &mut Vars) -> u64 {
        if let Some(target) = target {
            if self.cookies.is_some() {
                vars.cookies.requests(target);
            }
            if let (Some(_), Some(cache)) = (&self.cache, &mut vars.cache) {
                cache.asks_for(target);
            }
            if let Some((slot, _)) = &self.resources {
                vars.set(*slot, target.to_vec());
            }
        }
        let now = vars.now();
        let dropped = match &self.cookies {
            Some(host) => vars.cookies.keep(seen, host, vars.unix_ms()),
            None => 0,
        };
        if let (Some(plan), Some(cache)) = (&self.cache, &mut vars.cache) {
            cache.keep(seen, plan, now);
        }
        dropped
    }

    /// Compiles what is expected with placeholders. The error says what is wrong with it.
    pub fn fill(&mut self, expect: &Expect, scope: &mut Scope) -> Result<(), String> {
        for expect in &expect.json {
            if let Some(text) = &expect.equals_json {
                let place = format!("expects at the JSON pointer {:?}", expect.pointer);
                let filled = Template::of(text, &place, scope)?;
                self.filled.push((expect.pointer.clone(), filled));
            }
        }
        for expect in &expect.filled {
            let place = format!("expects the text {:?}", expect.text);
            let filled = Template::of(&expect.text, &place, scope)?;
            self.texts.push((expect.clone(), filled));
        }
        Ok(())
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.captures.is_empty() && !self.judges() && !self.remembers()
    }

    fn judges(&self) -> bool {
        !self.json.is_empty() || !self.regexes.is_empty() || !self.texts.is_empty()
    }

    pub fn needs_body(&self) -> bool {
        let reads = |sought: &Sought| sought.part == ResponsePart::Body;
        let looks = |(text, _): &(FilledText, Template)| text.part == FilledPart::Body;
        !self.json.is_empty()
            || self.regexes.iter().any(reads)
            || self.texts.iter().any(looks)
            || self.resources.is_some()
            || self
                .captures
                .iter()
                .any(|capture| capture.from.needs_body())
    }

    /// The numbers of the values that this sets.
    pub fn sets(&self) -> impl Iterator<Item = usize> + '_ {
        let captured = self.captures.iter().flat_map(|capture| {
            let (count, numbered) = match &capture.which {
                Which::All(count, numbered) => (Some(*count), &numbered[..]),
                _ => (None, &[][..]),
            };
            let numbered = numbered.iter().map(|(_, slot)| *slot);
            std::iter::once(capture.slot).chain(count).chain(numbered)
        });
        captured.chain(self.resources.iter().map(|(slot, _)| *slot))
    }

    /// Whether it holds the response against values of the user.
    pub fn compares_values(&self) -> bool {
        !self.filled.is_empty() || !self.texts.is_empty()
    }

    /// Sets the user's values; the first thing that was not as declared. From a response that is
    /// not right only what is captured always is taken.
    pub fn take(
        &self,
        seen: &CapturedResponse,
        right: bool,
        shared: &Shared,
        vars: &mut Vars,
        rng: &mut impl Rng,
    ) -> Option<Missed> {
        if let Some((slot, resources)) = &self.resources {
            let page = vars.captured.get_mut(*slot).and_then(Option::take);
            let list = resources.list(seen, &page.unwrap_or_default());
            vars.set(*slot, list);
        }
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
        let met = !right
            || self.is_met(&seen.body, json.as_ref())
                && self.filled.iter().all(|(pointer, filled)| {
                    let wanted = filled.text(shared, vars, rng);
                    let found = json.as_ref().and_then(|json| json.pointer(pointer));
                    found.is_some() && found == serde_json::from_slice(&wanted).ok().as_ref()
                });
        let mut wrong = if right && !self.finds(ResponsePart::Head, &seen.head) {
            Some(Missed::Head)
        } else {
            (!met).then_some(Missed::Expectation)
        };
        let mut lacking = None;
        for capture in self.captures.iter().filter(|capture| capture.always) {
            let lacks = capture.take(seen, json.as_ref(), vars, rng).err();
            lacking = lacking.or(lacks);
        }
        if right && wrong.is_none() && lacking.is_none() {
            wrong = self.texts.iter().find_map(|(text, filled)| {
                missed_text(text, &filled.text(shared, vars, rng), seen)
            });
        }
        let right = right && wrong.is_none();
        for capture in self
            .captures
            .iter()
            .filter(|capture| right && !capture.always)
        {
            let lacks = capture.take(seen, json.as_ref(), vars, rng).err();
            lacking = lacking.or(lacks);
        }
        wrong.or(lacking)
    }

    fn is_met(&self, body: &[u8], json: Option<&Value>) -> bool {
        let met = |expect: &ExpectedJson| json.is_some_and(|json| expect.is_met(json));
        self.json.iter().all(met) && self.finds(ResponsePart::Body, body)
    }

    /// Whether every regex about this part of the response holds.
    fn finds(&self, part: ResponsePart, text: &[u8]) -> bool {
        self.regexes
            .iter()
            .filter(|sought| sought.part == part)
            .all(|sought| sought.regex.is_match(text) == sought.wanted)
    }
}

fn missed_text(text: &FilledText, wanted: &[u8], seen: &CapturedResponse) -> Option<Missed> {
    let (part, missed) = match text.part {
        FilledPart::Body => (&seen.body[..], Missed::Expectation),
        FilledPart::Head => (&seen.head[..], Missed::Head),
        FilledPart::Status => (seen.status().unwrap_or_default(), Missed::Head),
    };
    let there = if text.whole {
        part == wanted
    } else {
        memchr::memmem::find(part, wanted).is_some()
    };
    (there == text.absent).then_some(missed)
}

impl ExpectedJson {
    fn is_met(&self, json: &Value) -> bool {
        let (equals, matches) = (&self.wanted.equals, &self.matches);
        let fits = |found: &Value| {
            equals.as_ref().is_none_or(|equals| equals == found)
                && matches.as_ref().is_none_or(|regex| is_in(regex, found))
        };
        let found: Vec<&Value> = match &self.path {
            Some(path) => path.query(json).all(),
            None => json.pointer(&self.wanted.pointer).into_iter().collect(),
        };
        if self.wanted.absent {
            found.is_empty()
        } else {
            found.into_iter().any(fits)
        }
    }
}

/// Whether it is found in a value: a text as it is, any other as JSON.
fn is_in(regex: &regex::bytes::Regex, value: &Value) -> bool {
    match value {
        Value::String(text) => regex.is_match(text.as_bytes()),
        other => regex.is_match(other.to_string().as_bytes()),
    }
}

impl Compiled {
    fn new(
        capture: &Capture,
        numbered: &Numbered,
        slot: &mut impl FnMut(&str) -> usize,
    ) -> Result<Self, String> {
        refuse_if! {
            capture.optional && capture.default.is_some() =>
                "has a default and is optional, expected one of them";
        }
        let from = CaptureSource::compile(capture)?;
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
            as_json: capture.as_json,
        })
    }

    /// The error: nothing is found and that was not to be, or a value is too long and not set.
    fn take(
        &self,
        seen: &CapturedResponse,
        json: Option<&Value>,
        vars: &mut Vars,
        rng: &mut impl Rng,
    ) -> Result<(), Missed> {
        let (before, most) = match self.which {
            Which::Nth(number) => (number - 1, number),
            _ => (0, usize::MAX),
        };
        let mut found = self.from.find(seen, json, most, self.as_json);
        let lengths = || found.iter().skip(before).map(|value| value.len());
        let too_long = lengths().any(|bytes| bytes > MAX_VALUE_BYTES)
            || self.as_json && lengths().sum::<usize>() > MAX_VALUE_BYTES;
        if too_long {
            found.clear();
        }
        let is_there = self.set(found, vars, rng);
        match (too_long, is_there) {
            (true, _) => Err(Missed::TooLong),
            (false, true) => Ok(()),
            (false, false) => Err(Missed::Capture),
        }
    }

    /// Sets the user's values to what was found; false when that is nothing and was not to be.
    fn set(&self, mut found: Vec<Box<[u8]>>, vars: &mut Vars, rng: &mut impl Rng) -> bool {
        let value = match &self.which {
            Which::Nth(number) => (found.len() >= *number).then(|| found.swap_remove(number - 1)),
            Which::Random if found.is_empty() => None,
            Which::Random => Some(found.swap_remove(rng.random_range(0..found.len()))),
            Which::All(count, numbered) => {
                let list = (self.as_json && !found.is_empty()).then(|| listed(&found));
                vars.set(*count, found.len().to_string().into_bytes());
                for (number, slot) in numbered {
                    if let Some(place) = vars.captured.get_mut(*slot) {
                        *place = found.get_mut(number - 1).map(std::mem::take);
                    }
                }
                if !self.as_json && !found.is_empty() {
                    return true;
                }
                list
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

/// The JSON list of these values as JSON.
fn listed(values: &[Box<[u8]>]) -> Box<[u8]> {
    let mut list = vec![b'['];
    list.extend(values.join(&b','));
    list.push(b']');
    list.into()
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
