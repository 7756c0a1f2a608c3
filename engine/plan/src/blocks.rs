//! What a list of steps holds besides requests: loops, conditions, choices, pauses, variables.
//! Types and defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, Think};

/// One entry of a list of steps: a request, or a block with one of the keys of [`Block`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Node {
    Request(Box<Step>),
    Block(Box<Block>),
}

/// One of these makes a node a block.
pub const BLOCK_KEYS: [&str; 13] = [
    "loop",
    "parallel",
    "if",
    "once",
    "choice",
    "share",
    "transaction",
    "group",
    "pause",
    "pace",
    "set",
    "call",
    "note",
];

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not by trying one after the other: then no error would say which key is wrong.
        let value = serde_json::Value::deserialize(deserializer)?;
        let is_block = value
            .as_object()
            .is_some_and(|keys| BLOCK_KEYS.iter().any(|key| keys.contains_key(*key)));
        let read = if is_block {
            serde_json::from_value(value).map(|block| Self::Block(Box::new(block)))
        } else {
            serde_json::from_value(value).map(|step| Self::Request(Box::new(step)))
        };
        read.map_err(serde::de::Error::custom)
    }
}

/// Exactly one of its keys but `steps`, `else` and `weights`, which belong to some of them.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Block {
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Loop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// The steps are walked when this holds, else those of `else`.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Walked the first time only that a user comes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
    /// One of the steps for each visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Of a random choice: the share of each step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// Walked in a part of the visits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<VisitShare>,
    /// The name of a figure of its own: the sum of the service times of the requests in the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// Several steps as one, for a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<bool>,
    /// Added to the pause before the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Think>,
    /// Passed at most so often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Names and texts with placeholders: what `${name}` stands for from here on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(String, String)>,
    /// A call into the plan's script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// A text with placeholders that becomes a row of the request log; nothing without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Node>,
    #[serde(rename = "else", skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Node>,
}

/// Branches that a user walks in parallel, each on a connection that no other has meanwhile: each of
/// the block's steps is one, or with `each` all of them are, once for each element. The user goes on
/// when all have ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// So many at a time at the most, 1 to 256.
    pub at_once: u32,
    /// A branch for each element of the JSON list that the value of this name holds; none when it
    /// holds no list.
    pub each: Option<String>,
    /// The name of the branch's element; with `each`.
    #[serde(rename = "as")]
    pub element: Option<String>,
    /// With `each`: elements are values as JSON, a text with its quotes.
    #[serde(default)]
    pub as_json: bool,
}

/// What a script is asked to do for a user. The script may fail the user, whose iteration then ends.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// In the words of the script's author.
    pub task: serde_json::Value,
    /// Names and texts with placeholders: what the script is given. A value that is not there is an
    /// empty text.
    #[serde(default)]
    pub give: Vec<(String, String)>,
    /// What the script gives back, by its name there, and what `${name}` it stands for afterwards.
    #[serde(default)]
    pub take: Vec<(String, String)>,
}

/// At most one of `count`, `while`, `over` and `each`; without one, for ever.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loop {
    pub count: Option<u32>,
    #[serde(rename = "while")]
    pub condition: Option<Condition>,
    /// One round for each of these texts.
    pub over: Option<Vec<String>>,
    /// One round for each element of the JSON list that the value of this name holds when the loop
    /// begins; none when it holds no list.
    pub each: Option<String>,
    /// The name of the round's text or element; with `over` and `each`.
    #[serde(rename = "as")]
    pub element: Option<String>,
    /// With `each`: elements are values as JSON, a text with its quotes; else a text stands as it
    /// is, and `null` as an empty one.
    pub as_json: bool,
    /// The name of the round's number, from 0.
    pub index: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Random,
    /// One after the other, for each user.
    Interleave,
}

/// Which part of the visits: the n-th is one of them when n times the percentage, rounded, grows with it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisitShare {
    pub percent: f64,
    #[serde(default)]
    pub per: Per,
    #[serde(default)]
    pub rounding: Rounding,
}

/// How a number of visits becomes a whole one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    #[default]
    Down,
    /// To the nearest whole number, a half down.
    Nearest,
}

/// Waits until so long after the passage before, that so many fit into a minute: exactly one of
/// `per_min` and `phases`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    pub per_min: Option<f64>,
    /// A rate that changes, from the first passage on. When they are over nobody passes any more.
    #[serde(default)]
    pub phases: Vec<PacePhase>,
    #[serde(default)]
    pub per: Per,
    /// Paces of one name count each other's passages; without one each place counts its own.
    pub name: Option<String>,
}

/// A time over which a rate changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacePhase {
    pub duration_ms: f64,
    pub from_per_s: f64,
    pub to_per_s: f64,
}

/// Whose visits are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    #[default]
    User,
    /// Those of all users together.
    Run,
}

/// What decides. Texts may hold placeholders; a value that is not there is an empty text.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a condition: true, false, {left, op, right}, {exists: NAME}, {not: …}, {all: […]} or {any: […]}"
)]
pub enum Condition {
    Literal(bool),
    Comparison(Comparison),
    Exists { exists: String },
    Not { not: Box<Condition> },
    All { all: Vec<Condition> },
    Any { any: Vec<Condition> },
}

/// Two texts, compared as numbers where both are numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub left: String,
    pub op: Operator,
    pub right: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Operator {
    #[serde(rename = "==")]
    Equal,
    #[serde(rename = "!=")]
    Unequal,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">")]
    More,
    #[serde(rename = ">=")]
    AtLeast,
    /// The left text holds the right one.
    #[serde(rename = "contains")]
    Contains,
    /// The right text is a regex, without placeholders, that is found in the left one.
    #[serde(rename = "matches")]
    Matches,
}

/// The calls among these, in the order in which they are written down.
pub fn calls(nodes: &[Node]) -> Vec<&Call> {
    let mut found = Vec::new();
    for node in nodes {
        if let Node::Block(block) = node {
            found.extend(&block.call);
            found.extend(calls(&block.steps));
            found.extend(calls(&block.otherwise));
        }
    }
    found
}

/// Whether one of these, or of the blocks within, is walked in branches.
pub fn walks_branches(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Request(_) => false,
        Node::Block(block) => {
            block.parallel.is_some()
                || walks_branches(&block.steps)
                || walks_branches(&block.otherwise)
        }
    })
}

/// The requests among these, in the order in which they are written down.
pub fn requests(nodes: &[Node]) -> Vec<&Step> {
    let mut found = Vec::new();
    collect(nodes, &mut found);
    found
}

fn collect<'a>(nodes: &'a [Node], found: &mut Vec<&'a Step>) {
    for node in nodes {
        match node {
            Node::Request(step) => found.push(step),
            Node::Block(block) => {
                collect(&block.steps, found);
                collect(&block.otherwise, found);
            }
        }
    }
}
