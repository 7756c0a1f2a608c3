//! What users draw from and keep from request to request: rows of files, cookies, what a cache would.
//! Types and their defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Per;

/// A CSV file whose first line names its columns, unless `columns` does, or `rows` in the plan
/// itself; `${name.column}` is a value of the user's present row.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeederPlan {
    pub name: String,
    pub file: Option<String>,
    /// In place of a file, with `columns`.
    #[serde(default)]
    pub rows: Vec<Vec<String>>,
    pub order: FeederOrder,
    /// What happens when the rows are used up; must be declared, except for `random`.
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

pub(super) fn yes() -> bool {
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
#[serde(deny_unknown_fields, default)]
pub struct CookiePlan {
    /// They are forgotten at the begin of each iteration, but for those that are given.
    pub each_iteration: bool,
    /// Those that a user begins with.
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
    #[serde(default = "max_urls")]
    pub most_urls: usize,
    #[serde(default)]
    pub rules: CacheRules,
}

fn max_urls() -> usize {
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
