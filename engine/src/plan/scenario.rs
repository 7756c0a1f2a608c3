//! The scenarios of a plan: steps, what they send, what they keep of the response and what a right
//! response looks like.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Node, Per, Think, calls, requests};

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
    /// Set when a user starts, in this order, and kept over its iterations: what `${name}` stands
    /// for in this scenario, until a capture or a block gives it another value.
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

    /// The calls into the plan's script, in the order in which they are written down.
    pub fn calls(&self) -> Vec<&Call> {
        calls(&self.steps)
    }

    /// Whether it is more than a list of requests: blocks, variables, or a pause before a step.
    pub fn needs_program(&self) -> bool {
        let plain = |node: &Node| match node {
            Node::Request(step) => step.think_before.is_none(),
            Node::Block(_) => false,
        };
        !self.variables.is_empty() || !self.steps.iter().all(plain)
    }

    /// Whether its steps, or one of them, are walked several times in an iteration.
    pub fn has_loops(&self) -> bool {
        self.loops > 1 || self.requests().iter().any(|step| step.repeat > 1)
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

/// One request and what its response must look like. Path, header values and the text of the body
/// may hold `${…}` placeholders.
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
    /// Which server it is sent to: 0 is the plan's `target`, 1 the first of `other_targets`.
    #[serde(default)]
    pub target: u16,
    /// Name and value; `Host` and, with a body, `Content-Length` are added when they are not listed.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Before which of `headers`, from 0, those that the engine adds itself stand, in this order:
    /// validators of the cache, `Cookie`, `Expect`, `Transfer-Encoding`, `Content-Length`. Without
    /// it they come after all of them, as `Authorization` always does.
    #[serde(default)]
    pub added_headers_at: Option<usize>,
    /// A text with placeholders that stands behind the headers as it is: whole lines, each with its
    /// end. What a script writes.
    #[serde(default)]
    pub header_lines: Option<String>,
    /// A text, or an object that says where the bytes come from.
    #[serde(default, deserialize_with = "text_or_body")]
    #[schemars(with = "Option<TextOrBody>")]
    pub body: Option<Body>,
    /// Sends the head with `Expect: 100-continue`, and the body when the server asks for it, or
    /// after a second without a response.
    #[serde(default)]
    pub expect_continue: bool,
    /// Written as the `Authorization` header.
    #[serde(default)]
    pub auth: Option<Auth>,
    #[serde(default)]
    pub expect: Expect,
    /// Values of the response that later steps of the iteration use.
    #[serde(default)]
    pub capture: Vec<Capture>,
    /// What the page that it asks for embeds, for a loop that asks for each.
    #[serde(default)]
    pub resources: Option<Resources>,
    /// The pause after this step, in place of the load's.
    #[serde(default)]
    pub think: Option<Think>,
    /// A pause before this step, besides the one after the step before.
    #[serde(default)]
    pub think_before: Option<Think>,
    /// How often this step is sent before the next.
    #[serde(default = "one")]
    pub repeat: u32,
    /// So many redirects, one after the other, are followed on the same host; 0: a response that
    /// redirects is one like others.
    #[serde(default)]
    pub follow_redirects: u32,
    /// What ends the iteration after this step; without it a user goes on whatever came of it.
    #[serde(default)]
    pub end_on: Vec<Ending>,
}

/// A way in which a request may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// No whole response came.
    Unanswered,
    /// A value to capture was not there.
    Capture,
    /// A redirect was not followed: to another host, or one too many.
    Redirect,
    /// The body was not as expected.
    Body,
}

fn default_method() -> String {
    "GET".to_owned()
}

/// A request's body: exactly one of `text`, `base64`, `file`, `parts`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// May hold placeholders.
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub base64: Option<String>,
    /// A file that is sent as it is; a large one is read while it is sent, so it must not change
    /// during the run.
    #[serde(default)]
    pub file: Option<String>,
    /// Several, sent one after the other as one body; all of them together are read before the load.
    #[serde(default)]
    pub parts: Vec<BodyPart>,
    /// Sent in the chunked coding, without a declared length.
    #[serde(default)]
    pub chunked: bool,
}

/// A piece of a body: exactly one of `text`, which may hold placeholders, and `file`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyPart {
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub file: Option<String>,
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

/// A value taken from a response: exactly one of `json`, `jsonpath`, `header`, `cookie`, `regex`,
/// `boundary`, `status`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// What `${name}` stands for afterwards.
    pub name: String,
    /// A JSON pointer (RFC 6901) into the body; `null` there counts as nothing.
    #[serde(default)]
    pub json: Option<String>,
    /// A JSON path (RFC 9535) into the body; `null` there counts as nothing.
    #[serde(default)]
    pub jsonpath: Option<String>,
    /// The value of a header of this name.
    #[serde(default)]
    pub header: Option<String>,
    /// The value of a cookie of this name that the response sets.
    #[serde(default)]
    pub cookie: Option<String>,
    /// A match in the body.
    #[serde(default)]
    pub regex: Option<String>,
    /// What stands between two texts in the body.
    #[serde(default)]
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
    #[serde(default)]
    pub group: Option<usize>,
    /// Of the regex: a text in which `$1$` stands for the first group, and so on; `$0$` for the whole match.
    #[serde(default)]
    pub template: Option<String>,
    /// Used when nothing is found; without it that is an error of the kind `capture`.
    #[serde(default)]
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
    #[serde(default)]
    pub matching: Option<String>,
    /// A regex that must not be found in it.
    #[serde(default)]
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
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Status codes that are right, or classes of them such as `2xx`; an empty list accepts any.
    #[serde(default, deserialize_with = "codes")]
    #[schemars(with = "Option<Vec<CodeOrClass>>")]
    pub status: Vec<u16>,
    /// Status codes and classes that are wrong.
    #[serde(default, deserialize_with = "codes")]
    #[schemars(with = "Option<Vec<CodeOrClass>>")]
    pub not_status: Vec<u16>,
    /// Every one of these must occur in the body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub body_contains: Vec<String>,
    /// None of these may occur in the body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub body_not_contains: Vec<String>,
    /// The whole body.
    #[serde(default)]
    pub body_equals: Option<String>,
    /// What the whole body must not be.
    #[serde(default)]
    pub body_not_equals: Option<String>,
    /// Regexes, each of which must be found in the body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub body_matches: Vec<String>,
    /// Regexes, none of which may be found in the body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub body_not_matches: Vec<String>,
    /// Regexes, each of which must be found in the line with the status and the headers.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub head_matches: Vec<String>,
    /// Regexes, none of which may be found there.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub head_not_matches: Vec<String>,
    /// Length of the body after any chunking is undone.
    #[serde(default)]
    pub body_bytes: Option<u64>,
    /// The shortest body that is right; a shorter one is an error of the kind `expect_size`.
    #[serde(default)]
    pub min_bytes: Option<u64>,
    /// The longest.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// The longest service time; a longer one is an error of the kind `expect_duration`.
    #[serde(default)]
    pub max_ms: Option<f64>,
    /// Name and text that the value must contain of headers that must be there.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub headers: Vec<(String, String)>,
    /// What must be in a JSON body.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub json: Vec<JsonExpect>,
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
        !self.json.is_empty() || regexes.iter().any(|texts| !texts.is_empty())
    }
}

/// One value of a JSON body: that it is there, also what it is, or that it is not there.
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
    /// What the value must be, as JSON with placeholders that are filled in when the response is
    /// looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals_json: Option<String>,
    /// A regex that must be found in the value: a text as it is, any other as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// There must be nothing; the body must be JSON all the same.
    #[serde(default)]
    pub absent: bool,
}

/// Tells `null` from nothing.
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

/// A CSV file whose first line names its columns, unless `columns` does, or `rows` in the plan
/// itself; `${name.column}` is a value of the user's present row.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeederPlan {
    pub name: String,
    #[serde(default)]
    pub file: Option<String>,
    /// In place of a file, with `columns`.
    #[serde(default)]
    pub rows: Vec<Vec<String>>,
    pub order: FeederOrder,
    /// What happens when the rows are used up; must be declared, except for `random`.
    #[serde(default)]
    pub at_end: Option<FeederEnd>,
    /// The names of the columns, for a file whose first line is a row as the others.
    #[serde(default)]
    pub columns: Vec<String>,
    /// What stands between two values: one character of ASCII.
    #[serde(default = "comma")]
    pub delimiter: char,
    /// Whether a value may stand in quotes; without it a quote is a character like others.
    #[serde(default = "yes")]
    pub quotes: bool,
    /// Of a sequence: `user` for rows of its own for each user, which begins at the first.
    #[serde(default = "run")]
    pub per: Per,
    /// A user takes its next row when a value of it is wanted and it holds none, in place of one
    /// for every iteration; `${next NAME}`, which is empty, lets it go.
    #[serde(default)]
    pub on_use: bool,
}

fn yes() -> bool {
    true
}

fn run() -> Per {
    Per::Run
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
pub enum FeederEnd {
    /// Begin again at the first row.
    Recycle,
    /// A user for whom there is no row ends.
    Stop,
    /// Every value is `<EOF>` from then on.
    Eof,
}

/// The cookies of each user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CookiePlan {
    /// They are forgotten at the begin of each iteration, but for those that are given.
    #[serde(default)]
    pub each_iteration: bool,
    /// Those that a user begins with.
    #[serde(default)]
    pub given: Vec<GivenCookie>,
}

/// A cookie that a user has before any server sets it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenCookie {
    pub name: String,
    pub value: String,
    /// It is sent to this path and to those below it.
    #[serde(default = "root")]
    pub path: String,
    /// Which server it is for, as in a step.
    #[serde(default)]
    pub target: u16,
}

fn root() -> String {
    "/".to_owned()
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) enum FlagOrCookies {
    Flag(bool),
    Cookies(CookiePlan),
}

pub(super) fn flag_or_cookies<'de, D>(deserializer: D) -> Result<Option<CookiePlan>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    // Not an untagged enum: its errors would not say which key is wrong.
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Null | serde_json::Value::Bool(false) => Ok(None),
        serde_json::Value::Bool(true) => Ok(Some(CookiePlan::default())),
        value => serde_json::from_value(value)
            .map(Some)
            .map_err(|error| serde::de::Error::custom(format!("cookies: {error}"))),
    }
}

/// A cache of each user's own, without bodies: of GET requests, by path and query.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CachePlan {
    /// While a response is fresh by its `Cache-Control` or `Expires` its request is passed over:
    /// nothing is sent and nothing counted.
    #[serde(default)]
    pub fresh: bool,
    /// It begins anew with each iteration.
    #[serde(default)]
    pub each_iteration: bool,
    /// Of more URLs the oldest is forgotten.
    #[serde(default = "most_urls")]
    pub most_urls: usize,
    #[serde(default)]
    pub rules: CacheRules,
}

fn most_urls() -> usize {
    5000
}

/// By which rules a cache goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheRules {
    #[default]
    Rfc9111,
    /// The first validators of a URL are kept and go out with every method, and what says nothing
    /// of its life lives long.
    Jmeter,
}
