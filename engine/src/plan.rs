//! The load to offer, as the laboratory hands it over: the first line on stdin of `prony-engine
//! run`. Types and their defaults only; what cannot be run is refused in [`crate::check`]. It must
//! not know how a load is offered.

mod blocks;
mod population;
mod scenario;
mod share;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
pub use blocks::*;
pub use population::*;
pub use scenario::*;
pub use share::*;

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
    #[serde(default)]
    pub cache: Option<CachePlan>,
    #[serde(default)]
    pub connection: Connection,
    /// The version of HTTP in which requests are written.
    #[serde(default)]
    pub http_version: HttpVersion,
    /// Only with `http_version` 2.
    #[serde(default)]
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
    /// The slowest requests of the window are told one by one in `window.slowest`.
    #[serde(default)]
    pub slowest: Option<SlowestPlan>,
    /// Whether the kernel is asked when it took in the responses of one connection in 16 per thread;
    /// it then stamps every packet of the host that it receives. Not of a Unix socket.
    #[serde(default = "yes")]
    pub receive_stamps: bool,
    /// A file for one row per request, as CSV; written anew.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// Length of an interval row.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: f64,
    /// Counts of completed requests (all threads together) at which a `mark` event is sent.
    #[serde(default)]
    pub marks: Vec<u64>,
    /// Names of captured values: what was last captured of each, by any user, is told in `finished.values`.
    #[serde(default)]
    pub report: Vec<String>,
    /// A script that says what is sent, in place of the one step; or one that the scenarios' blocks
    /// call.
    #[serde(default)]
    pub script: Option<ScriptPlan>,
    /// Completed requests per second are counted in short spans; only then `finished.rates` is there.
    #[serde(default)]
    pub rates: Option<RatesPlan>,
    /// Seed of everything that is drawn.
    #[serde(default)]
    pub seed: u64,
    /// Which part of the load this engine offers, of several that offer it together; everything else
    /// in the plan is that of the whole. `null`: it offers all.
    #[serde(default)]
    pub share: Option<SharePlan>,
    #[serde(default)]
    pub start: Start,
    /// Defects of the client, for a self-test of whoever judges its output; runs on epoll and without TLS.
    #[serde(default)]
    pub injected_faults: Vec<Fault>,
}

fn yes() -> bool {
    true
}

fn default_interval_ms() -> f64 {
    1000.0
}

impl Plan {
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
    #[serde(default)]
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

fn one() -> u32 {
    1
}

/// How rates are counted: users are shared out over groups, and each group is counted for itself.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesPlan {
    /// At least one per thread of the engine.
    pub groups: u32,
    pub every_ms: f64,
}

/// Which of the slowest requests of the window are told one by one.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowestPlan {
    /// Of the requests that completed or timed out.
    pub share: f64,
    /// Not more than so many; each thread keeps as many.
    pub most: u32,
}

/// Where the requests go.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Scheme, host and port, such as `http://127.0.0.1:8080`; or `unix:` and the path of a socket.
    pub url: String,
    /// Where connections go to instead of the host of the URL, in turn: hosts, each with a port or
    /// with that of the URL.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// How TLS is spoken; only with `https://`.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Where connections come from, in turn; the kernel chooses when there are none. One address
    /// has about 28,000 ports.
    #[serde(default)]
    pub source_addresses: Sources,
}

/// A server beside the target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherTarget {
    /// Scheme, host and port.
    pub url: String,
    /// Where connections go to instead of the host of the URL, in turn.
    #[serde(default)]
    pub addresses: Vec<String>,
}

/// How TLS is spoken with the target.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// A PEM file with the certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Takes any certificate for the server's own. `ready` says so.
    pub insecure: bool,
    /// A PEM file with the client's certificate chain; together with `client_key`.
    pub client_cert: Option<PathBuf>,
    /// A PEM file with the client's private key.
    pub client_key: Option<PathBuf>,
    /// The name that the server is asked for and that its certificate must hold; otherwise the host
    /// of the URL.
    pub sni: Option<String>,
    pub min_version: TlsVersion,
    pub max_version: TlsVersion,
    /// Whether a new connection may resume the session of one before.
    pub resumption: bool,
    /// Protocols offered by ALPN, the preferred first; an empty list offers none.
    pub alpn: Vec<String>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            ca: None,
            insecure: false,
            client_cert: None,
            client_key: None,
            sni: None,
            min_version: TlsVersion::V1_2,
            max_version: TlsVersion::V1_3,
            resumption: true,
            alpn: vec!["http/1.1".to_owned()],
        }
    }
}

/// A version of TLS.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub enum TlsVersion {
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}

/// Addresses of this host, as a list, or as a range such as `127.0.1.1-127.0.1.40`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Sources {
    List(Vec<String>),
    Range(String),
}

impl Default for Sources {
    fn default() -> Self {
        Self::List(Vec::new())
    }
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
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// One thread per listed CPU; an empty list means one thread that is not pinned.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Whether each thread is pinned to its CPU.
    #[serde(default)]
    pub pin: bool,
    /// Whether a pinned thread goes before every ordinary one of its CPU (`SCHED_FIFO`). Only for
    /// CPUs on which nothing that is measured runs.
    #[serde(default)]
    pub realtime: bool,
}

/// How the requests are offered.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// A fixed number of users, each waiting for its response before it goes on.
    Closed {
        /// Exactly one of this and `populations` is given.
        #[serde(default)]
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
        #[serde(default)]
        ramp_up_steps: Option<u32>,
        /// Users end evenly spread over so long before `stop.after_ms`, the last to come first.
        #[serde(default)]
        ramp_down_ms: f64,
        /// Users end in so many groups of equal size.
        #[serde(default)]
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
        #[serde(default)]
        deadline_ms: Option<f64>,
    },
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
    #[serde(default)]
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

/// How long a connection lives, and how it is used.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    #[serde(default)]
    pub reuse: Reuse,
    /// Close after so many requests.
    #[serde(default)]
    pub max_requests: Option<u32>,
    /// So many requests go out on a connection together before their responses are waited for.
    #[serde(default = "default_pipeline")]
    pub pipeline: u32,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            reuse: Reuse::default(),
            max_requests: None,
            pipeline: default_pipeline(),
        }
    }
}

fn default_pipeline() -> u32 {
    1
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum HttpVersion {
    /// A connection that is to stay is asked for by `Connection: keep-alive`.
    #[serde(rename = "1.0")]
    V1_0,
    /// A connection stays unless one side says otherwise.
    #[default]
    #[serde(rename = "1.1")]
    V1_1,
    /// With TLS by ALPN, without it by prior knowledge.
    #[serde(rename = "2")]
    V2,
}

/// How HTTP/2 is spoken.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http2Plan {
    /// Connections to each server that all users share: as many requests are under way on one at once
    /// as it has users. `null`: each user has one of its own.
    #[serde(default)]
    pub connections: Option<u32>,
    /// What the server may send on a stream before it is given more.
    #[serde(default = "widest_window")]
    pub stream_window_bytes: u32,
    /// The same for a whole connection.
    #[serde(default = "widest_window")]
    pub connection_window_bytes: u32,
    /// The dynamic table of header compression, either way.
    #[serde(default = "usual_table")]
    pub header_table_bytes: u32,
}

impl Default for Http2Plan {
    fn default() -> Self {
        Self {
            connections: None,
            stream_window_bytes: widest_window(),
            connection_window_bytes: widest_window(),
            header_table_bytes: usual_table(),
        }
    }
}

/// More than any response: what comes is read at once, so that no window of the client bounds it.
fn widest_window() -> u32 {
    (1 << 30) - 1
}

fn usual_table() -> u32 {
    prony_h2::hpack::DEFAULT_TABLE_BYTES
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    #[default]
    KeepAlive,
    PerRequest,
    /// Kept alive for one user of an open load: who leaves closes its connection, who arrives opens one.
    PerSession,
}

/// When the run ends: whichever comes first. At least one must be set.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    #[serde(default)]
    pub after_ms: Option<f64>,
    /// Exactly so many requests, over all threads.
    #[serde(default)]
    pub total_requests: Option<u64>,
    /// A user ends after walking its scenario so many times.
    #[serde(default)]
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

#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    #[serde(default = "default_connect_ms")]
    pub connect_ms: f64,
    /// From the connection to the end of the TLS handshake; `connect_ms` when it is not set.
    #[serde(default)]
    pub tls_ms: Option<f64>,
    /// From the actual send to the last byte of the response.
    #[serde(default = "default_request_ms")]
    pub request_ms: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_ms: default_connect_ms(),
            tls_ms: None,
            request_ms: default_request_ms(),
        }
    }
}

/// How much of a response is taken before it is given up.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The longest head, status line and final empty line included.
    #[serde(default = "default_header_bytes")]
    pub header_bytes: u32,
    /// Memory budget per thread for incomplete responses: their heads, and bodies that are copied
    /// for captures.
    #[serde(default = "default_partial_answer_bytes")]
    pub partial_answer_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: default_header_bytes(),
            partial_answer_bytes: default_partial_answer_bytes(),
        }
    }
}

fn default_header_bytes() -> u32 {
    64 * 1024
}

fn default_partial_answer_bytes() -> u64 {
    256 * 1024 * 1024
}

fn default_connect_ms() -> f64 {
    5_000.0
}

fn default_request_ms() -> f64 {
    30_000.0
}

/// A later line on stdin.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Begins the load of a plan whose `start` is `commanded`.
    Start {
        /// By CLOCK_MONOTONIC; at once when it is not given or has passed.
        #[serde(default)]
        at_monotonic_ns: Option<u64>,
    },
    /// Opens a measured window; a second one replaces the first. Only in mode `commanded`.
    Window {
        duration_ms: f64,
        /// As of `start`.
        #[serde(default)]
        at_monotonic_ns: Option<u64>,
    },
    /// Closes the window that is open before its time; nothing when none is.
    CloseWindow {
        /// As of `start`.
        #[serde(default)]
        at_monotonic_ns: Option<u64>,
    },
    /// Ends the run in order.
    Stop {
        /// As of `start`.
        #[serde(default)]
        at_monotonic_ns: Option<u64>,
    },
}
