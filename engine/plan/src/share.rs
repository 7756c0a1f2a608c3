//! What an engine gets that offers a load together with engines on other hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Of every `of` users, arrivals, rows of a feeder, numbers of a sequence, connections to keep ready
/// and requests of a total those with these slots. Engines that have all slots between them offer the
/// load of one. Rows then hold their histograms, so that those of all engines can be added up.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharePlan {
    /// Rising, each below `of`.
    pub slots: Vec<u32>,
    pub of: u32,
}

/// When the load begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// As soon as the threads are set up.
    #[default]
    AtOnce,
    /// At the instant of the command `start`, for which the engine waits after `prepared`.
    Commanded,
}
