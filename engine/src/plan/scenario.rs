//! The scenarios of a plan: steps, what they send, what they keep of the answer and what a right answer looks like.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Node, Think, requests};

/// The steps that a user walks, over and over. One walk with all its loops is an iteration.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(default = "default_scenario_name")]
    pub name: String,
    /// Its share among the scenarios.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// How often the steps are walked in one iteration.
    #[serde(default = "one")]
    pub loops: u32,
    /// Set when a user starts, in this order, and kept over its iterations: what `${name}` stands for in this scenario, until a
    /// capture or a block gives it another value.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// Requests, and blocks of them.
    pub steps: Vec<Node>,
}

impl Scenario {
    /// Its requests, those in blocks too, in the order in which they are written down.
    pub fn requests(&self) -> Vec<&Step> {
        requests(&self.steps)
    }
}

fn default_scenario_name() -> String {
    "main".to_owned()
}

fn default_weight() -> f64 {
    1.0
}

fn one() -> u32 {
    1
}

/// When a user draws one of several scenarios.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioChoice {
    /// Once, when it starts.
    #[default]
    PerUser,
    /// Anew for every iteration.
    PerIteration,
}

/// One request and what its answer must look like. Path, header values and the text of the body may hold `${…}` placeholders.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// In the report; without it method and path.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default = "default_method")]
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Name and value; `Host` and, with a body, `Content-Length` are added when they are not listed.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// A text, or an object that says where the bytes come from.
    #[serde(default, deserialize_with = "text_or_body")]
    #[schemars(with = "Option<TextOrBody>")]
    pub body: Option<Body>,
    /// Sends the head with `Expect: 100-continue`, and the body when the server asks for it, or after a second without an answer.
    #[serde(default)]
    pub expect_continue: bool,
    /// Written as the `Authorization` header.
    #[serde(default)]
    pub auth: Option<Auth>,
    #[serde(default)]
    pub expect: Expect,
    /// Values of the answer that later steps of the iteration use.
    #[serde(default)]
    pub capture: Vec<Capture>,
    /// The pause after this step, in place of the load's.
    #[serde(default)]
    pub think: Option<Think>,
    /// A pause before this step, besides the one after the step before.
    #[serde(default)]
    pub think_before: Option<Think>,
    /// How often this step is sent before the next.
    #[serde(default = "one")]
    pub repeat: u32,
}

fn default_method() -> String {
    "GET".to_owned()
}

/// A request's body: exactly one of `text`, `base64`, `file`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// May hold placeholders.
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub base64: Option<String>,
    /// A file that is sent as it is; a large one is read while it is sent, so it must not change during the run.
    #[serde(default)]
    pub file: Option<String>,
    /// Sent in the chunked coding, without a declared length.
    #[serde(default)]
    pub chunked: bool,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum TextOrBody {
    Text(String),
    Body(Body),
}

fn text_or_body<'de, D>(deserializer: D) -> Result<Option<Body>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    // Not an untagged enum: its errors would not say which key is wrong.
    match Option::<serde_json::Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(serde_json::Value::String(text)) => Ok(Some(Body {
            text: Some(text),
            ..Body::default()
        })),
        Some(value) => serde_json::from_value(value)
            .map(Some)
            .map_err(|error| serde::de::Error::custom(format!("body: {error}"))),
    }
}

/// Who asks, by RFC 7617 or RFC 6750.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    Basic {
        user: String,
        password: String,
    },
    /// The token may hold placeholders.
    Bearer(String),
}

/// A value taken from an answer: exactly one of `json`, `header`, `regex`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// What `${name}` stands for afterwards.
    pub name: String,
    /// A JSON pointer (RFC 6901) into the body; `null` there counts as nothing.
    #[serde(default)]
    pub json: Option<String>,
    /// The value of the first header of this name.
    #[serde(default)]
    pub header: Option<String>,
    /// The first match in the body.
    #[serde(default)]
    pub regex: Option<String>,
    /// Of the regex: which group; without it the first, or the whole match where there is none.
    #[serde(default)]
    pub group: Option<usize>,
    /// Used when nothing is found; without it that is an error of the kind `capture`.
    #[serde(default)]
    pub default: Option<String>,
}

/// What a right answer looks like; what is not set is not checked.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Status codes that are right; an empty list accepts any.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub status: Vec<u16>,
    /// Every one of these must occur in the body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub body_contains: Vec<String>,
    /// The whole body.
    #[serde(default)]
    pub body_equals: Option<String>,
    /// Length of the body after any chunking is undone.
    #[serde(default)]
    pub body_bytes: Option<u64>,
    /// Name and text that the value must contain of headers that must be there.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub headers: Vec<(String, String)>,
    /// What must be in a JSON body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub json: Vec<JsonExpect>,
}

/// One value of a JSON body: that it is there, or also what it is.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonExpect {
    /// RFC 6901; an empty text is the whole body.
    pub pointer: String,
    /// Without it anything, also `null`, will do.
    #[serde(
        default,
        deserialize_with = "anything",
        skip_serializing_if = "Option::is_none"
    )]
    pub equals: Option<serde_json::Value>,
}

/// Tells `null` from nothing.
fn anything<'de, D>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    serde_json::Value::deserialize(deserializer).map(Some)
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A CSV file whose first line names its columns, unless `columns` does; `${name.column}` is a value of the user's present row.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeederPlan {
    pub name: String,
    pub file: String,
    pub order: FeederOrder,
    /// What happens when the rows are used up; must be declared, except for `random`.
    #[serde(default)]
    pub at_end: Option<AtEnd>,
    /// The names of the columns, for a file whose first line is a row as the others.
    #[serde(default)]
    pub columns: Vec<String>,
    /// What stands between two values: one character of ASCII.
    #[serde(default = "comma")]
    pub delimiter: char,
}

fn comma() -> char {
    ','
}

/// Which row a user gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeederOrder {
    /// The next one for every iteration, over all users and threads.
    Sequence,
    /// Any, drawn for every iteration.
    Random,
    /// The user's own, for as long as it lives.
    UniquePerUser,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// Begin again at the first row.
    Recycle,
    /// A user for whom there is no row ends.
    Stop,
}
