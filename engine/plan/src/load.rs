//! The load: who sends when. Types and their defaults only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PopulationPlan;

/// How the requests are offered.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// A fixed number of users, each waiting for its response before it goes on.
    Closed {
        /// Exactly one of this and `populations` is given.
        users: Option<u32>,
        /// Several groups of users, each with a start, an end and scenarios of its own.
        #[serde(default)]
        populations: Vec<PopulationPlan>,
        #[serde(default)]
        think: Think,
        /// Users start evenly spread over this time.
        #[serde(default)]
        ramp_up_ms: f64,
        /// Users start in so many groups of equal size instead of one by one.
        ramp_up_steps: Option<u32>,
        /// Users end evenly spread over so long before `stop.after_ms`, the last to come first.
        #[serde(default)]
        ramp_down_ms: f64,
        /// Users end in so many groups of equal size.
        ramp_down_steps: Option<u32>,
    },
    /// Arrivals on a schedule that no response can delay.
    Open {
        #[serde(default)]
        arrivals: ArrivalSpacing,
        /// The rate over time, one phase after the other; the load ends with the last.
        phases: Vec<RatePhase>,
        #[serde(default)]
        session: Session,
        /// Between the requests of a user; only with `session` = `user`.
        #[serde(default)]
        think: Think,
        /// So many arrivals may be under way at once, shared out evenly over the threads.
        #[serde(default = "default_max_users")]
        max_users: u32,
        /// What becomes of an arrival that finds no place.
        #[serde(default)]
        at_cap: AtCap,
        /// So many connections are opened before the first arrival and kept open; more are opened
        /// when all are in use.
        #[serde(default)]
        connections: u32,
        /// From the intended send to the last byte of the response, per request.
        deadline_ms: Option<f64>,
    },
}

impl Load {
    /// Between the requests of a user.
    pub fn think(&self) -> &Think {
        let (Self::Closed { think, .. } | Self::Open { think, .. }) = self;
        think
    }

    /// What an arrival is; `None`: nobody arrives.
    pub fn session(&self) -> Option<Session> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { session, .. } => Some(*session),
        }
    }
}

fn default_max_users() -> u32 {
    1_000
}

/// What becomes of an arrival that finds no place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtCap {
    /// It is not sent, and counted as blocked.
    #[default]
    Block,
    /// It waits until one is free; its latency counts from when it was due.
    Wait,
}

/// How the gaps between arrivals are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalSpacing {
    /// All the same, at a given rate.
    #[default]
    Constant,
    /// Exponentially distributed and independent.
    Poisson,
}

/// A stretch over which the rate changes linearly; a pause has the rate 0 at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePhase {
    pub duration_ms: f64,
    pub from_per_s: f64,
    pub to_per_s: f64,
    /// At most so many are under way when an arrival of this phase is due, shared out over the
    /// threads; else it is blocked.
    pub max_users: Option<u32>,
}

/// What an arrival is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// One request; the scenario has one step.
    #[default]
    Request,
    /// A new user, who walks the scenario once.
    User,
}

/// The pause of a user between a response and its next request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Think {
    #[default]
    None,
    Constant {
        ms: f64,
    },
    Uniform {
        min_ms: f64,
        max_ms: f64,
    },
    Exponential {
        mean_ms: f64,
    },
    /// Truncated at 0: a negative draw is drawn again.
    Gaussian {
        mean_ms: f64,
        stdev_ms: f64,
    },
    /// A whole number of milliseconds, drawn from a Poisson distribution, and a constant besides.
    Poisson {
        mean_ms: f64,
        #[serde(default)]
        offset_ms: f64,
    },
}
