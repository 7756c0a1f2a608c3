//! Text with `${…}` placeholders, compiled once and rendered into bytes for every request. A placeholder that
//! is not known is refused when it is compiled; rendering cannot fail. It knows nothing of HTTP.

use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use rand::Rng;

use super::date::DateFormat;
use super::feeder::{Feeder, NO_ROW};
use super::filter::{Filter, RequestPart, make_safe};
use super::vars::{Shared, Vars};

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(Box<[u8]>),
    Value(Source, Vec<Filter>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// One counter for all threads: every number is drawn exactly once, by one of the engines.
    Sequence(usize, Numbers),
    /// A counter of each user's own.
    UserSequence(usize, Numbers),
    /// The same, which begins again with each iteration of the user.
    IterationSequence(usize, Numbers),
    Int {
        low: i64,
        high: i64,
    },
    Choice(Vec<Box<[u8]>>),
    Letters(usize),
    /// Of these, so many.
    Characters(Vec<char>, usize),
    /// Of the wall clock, in units of so many ms.
    Time(u64),
    /// The same as a date.
    Date(Box<DateFormat>),
    /// The number of the user, from 1.
    User,
    /// The number of its iteration, from 1.
    Iteration,
    Uuid,
    Column {
        feeder: usize,
        column: usize,
    },
    /// Lets the row of a feeder go.
    Next(usize),
    Captured(usize),
}

/// The numbers of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    start: i64,
    step: i64,
    /// After so many of them it begins again; 0: never.
    count: u64,
}

/// What a template may refer to, and what it adds to while it is compiled.
#[derive(Debug, Default)]
pub struct Scope {
    /// Name and columns, by number of the feeder.
    pub feeders: Vec<(String, Vec<String>)>,
    /// Names of the captured values, by number.
    pub captured: Vec<String>,
    /// How many of `captured` an earlier step of this scenario has set, by number.
    pub visible: Vec<usize>,
    sequences: Vec<SequenceCounter>,
    user_sequences: Vec<SequenceCounter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SequenceCounter {
    /// Places with the same name share a counter; a place without a name has its own.
    name: Option<String>,
    numbers: Numbers,
    each_iteration: bool,
}

impl Scope {
    pub fn sequences(&self) -> usize {
        self.sequences.len()
    }

    pub fn user_sequences(&self) -> usize {
        self.user_sequences.len()
    }

    /// The number of a captured value, new or known.
    pub fn capture(&mut self, name: &str) -> usize {
        if let Some(slot) = self.captured.iter().position(|known| known == name) {
            return slot;
        }
        self.captured.push(name.to_owned());
        self.captured.len() - 1
    }
}

/// A placeholder that cannot be compiled: at which character, counted from 1, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTemplate {
    pub at: usize,
    pub why: String,
}

/// A text with placeholders, compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

/// The longest random string: longer ones are a mistake in the plan.
const MAX_LETTERS: usize = 1 << 20;
const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Template {
    /// Bytes without placeholders.
    pub fn literal(bytes: impl Into<Box<[u8]>>) -> Self {
        let mut template = Self::default();
        template.push_literal(bytes.into());
        template
    }

    /// Compiles text; `$${` stands for `${` itself.
    pub fn compile(text: &str, scope: &mut Scope) -> Result<Self, BadTemplate> {
        let mut template = Self::default();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            literal.push_str(&rest[..dollar]);
            let from = &rest[dollar..];
            let bad = |why: String| BadTemplate {
                at: text[..text.len() - from.len()].chars().count() + 1,
                why,
            };
            if let Some(after) = from.strip_prefix("$${") {
                literal.push_str("${");
                rest = after;
            } else if let Some(inside) = from.strip_prefix("${") {
                let Some((words, after)) = inside.split_once('}') else {
                    return Err(bad("the placeholder that begins here has no }".to_owned()));
                };
                let (source, filters) =
                    value(words, scope).map_err(|why| bad(format!("${{{words}}} {why}")))?;
                template.push_literal(std::mem::take(&mut literal).into_bytes().into());
                template.parts.push(TemplatePart::Value(source, filters));
                rest = after;
            } else {
                literal.push('$');
                rest = &from[1..];
            }
        }
        literal.push_str(rest);
        template.push_literal(literal.into_bytes().into());
        Ok(template)
    }

    /// Compiles the text of a place in the plan; the error says where in it something is wrong.
    pub fn of(text: &str, place: &str, scope: &mut Scope) -> Result<Self, String> {
        Self::compile(text, scope)
            .map_err(|BadTemplate { at, why }| format!("{place}, character {at}: {why}"))
    }

    /// Renders the other one behind this one.
    pub fn append(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    fn push_literal(&mut self, bytes: Box<[u8]>) {
        if !bytes.is_empty() {
            self.parts.push(TemplatePart::Literal(bytes));
        }
    }

    /// `None`: it holds placeholders.
    pub fn literal_bytes(&self) -> Option<u64> {
        let lengths = self.parts.iter().map(|part| match part {
            TemplatePart::Literal(bytes) => Some(bytes.len() as u64),
            TemplatePart::Value(..) => None,
        });
        lengths.sum()
    }

    /// Whether it renders the same bytes every time.
    pub fn is_literal(&self) -> bool {
        self.parts
            .iter()
            .all(|part| matches!(part, TemplatePart::Literal(_)))
    }

    /// The captured values without which it cannot be rendered.
    pub fn needs(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Value(Source::Captured(slot), _) => Some(*slot),
            _ => None,
        })
    }

    /// Most rows of a feeder that it writes values of; those that stay with a user are no claim.
    pub fn rows(&self, shared: &Shared) -> Option<u32> {
        let feeders = self.parts.iter().filter_map(|part| match part {
            TemplatePart::Value(Source::Column { feeder, .. }, _) => shared.feeders.get(*feeder),
            _ => None,
        });
        feeders.filter_map(Feeder::claimed_rows).max()
    }

    /// The captured values, and those of feeders, that it writes and no filter encodes.
    pub fn values<'a>(
        &'a self,
        shared: &'a Shared,
        vars: &'a Vars,
    ) -> impl Iterator<Item = &'a [u8]> {
        let encodes =
            |filter: &Filter| matches!(filter, Filter::Form | Filter::Url | Filter::Base64);
        self.parts.iter().filter_map(move |part| match part {
            TemplatePart::Value(_, filters) if filters.iter().any(encodes) => None,
            TemplatePart::Value(Source::Captured(slot), _) => vars.captured.get(*slot)?.as_deref(),
            TemplatePart::Value(Source::Column { feeder, column }, _) => {
                let row = vars.rows.get(*feeder).filter(|row| **row != NO_ROW)?;
                Some(shared.feeders.get(*feeder)?.value(*row, *column))
            }
            _ => None,
        })
    }

    /// Whether it uses something that belongs to a user.
    pub fn uses_vars(&self) -> bool {
        self.parts.iter().any(|part| {
            matches!(
                part,
                TemplatePart::Value(
                    Source::Captured(_)
                        | Source::Column { .. }
                        | Source::Next(_)
                        | Source::UserSequence(..)
                        | Source::IterationSequence(..)
                        | Source::User
                        | Source::Iteration,
                    _
                )
            )
        })
    }

    /// The rendered bytes of a text that is no part of a request.
    pub fn text(&self, shared: &Shared, vars: &mut Vars, rng: &mut impl Rng) -> Vec<u8> {
        let mut out = Vec::new();
        self.render(RequestPart::Body, shared, vars, rng, &mut out);
        out
    }

    /// Appends the rendered bytes. A captured value that is not there renders as nothing.
    pub fn render(
        &self,
        place: RequestPart,
        shared: &Shared,
        vars: &mut Vars,
        rng: &mut impl Rng,
        out: &mut Vec<u8>,
    ) {
        for part in &self.parts {
            match part {
                TemplatePart::Literal(bytes) => out.extend_from_slice(bytes),
                TemplatePart::Value(source, filters) => {
                    let from = out.len();
                    source.render(shared, vars, rng, out);
                    make_safe(out, from, place, filters);
                }
            }
        }
    }
}

impl Source {
    fn render(&self, shared: &Shared, vars: &mut Vars, rng: &mut impl Rng, out: &mut Vec<u8>) {
        match self {
            Self::Sequence(counter, numbers) => {
                let drawn = shared
                    .sequences
                    .get(*counter)
                    .map_or(0, |next| next.fetch_add(1, Ordering::Relaxed));
                number(numbers.nth(shared.part.number(drawn)), out);
            }
            Self::UserSequence(counter, numbers) => {
                let drawn = vars.counters.get_mut(*counter).map_or(0, |next| {
                    *next += 1;
                    *next - 1
                });
                number(numbers.nth(drawn), out);
            }
            Self::IterationSequence(counter, numbers) => {
                let iteration = vars.iteration << 32;
                let drawn = vars.counters.get_mut(*counter).map_or(0, |next| {
                    // The iteration stands above the count of what was drawn in it.
                    *next = (*next).max(iteration) + 1;
                    (*next - 1) & u64::from(u32::MAX)
                });
                number(numbers.nth(drawn), out);
            }
            Self::Int { low, high } => number(rng.random_range(*low..=*high), out),
            Self::Choice(words) => {
                if let Some(word) = words.get(rng.random_range(0..words.len().max(1))) {
                    out.extend_from_slice(word);
                }
            }
            Self::Letters(count) => {
                out.extend((0..*count).map(|_| ALPHANUMERIC[rng.random_range(0..62)]));
            }
            Self::Characters(alphabet, count) => {
                let mut text = [0; 4];
                for _ in 0..*count {
                    if let Some(drawn) = alphabet.get(rng.random_range(0..alphabet.len().max(1))) {
                        out.extend_from_slice(drawn.encode_utf8(&mut text).as_bytes());
                    }
                }
            }
            Self::Time(unit_ms) => {
                let since = vars.now().duration_since(UNIX_EPOCH);
                let ms = since.map_or(0, |since| since.as_millis() as u64);
                number((ms / unit_ms) as i64, out);
            }
            Self::Date(format) => {
                // Compiled formats have written a date before.
                let _ = format.render(vars.now(), out);
            }
            Self::User => number(vars.number.saturating_add(1) as i64, out),
            Self::Iteration => number(vars.iteration as i64, out),
            Self::Uuid => {
                let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
                let uuid = uuid::Builder::from_random_bytes(
                    (rng.random::<u128>() ^ shared.run.0).to_be_bytes(),
                )
                .into_uuid();
                out.extend_from_slice(uuid.hyphenated().encode_lower(&mut text).as_bytes());
            }
            Self::Column { feeder, column } => {
                if let (Some(feeder), Some(row)) =
                    (shared.feeders.get(*feeder), vars.rows.get_mut(*feeder))
                {
                    if *row == NO_ROW && feeder.on_use() {
                        *row = feeder.draw(vars.number, *row, rng).unwrap_or(NO_ROW);
                    }
                    out.extend_from_slice(feeder.value(*row, *column));
                }
            }
            Self::Next(feeder) => {
                if let Some(row) = vars.rows.get_mut(*feeder) {
                    *row = NO_ROW;
                }
            }
            Self::Captured(slot) => {
                if let Some(Some(value)) = vars.captured.get(*slot) {
                    out.extend_from_slice(value);
                }
            }
        }
    }
}

impl Numbers {
    /// The n-th; a sequence that leaves 64 bits begins again at the other end.
    fn nth(&self, n: u64) -> i64 {
        let n = n.checked_rem(self.count).unwrap_or(n);
        self.start.wrapping_add(self.step.wrapping_mul(n as i64))
    }
}

fn number(value: i64, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(value).as_bytes());
}

/// The inside of a placeholder: words, then filters, each after a `|`.
fn value(inside: &str, scope: &mut Scope) -> Result<(Source, Vec<Filter>), String> {
    let mut parts = inside.split('|');
    let inside = parts.next().unwrap_or_default();
    let filters = parts
        .map(|name| Filter::named(name.trim()))
        .collect::<Result<_, _>>()?;
    let words: Vec<&str> = inside.split_whitespace().collect();
    let source = match words.as_slice() {
        [] => return Err("is empty, expected a name or a generator".to_owned()),
        ["sequence", options @ ..] => sequence(options, scope)?,
        ["uuid"] => Source::Uuid,
        ["time"] => Source::Time(1),
        ["time", "s"] => Source::Time(1000),
        ["date", _, ..] => {
            let format = inside.trim_start().strip_prefix("date").unwrap_or_default();
            Source::Date(Box::new(DateFormat::compile(format)?))
        }
        ["next", feeder] => {
            let known = scope.feeders.iter().position(|(name, _)| name == feeder);
            Source::Next(known.ok_or_else(|| unknown(scope))?)
        }
        ["user"] => Source::User,
        ["iteration"] => Source::Iteration,
        ["random", "int", low, high] => {
            let (low, high) = (integer(low)?, integer(high)?);
            refuse_if! {
                low > high => "has the range {low} to {high}, expected the lower bound first";
            }
            Source::Int { low, high }
        }
        ["random", "string", length, alphabet @ ..] if alphabet.len() < 2 => match length.parse() {
            Ok(length @ 1..=MAX_LETTERS) => match alphabet {
                [alphabet] => Source::Characters(alphabet.chars().collect(), length),
                _ => Source::Letters(length),
            },
            _ => refuse! { "has the length {length}, expected a number from 1 to {MAX_LETTERS}" },
        },
        ["random", "choice", first, more @ ..] => Source::Choice(
            std::iter::once(first)
                .chain(more)
                .map(|word| word.as_bytes().into())
                .collect(),
        ),
        ["random", ..] => refuse! {
            "is not a known random value, expected random int LOW HIGH, random string LENGTH or random choice WORD…"
        },
        [name] => named(name, scope)?,
        _ => return Err(unknown(scope)),
    };
    Ok((source, filters))
}

fn integer(word: &str) -> Result<i64, String> {
    word.parse()
        .map_err(|_| format!("holds {word:?} where a whole number was expected"))
}

fn sequence(options: &[&str], scope: &mut Scope) -> Result<Source, String> {
    let (mut start, mut step, mut end) = (1, 1, None);
    let (mut per_user, mut each_iteration) = (false, false);
    let mut of = None;
    for option in options {
        match option.split_once('=') {
            Some(("start", value)) => start = integer(value)?,
            Some(("step", value)) => step = integer(value)?,
            Some(("end", value)) => end = Some(integer(value)?),
            Some(("name", value)) if !value.is_empty() => of = Some(value.to_owned()),
            Some(("per", "iteration")) => (per_user, each_iteration) = (true, true),
            Some(("per", "user")) => (per_user, each_iteration) = (true, false),
            Some(("per", "run")) => (per_user, each_iteration) = (false, false),
            _ => refuse! {
                "has the option {option:?}, expected start=N, step=N, end=N, name=WORD, per=run, per=user or per=iteration"
            },
        }
    }
    let numbers = Numbers {
        start,
        step,
        count: end.map_or(Ok(0), |end| count(start, step, end))?,
    };
    let wanted = SequenceCounter {
        name: of,
        numbers,
        each_iteration,
    };
    let known = if per_user {
        &mut scope.user_sequences
    } else {
        &mut scope.sequences
    };
    let same = |other: &SequenceCounter| other.name.is_some() && other.name == wanted.name;
    let counter = match known.iter().position(same) {
        Some(place) if known[place] == wanted => place,
        Some(_) => refuse! {
            "has the name of another sequence with another start, step or end, expected the same ones"
        },
        None => {
            known.push(wanted);
            known.len() - 1
        }
    };
    Ok(match (per_user, each_iteration) {
        (_, true) => Source::IterationSequence(counter, numbers),
        (true, _) => Source::UserSequence(counter, numbers),
        _ => Source::Sequence(counter, numbers),
    })
}

/// How many numbers a sequence with an end has.
fn count(start: i64, step: i64, end: i64) -> Result<u64, String> {
    let steps = end
        .checked_sub(start)
        .and_then(|length| length.checked_div(step))
        .filter(|steps| *steps >= 0 && (end == start || (end > start) == (step > 0)));
    steps.map(|steps| steps as u64 + 1).ok_or_else(|| {
        format!("ends at {end}, expected a number that steps of {step} from {start} lead to")
    })
}

fn named(name: &str, scope: &Scope) -> Result<Source, String> {
    if let Some(slot) = scope.captured.iter().position(|known| known == name) {
        if scope.visible.contains(&slot) {
            return Ok(Source::Captured(slot));
        }
        refuse! { "is not captured by an earlier step of this scenario" }
    }
    let column = scope
        .feeders
        .iter()
        .enumerate()
        .find_map(|(feeder, (prefix, columns))| {
            let column = name.strip_prefix(prefix.as_str())?.strip_prefix('.')?;
            let column = columns.iter().position(|known| known == column)?;
            Some(Source::Column { feeder, column })
        });
    column.ok_or_else(|| unknown(scope))
}

fn unknown(scope: &Scope) -> String {
    let mut known: Vec<String> = scope
        .visible
        .iter()
        .map(|slot| scope.captured[*slot].clone())
        .collect();
    for (feeder, columns) in &scope.feeders {
        known.extend(columns.iter().map(|column| format!("{feeder}.{column}")));
    }
    known.extend(
        [
            "sequence",
            "uuid",
            "random int LOW HIGH",
            "random string LENGTH",
            "time",
            "date FORMAT",
            "user",
            "iteration",
            "random choice WORD…",
        ]
        .map(str::to_owned),
    );
    format!("is not known here, expected one of: {}", known.join(", "))
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
