//! The contract of `prony-engine run` and `serve` as JSON Schema, made from the types themselves.

use schemars::schema_for;
use serde_json::{Value, json};

use crate::plan::{Command, Plan};
use crate::report::Event;

/// The schemas of `run`'s first line on stdin, of later lines, of a line on its stdout, and of a line on that of `serve`.
pub fn all() -> Value {
    let mut all = json!({
        "plan": schema_for!(Plan),
        "command": schema_for!(Command),
        "event": schema_for!(Event),
        "serve_event": schema_for!(crate::serve::Event),
    });
    // So that what moves within a type changes nothing here.
    all.sort_all_objects();
    all
}
