//! Faults that the client carries on request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A defect of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A Poisson load sends evenly spaced arrivals.
    EvenArrivals,
    /// Timers fire 20 ms late.
    LateTimers,
    /// One user in ten stops and is still counted.
    VanishingUsers,
    /// A lost request is sent again and neither attempt is reported as failed.
    HiddenRetries,
    /// The first thread stands still for 50 ms once a second; the others go on.
    StalledThread,
}
