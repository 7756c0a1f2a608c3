//! The contract of `prony-engine run` as JSON Schema, made from the types themselves.

use schemars::schema_for;
use serde_json::{Value, json};

use crate::plan::{Command, Plan};
use crate::report::Event;

/// The schemas of the first line on stdin, of later lines, and of a line on stdout.
pub fn all() -> Value {
    json!({
        "plan": schema_for!(Plan),
        "command": schema_for!(Command),
        "event": schema_for!(Event),
    })
}
