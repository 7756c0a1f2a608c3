//! What a step keeps of its response, and what a right one looks like. Types and their defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value taken from a response: exactly one of `json`, `jsonpath`, `header`, `cookie`, `regex`,
/// `boundary`, `status`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// What `${name}` stands for afterwards.
    pub name: String,
    /// A JSON pointer (RFC 6901) into the body; `null` there counts as nothing.
    pub json: Option<String>,
    /// A JSON path (RFC 9535) into the body; `null` there counts as nothing.
    pub jsonpath: Option<String>,
    /// The value of a header of this name.
    pub header: Option<String>,
    /// The value of a cookie of this name that the response sets.
    pub cookie: Option<String>,
    /// A match in the body.
    pub regex: Option<String>,
    /// What stands between two texts in the body.
    pub boundary: Option<Boundary>,
    /// The status code.
    #[serde(default)]
    pub status: bool,
    /// Where a regex and a boundary look.
    #[serde(default, rename = "in")]
    pub part: ResponsePart,
    /// Which of several: a number from 1, 0 for any of them, or -1 for all: then `${name_1}`,
    /// `${name_2}`… stand for them and `${name_matchNr}` for their count.
    #[serde(default = "first", rename = "match")]
    pub which: i64,
    /// Of the regex: which group; without it the first, or the whole match where there is none.
    pub group: Option<usize>,
    /// Of the regex: a text in which `$1$` stands for the first group, and so on; `$0$` for the whole match.
    pub template: Option<String>,
    /// Used when nothing is found; without it that is an error of the kind `capture`.
    pub default: Option<String>,
    /// Nothing found is no error, and the value stays as it was.
    #[serde(default)]
    pub optional: bool,
    /// Taken also from a response that is not as expected.
    #[serde(default)]
    pub always: bool,
    /// The value is kept as JSON: a text with its quotes, and of all that are found (`match`: -1)
    /// the list under the name itself.
    #[serde(default)]
    pub as_json: bool,
}

fn first() -> i64 {
    1
}

/// What an HTML page or a style sheet embeds on its own server, as a browser would ask for it.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// The value that is then a JSON list of their paths, each without the slash that it begins with.
    pub into: String,
    /// A regex that must be found in the whole URL.
    pub matching: Option<String>,
    /// A regex that must not be found in it.
    pub not_matching: Option<String>,
}

/// The texts around a value; an empty one is the beginning or the end.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boundary {
    pub left: String,
    pub right: String,
}

/// A part of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponsePart {
    #[default]
    Body,
    /// The line with the status, and the headers.
    Head,
}

/// What a right response looks like; what is not set is not checked.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Status codes that are right, or classes of them such as `2xx`; an empty list accepts any.
    #[serde(deserialize_with = "codes")]
    #[schemars(with = "Option<Vec<CodeOrClass>>")]
    pub status: Vec<u16>,
    /// Status codes and classes that are wrong.
    #[serde(deserialize_with = "codes")]
    #[schemars(with = "Option<Vec<CodeOrClass>>")]
    pub not_status: Vec<u16>,
    /// Every one of these must occur in the body.
    #[serde(deserialize_with = "null_is_empty")]
    pub body_contains: Vec<String>,
    /// None of these may occur in the body.
    #[serde(deserialize_with = "null_is_empty")]
    pub body_not_contains: Vec<String>,
    /// The whole body.
    pub body_equals: Option<String>,
    /// What the whole body must not be.
    pub body_not_equals: Option<String>,
    /// Regexes, each of which must be found in the body.
    #[serde(deserialize_with = "null_is_empty")]
    pub body_matches: Vec<String>,
    /// Regexes, none of which may be found in the body.
    #[serde(deserialize_with = "null_is_empty")]
    pub body_not_matches: Vec<String>,
    /// Regexes, each of which must be found in the line with the status and the headers.
    #[serde(deserialize_with = "null_is_empty")]
    pub head_matches: Vec<String>,
    /// Regexes, none of which may be found there.
    #[serde(deserialize_with = "null_is_empty")]
    pub head_not_matches: Vec<String>,
    /// Length of the body after any chunking is undone.
    pub body_bytes: Option<u64>,
    /// The shortest body that is right; a shorter one is an error of the kind `expect_size`.
    pub min_bytes: Option<u64>,
    /// The longest.
    pub max_bytes: Option<u64>,
    /// The longest service time; a longer one is an error of the kind `expect_duration`.
    pub max_ms: Option<f64>,
    /// Name and text that the value must contain of headers that must be there.
    #[serde(deserialize_with = "null_is_empty")]
    pub headers: Vec<(String, String)>,
    /// What must be in a JSON body.
    #[serde(deserialize_with = "null_is_empty")]
    pub json: Vec<JsonExpect>,
    /// Texts with placeholders.
    #[serde(deserialize_with = "null_is_empty")]
    pub filled: Vec<FilledText>,
}

impl Expect {
    /// Whether it asks for what a copy of the response shows.
    pub fn needs_copy(&self) -> bool {
        let regexes = [
            &self.body_matches,
            &self.body_not_matches,
            &self.head_matches,
            &self.head_not_matches,
        ];
        !self.json.is_empty()
            || !self.filled.is_empty()
            || regexes.iter().any(|texts| !texts.is_empty())
    }
}

/// A text that must occur in a part of the response. Its placeholders are filled in after what is
/// captured from the response.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilledText {
    pub text: String,
    #[serde(default, rename = "in")]
    pub part: FilledPart,
    /// The part must be this text.
    #[serde(default)]
    pub whole: bool,
    /// It must not.
    #[serde(default)]
    pub absent: bool,
}

/// What a filled text is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilledPart {
    #[default]
    Body,
    /// The line with the status, and the headers.
    Head,
    /// The status code.
    Status,
}

/// One value of a JSON body: that it is there, also what it is, or that it is not there. With `path`:
/// any of the values there.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonExpect {
    /// RFC 6901; an empty text is the whole body.
    #[serde(default)]
    pub pointer: String,
    /// A JSON path (RFC 9535) in place of the pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Without it anything, also `null`, will do.
    #[serde(
        default,
        deserialize_with = "anything",
        skip_serializing_if = "Option::is_none"
    )]
    pub equals: Option<serde_json::Value>,
    /// What the value must be, as JSON with placeholders that are filled in when the response is
    /// looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals_json: Option<String>,
    /// A regex that must be found in the value: a text as it is, any other as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// There must be nothing; the body must be JSON all the same.
    #[serde(default)]
    pub absent: bool,
}

/// Distinguishes `null` from nothing.
fn anything<'de, D>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    serde_json::Value::deserialize(deserializer).map(Some)
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum CodeOrClass {
    Code(u16),
    /// `1xx` to `5xx`.
    Class(String),
}

/// Codes, those of a class written out.
fn codes<'de, D>(deserializer: D) -> Result<Vec<u16>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let mut codes = Vec::new();
    for value in null_is_empty::<D, serde_json::Value>(deserializer)? {
        let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
        match (number, value.as_str().map(str::as_bytes)) {
            (Some(code), _) => codes.push(code),
            (_, Some([digit @ b'1'..=b'5', b'x', b'x'])) => {
                let first = u16::from(digit - b'0') * 100;
                codes.extend(first..first + 100);
            }
            _ => {
                return Err(serde::de::Error::custom(format!(
                    "a status is {value}, expected a code such as 200 or a class such as \"2xx\""
                )));
            }
        }
    }
    Ok(codes)
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}
