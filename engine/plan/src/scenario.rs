//! The scenarios of a plan: steps, and what they send. Types and their defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Capture, Condition, Expect, Node, Resources, Think, calls, requests};

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
            Node::Request(step) => step.think_before.is_none() && step.skip_if.is_none(),
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

pub(super) fn one() -> u32 {
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
    pub name: Option<String>,
    #[serde(default = "default_method")]
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    #[serde(default)]
    pub path_as: PathForm,
    /// Which server it is sent to: 0 is the plan's `target`, 1 the first of `other_targets`.
    #[serde(default)]
    pub target: u16,
    /// Name and value; `Host` and, with a body, `Content-Length` are added when they are not listed.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Before which of `headers`, from 0, those that the engine adds itself stand, in this order:
    /// validators of the cache, `Cookie`, `Expect`, `Transfer-Encoding`, `Content-Length`. Without
    /// it they come after all of them, as `Authorization` always does.
    pub added_headers_at: Option<usize>,
    /// A text with placeholders that stands among the headers as it is: whole lines, each with its
    /// end. What a script writes.
    pub header_lines: Option<String>,
    /// Before which of `headers`, from 0, they stand. Without it they come after all of them.
    pub header_lines_at: Option<usize>,
    /// Header values go out as Node writes them: in ISO-8859-1, but before a text in UTF-8. A
    /// request with a captured value, or one of a feeder, that has other characters than those of
    /// ISO-8859-1 is not sent, and its user ends.
    #[serde(default)]
    pub node_headers: bool,
    /// A text with placeholders, a line for each cookie, as in `Set-Cookie`: put into the user's
    /// jar before the request. Until a server sets one, or the plan gives one, other requests carry
    /// none of them.
    pub set_cookies: Option<String>,
    /// A text, or an object that says where the bytes come from.
    #[serde(default, deserialize_with = "text_or_body")]
    #[schemars(with = "Option<TextOrBody>")]
    pub body: Option<Body>,
    /// Sends the head with `Expect: 100-continue`, and the body when the server asks for it, or
    /// after a second without a response.
    #[serde(default)]
    pub expect_continue: bool,
    /// Written as the `Authorization` header.
    pub auth: Option<Auth>,
    #[serde(default)]
    pub expect: Expect,
    /// Values of the response that later steps of the iteration use.
    #[serde(default)]
    pub capture: Vec<Capture>,
    /// What the page that it asks for embeds, for a loop that asks for each.
    pub resources: Option<Resources>,
    /// The pause after this step, in place of the load's.
    pub think: Option<Think>,
    /// A pause before this step, besides the one after the step before.
    pub think_before: Option<Think>,
    /// How often this step is sent before the next.
    #[serde(default = "one")]
    pub repeat: u32,
    /// So many redirects, one after the other, are followed on the same host; 0: a response that
    /// redirects is one like others.
    #[serde(default)]
    pub follow_redirects: u32,
    /// After 301 and 302 a POST stays one, with its body.
    #[serde(default)]
    pub redirects_keep_method: bool,
    /// What ends the iteration after this step; without it a user goes on whatever came of it.
    #[serde(default)]
    pub end_on: Vec<Ending>,
    /// A request of it that fails, however it does, ends the whole run.
    #[serde(default)]
    pub ends_run_on_error: bool,
    /// Where this holds it is not sent, a note with the text of `skip_note` is written, and what it
    /// captures with a default has that.
    pub skip_if: Option<Condition>,
    #[serde(default)]
    pub skip_note: String,
}

impl Step {
    /// Whether its body is sent in chunks.
    pub fn is_chunked(&self) -> bool {
        let coded = |(name, _): &(String, String)| name.eq_ignore_ascii_case("transfer-encoding");
        self.body.as_ref().is_some_and(|body| body.chunked) || self.headers.iter().any(coded)
    }
}

/// How the path of a request is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathForm {
    /// As it is; in values, blanks, control characters, `#` and what is not ASCII become `%xx`.
    #[default]
    Plain,
    /// As it is, blanks too.
    Verbatim,
    /// As a browser writes it (WHATWG URL): dots resolved, without fragment. A request with a
    /// captured value, or one of a feeder, in which a % begins nothing is not sent, and its user ends.
    Url,
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
#[serde(deny_unknown_fields, default)]
pub struct Body {
    /// May hold placeholders.
    pub text: Option<String>,
    pub base64: Option<String>,
    /// A file that is sent as it is; a large one is read while it is sent, so it must not change
    /// during the run.
    pub file: Option<String>,
    /// Several, sent one after the other as one body; all of them together are read before the load.
    pub parts: Vec<BodyPart>,
    /// Sent in the chunked coding, without a declared length.
    pub chunked: bool,
}

/// A piece of a body: exactly one of `text`, which may hold placeholders, and `file`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyPart {
    pub text: Option<String>,
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
