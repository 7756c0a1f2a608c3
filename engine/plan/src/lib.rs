//! The load to offer, as the laboratory hands it over: the first line on stdin of `prony-engine
//! run`. Types and their defaults only: what cannot be run is refused, and how a load is offered is known,
//! in the instrument.
//!
//! A crate of its own, because its derived code is large and runs once: the `setup` profile does not
//! optimise it.

mod blocks;
mod connection;
mod fault;
mod kept;
mod load;
mod population;
mod response;
mod scenario;
mod share;
mod target;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use blocks::*;
pub use connection::*;
pub use fault::*;
pub use kept::*;
pub use load::*;
pub use population::*;
pub use response::*;
pub use scenario::*;
pub use share::*;
pub use target::*;

/// The version of the contract that this engine speaks.
pub const VERSION: u32 = 1;

/// One run: a target, a load, when to stop and what to measure.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the contract; 1.
    pub version: u32,
    pub target: Target,
    /// Further servers of the same load: a step says by `target` which of them it is sent to. TLS is
    /// spoken with them as `target.tls` says.
    #[serde(default)]
    pub other_targets: Vec<OtherTarget>,
    #[serde(default)]
    pub driver: DriverChoice,
    #[serde(default)]
    pub threads: Threads,
    pub load: Load,
    /// What the users do.
    pub scenarios: Vec<Scenario>,
    /// When a user draws its scenario, by the weights.
    #[serde(default)]
    pub scenario_choice: ScenarioChoice,
    /// Files whose rows fill placeholders.
    #[serde(default)]
    pub feeders: Vec<FeederPlan>,
    /// Whether each user keeps the cookies that it is given and sends them back: `true`, or an object
    /// that also says with which it begins.
    #[serde(default, deserialize_with = "flag_or_cookies")]
    #[schemars(with = "Option<FlagOrCookies>")]
    pub cookies: Option<CookiePlan>,
    /// Whether each user remembers what a cache would, and asks again only whether a response has
    /// changed.
    pub cache: Option<CachePlan>,
    #[serde(default)]
    pub connection: Connection,
    /// The version of HTTP in which requests are written.
    #[serde(default)]
    pub http_version: HttpVersion,
    /// Only with `http_version` 2.
    pub http2: Option<Http2Plan>,
    pub stop: Stop,
    #[serde(default)]
    pub window: Window,
    #[serde(default)]
    pub timeouts: Timeouts,
    #[serde(default)]
    pub limits: Limits,
    /// Whether the time of each request is taken apart: sending, waiting for the first byte, receiving.
    #[serde(default)]
    pub parts: bool,
    /// `window.slowest` lists the slowest requests of the window.
    pub slowest: Option<SlowestPlan>,
    /// Whether the kernel is asked when it took in the responses of one connection in 16 per thread;
    /// it then stamps every packet of the host that it receives. Not of a Unix socket.
    #[serde(default = "yes")]
    pub receive_stamps: bool,
    /// A file for one row per request, as CSV; written anew.
    pub log: Option<PathBuf>,
    /// Credentials of the plan, which stand as `REDACTED` in the log.
    #[serde(default)]
    pub log_hides: Vec<String>,
    /// Length of an interval row.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: f64,
    /// Counts of completed requests (all threads together) at which a `mark` event is sent.
    #[serde(default)]
    pub marks: Vec<u64>,
    /// Names of captured values: what was last captured of each, by any user, is given in `finished.values`.
    #[serde(default)]
    pub report: Vec<String>,
    /// Whether `finished.responses` lists the first responses, with head and body.
    #[serde(default)]
    pub responses: bool,
    /// A script that says what is sent, in place of the one step; or one that the scenarios' blocks
    /// call.
    pub script: Option<ScriptPlan>,
    /// Completed requests per second are counted in short spans; only then `finished.rates` is there.
    pub rates: Option<RatesPlan>,
    /// Seed of everything that is drawn.
    #[serde(default)]
    pub seed: u64,
    /// Which part of the load this engine offers, of several that offer it together; everything else
    /// in the plan is that of the whole. `null`: it offers all.
    pub share: Option<SharePlan>,
    #[serde(default)]
    pub start: Start,
    /// Defects of the client, for a self-test of the judge of its output; runs on epoll and without TLS.
    #[serde(default)]
    pub injected_faults: Vec<Fault>,
}

fn default_interval_ms() -> f64 {
    1000.0
}

impl Plan {
    /// Reads the first line.
    pub fn from_json(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// What the script is called for, in the order in which the calls are written down.
    pub fn tasks(&self) -> Vec<String> {
        let calls = self.scenarios.iter().flat_map(Scenario::calls);
        calls.map(|call| call.task.to_string()).collect()
    }

    /// Whether a script writes the requests, in place of a scenario.
    pub fn script_writes(&self) -> bool {
        self.script.is_some() && self.scenarios.iter().all(|one| one.calls().is_empty())
    }
}

/// A script in Lua with the interface of wrk; or, where blocks call it, in JavaScript.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptPlan {
    pub file: PathBuf,
    /// What `init` is given; the URL stands before them, as number 0.
    #[serde(default)]
    pub args: Vec<String>,
    /// The URL as it was given; number 0 of what `init` is given.
    pub url: Option<String>,
    /// Interpreters among which the users are shared out; at least one per thread of the engine.
    #[serde(default = "one")]
    pub threads: u32,
    /// A call into the script that takes longer is ended, and the run with it.
    #[serde(default = "default_call_timeout_ms")]
    pub call_timeout_ms: f64,
}

fn default_call_timeout_ms() -> f64 {
    10_000.0
}

/// How rates are counted: users are shared out over groups, and each group is counted for itself.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesPlan {
    /// At least one per thread of the engine.
    pub groups: u32,
    pub every_ms: f64,
}

/// Which of the slowest requests of the window are listed.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowestPlan {
    /// Of the requests that completed or timed out.
    pub share: f64,
    /// Not more than so many; each thread keeps as many.
    pub most: u32,
}

/// Which way to the kernel is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverChoice {
    /// io_uring when its probe succeeds, else epoll.
    #[default]
    Auto,
    IoUring,
    Epoll,
}

/// The threads that offer the load.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// One thread per listed CPU; an empty list means one thread that is not pinned.
    pub cpus: Vec<usize>,
    /// Whether each thread is pinned to its CPU.
    pub pin: bool,
    /// Whether a pinned thread goes before every ordinary one of its CPU (`SCHED_FIFO`). Only for
    /// CPUs on which nothing that is measured runs.
    pub realtime: bool,
}

/// When the run ends: whichever comes first. At least one must be set.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    pub after_ms: Option<f64>,
    /// Exactly so many requests, over all threads.
    pub total_requests: Option<u64>,
    /// A user ends after walking its scenario so many times.
    pub iterations_per_user: Option<u64>,
}

/// Which part of the run is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Window {
    /// From the start to the stop.
    #[default]
    All,
    Fixed {
        warmup_ms: f64,
        duration_ms: f64,
    },
    /// The laboratory opens it by a command.
    Commanded,
}

/// A later line on stdin.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Begins the load of a plan whose `start` is `commanded`.
    Start {
        /// By CLOCK_MONOTONIC; at once when it is not given or has passed.
        at_monotonic_ns: Option<u64>,
    },
    /// Opens a measured window; a second one replaces the first. Only in mode `commanded`.
    Window {
        duration_ms: f64,
        /// As of `start`.
        at_monotonic_ns: Option<u64>,
    },
    /// Closes the window that is open before its time; nothing when none is.
    CloseWindow {
        /// As of `start`.
        at_monotonic_ns: Option<u64>,
    },
    /// Users of a closed load rest: a user that is due to send waits, with its connection open, for
    /// a turn.
    Rest {
        /// As of `start`.
        at_monotonic_ns: Option<u64>,
    },
    /// Opens a window that consists of turns of users who rest between them. As `window`.
    Turns {
        /// Of each, in ms from `at_monotonic_ns`: its begin, from when it is measured, its end.
        turns: Vec<[f64; 3]>,
        /// As of `start`.
        at_monotonic_ns: Option<u64>,
    },
    /// Ends the run in order.
    Stop {
        /// As of `start`.
        at_monotonic_ns: Option<u64>,
    },
}

impl Command {
    pub fn from_json(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }
}
