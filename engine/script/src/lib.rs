//! What a script is to the load generator, whatever language it is written in: the interpreters of
//! a run behind [`Interpreter`], and the values that pass between them. It knows neither side.

pub mod output;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Opens the interpreters of a run: runs the file in each and does what the script wants done
/// before the load. The error is one sentence that names the file and the line.
pub type OpenScript = fn(&Setup<'_>) -> Result<Box<dyn Interpreter>, String>;

/// What the interpreters of a run start from.
#[derive(Debug)]
pub struct Setup<'a> {
    pub file: &'a Path,
    /// What is in the file.
    pub source: &'a [u8],
    /// The URL as the user gave it.
    pub url: &'a str,
    pub args: &'a [String],
    /// Interpreters that send; users are shared out over them.
    pub threads: usize,
    /// What is sent unless the script says otherwise; `None` where it stands beside a scenario.
    pub request: Option<DefaultRequest<'a>>,
    /// What its functions are called for from within a scenario, each as JSON in the words of whoever
    /// wrote the plan and the script; [`Interpreter::call`] names them by their places.
    pub tasks: &'a [String],
    /// Where connections go unless the script says otherwise; `None` for a Unix socket.
    pub address: Option<SocketAddr>,
    /// A call that takes longer is ended, and the run with it.
    pub call_timeout: Duration,
    /// Called, from any thread, when a call cannot even be ended: it hangs outside the interpreter.
    pub on_hang: fn(&str),
}

/// The request that is sent unless the script says otherwise.
#[derive(Debug)]
pub struct DefaultRequest<'a> {
    pub secure: bool,
    pub host: &'a str,
    pub port: Option<&'a str>,
    pub method: &'a str,
    pub path: String,
    pub headers: Vec<(&'a str, String)>,
    pub body: Option<String>,
}

/// The functions that a script has.
#[derive(Debug, Clone, Copy)]
pub struct Functions {
    /// It is called for every send; otherwise its requests are fixed before the load.
    pub request: bool,
    /// It is given every response.
    pub response: bool,
    /// It says how long to wait before the next request.
    pub delay: bool,
}

/// A user of a scenario that calls a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The thread of the engine that it lives on.
    pub thread: usize,
    /// Its place there, which others take after it.
    pub place: u32,
    /// How many users of this thread had started when it did: no other at this place has the same.
    pub started: u64,
}

/// What came of a call: the values that the script gives the user, in the order of the task; `None`
/// when it failed the user, which the interpreter has counted.
pub type Called = Option<Vec<Vec<u8>>>;

/// The interpreters of a run, one per thread of the script. An error of a script is one sentence
/// that names the file and the line.
pub trait Interpreter: Debug + Send + Sync {
    fn functions(&self) -> Functions;

    /// The bytes that this thread sends next, of one request or several.
    fn request(&self, thread: usize) -> Result<Vec<u8>, String>;

    /// The pause before the next request of a user of this thread, in ms.
    fn delay_ms(&self, thread: usize) -> Result<f64, String>;

    /// Shows a response to the script; `head` from the status line to the blank line.
    fn response(&self, thread: usize, status: u16, head: &[u8], body: &[u8]) -> Result<(), String>;

    /// Does a task for a user, with values in the order of the task, each empty when it is not there.
    fn call(&self, caller: Caller, task: usize, given: &[Vec<u8>]) -> Result<Called, String>;

    /// What the script counted itself.
    fn figures(&self) -> Figures {
        Figures::default()
    }

    /// Where this thread connects to, when the script says so.
    fn address(&self, thread: usize) -> Option<SocketAddr>;

    /// Whether the script has stopped this thread.
    fn has_stopped(&self, thread: usize) -> bool;

    /// Keeps the first error and stops all threads.
    fn fail(&self, sentence: String);

    /// The first error.
    fn error(&self) -> Option<String>;

    /// The load begins: what is printed from now on belongs to it.
    fn begin_load(&self);

    /// The load has ended; the script may look at the figures.
    fn done(&self, summary: Summary);

    fn printed(&self) -> Printed;
}

/// What a script printed, by the part of its life.
#[derive(Debug, Clone, Default)]
pub struct Printed {
    pub setup: String,
    pub run: String,
    pub done: String,
    /// More was printed than is kept.
    pub left_out: bool,
}

/// What a script counted beside what the load generator counts, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    pub counters: BTreeMap<String, u64>,
    /// How often something happened, of which the rate is asked for.
    pub rates: BTreeMap<String, u64>,
    /// Values as they were given, rounded to a tenth: in tenths, each with how often.
    pub histograms: BTreeMap<String, BTreeMap<i64, u64>>,
}

/// The figures of a load for the end of a script.
#[derive(Debug, Default)]
pub struct Summary {
    pub duration_us: u64,
    pub requests: u64,
    pub bytes: u64,
    pub connect_errors: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    pub status_errors: u64,
    pub timeouts: u64,
    /// Service times in µs.
    pub latency: Samples,
    /// Requests per second of one thread.
    pub rates: Samples,
}

/// Values, rising, each with how often it was seen.
pub type Samples = Vec<(u64, u64)>;
