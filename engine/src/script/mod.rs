//! A script in Lua that says what is sent, in the interface of wrk: one interpreter per thread of the script, and one for `setup` and
//! `done`. It knows nothing of connections, users or time.

mod interpreter;
mod luajit;
pub mod pipeline;
pub mod shared;
pub mod stats;
mod thread;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use mlua::{Error, Value};

use crate::check::{PlanError, ms_to_ns};
use crate::net::address::Address;
use crate::plan::{ScriptPlan, Step};
use crate::target::Target;
use interpreter::Interpreter;
use pipeline::{Request, read_requests};
use shared::{Part, Shared, ThreadShared};
use stats::Stats;
use thread::ThreadObject;
pub use watch::GiveUp;
use watch::{Call, Watchdog};

/// One thread of the script.
#[derive(Debug)]
struct ScriptThread {
    interpreter: Interpreter,
    shared: Arc<ThreadShared>,
    /// The request of a script that only sets `wrk`.
    fixed: Option<(Vec<u8>, Vec<Request>)>,
}

/// What `done` is told.
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
    /// µs.
    pub latency: Stats,
    /// Requests per second of one thread.
    pub rates: Stats,
}

/// See the module.
#[derive(Debug)]
pub struct Script {
    main: Interpreter,
    threads: Vec<ScriptThread>,
    shared: Arc<Shared>,
    /// Ends with the script.
    _watchdog: Watchdog,
    /// The script has `request`: it is called for every send.
    pub dynamic: bool,
    /// The script has `response`: it is given every answer.
    pub looks: bool,
    /// The script has `delay`.
    pub delays: bool,
    /// In the piece that the first call of `request` returned.
    pub pipeline: u32,
}

impl Script {
    /// Runs the file in every interpreter, then `setup` and `init`. `threads` is how many the engine has; the script has as many, or
    /// as many as it asks for when that is more.
    pub fn load(
        plan: &ScriptPlan,
        step: &Step,
        target: &Target,
        threads: usize,
        give_up: GiveUp,
    ) -> Result<Self, PlanError> {
        let shared = Arc::new(Shared::default());
        let source = std::fs::read(&plan.file).map_err(|error| {
            PlanError(format!(
                "script.file {} cannot be read: {error}",
                plan.file.display()
            ))
        })?;
        let limit = Duration::from_nanos(ms_to_ns(plan.call_timeout_ms));
        let watchdog = Watchdog::start(limit, give_up);
        watchdog
            .and_then(|watchdog| {
                Self::start(plan, &source, (step, target), threads, &shared, watchdog)
            })
            .map_err(|error| PlanError(sentence(&error)))
    }

    fn start(
        plan: &ScriptPlan,
        source: &[u8],
        (step, target): (&Step, &Target),
        threads: usize,
        shared: &Arc<Shared>,
        watchdog: Watchdog,
    ) -> Result<Self, Error> {
        let open = || Interpreter::open(plan, source, step, target, shared, &watchdog);
        let main = open()?;
        let count = (plan.threads as usize).max(threads);
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let interpreter = open()?;
            let state = Arc::new(ThreadShared::default());
            let object = || ThreadObject {
                lua: interpreter.lua.weak(),
                shared: Arc::clone(&state),
                usual: target.addresses.first().and_then(Address::socket),
            };
            main.call::<()>(Call::Setup, main.lua.create_userdata(object())?)?;
            let args = interpreter.lua.create_table()?;
            args.set(0, plan.url.as_deref().unwrap_or_default())?;
            for (place, word) in plan.args.iter().enumerate() {
                args.set(place + 1, word.as_str())?;
            }
            let own = interpreter.lua.create_userdata(object())?;
            interpreter.call::<()>(Call::Init, (own, args))?;
            all.push(ScriptThread {
                interpreter,
                shared: state,
                fixed: None,
            });
        }
        let has = |name: &str| all[0].interpreter.has(name);
        let (dynamic, looks, delays) = (has("request")?, has("response")?, has("delay")?);
        let mut script = Self {
            main,
            threads: all,
            shared: Arc::clone(shared),
            _watchdog: watchdog,
            dynamic,
            looks,
            delays,
            pipeline: 1,
        };
        // Called once before the load, as by wrk: so that a request that is none is found before anything is sent.
        let (bytes, first) = script.request(0).map_err(Error::runtime)?;
        script.pipeline = first.len() as u32;
        if !dynamic {
            script.threads[0].fixed = Some((bytes, first));
            for number in 1..script.threads.len() {
                let written = script.request(number).map_err(Error::runtime)?;
                script.threads[number].fixed = Some(written);
            }
        }
        shared.begin(Part::Run);
        Ok(script)
    }

    /// Whether what it sends may be more than the same single request again and again.
    pub fn sends_several(&self) -> bool {
        let single = |thread: &ScriptThread| thread.fixed.as_ref().is_some_and(|f| f.1.len() == 1);
        !self.threads.iter().all(single)
    }

    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Of a static script: the bytes that this thread sends, and what they are.
    pub fn fixed(&self, thread: usize) -> Option<&(Vec<u8>, Vec<Request>)> {
        self.threads.get(thread)?.fixed.as_ref()
    }

    /// Where this thread connects to, when the script said it.
    pub fn address(&self, thread: usize) -> Option<Address> {
        let address = self.threads.get(thread)?.shared.address()?;
        Some(Address::new(address))
    }

    #[inline]
    pub fn has_stopped(&self, thread: usize) -> bool {
        self.threads[thread].shared.has_stopped()
    }

    /// Keeps the error and stops all threads.
    pub fn fail(&self, sentence: String) {
        self.shared.fail(sentence);
        for thread in &self.threads {
            thread.shared.stop();
        }
    }

    /// Whether all of its threads were stopped by it.
    pub fn stopped_itself(&self) -> bool {
        self.threads
            .iter()
            .all(|thread| thread.shared.has_stopped())
    }

    /// Calls `request`; the bytes to send.
    pub fn request(&self, thread: usize) -> Result<(Vec<u8>, Vec<Request>), String> {
        let interpreter = &self.threads[thread].interpreter;
        let value: Value = interpreter
            .call(Call::Request, ())
            .map_err(|error| sentence(&error))?;
        let Value::String(text) = value else {
            return Err(format!(
                "request() returned a {}, expected the bytes of a request, as wrk.format() writes them",
                value.type_name()
            ));
        };
        let bytes = text.as_bytes().to_vec();
        let requests = read_requests(&bytes)
            .map_err(|why| format!("what request() returned is not a request: {why}"))?;
        Ok((bytes, requests))
    }

    /// Calls `delay`: how long to wait before the next request, in ms.
    pub fn delay_ms(&self, thread: usize) -> Result<f64, String> {
        let interpreter = &self.threads[thread].interpreter;
        let ms: Option<f64> = interpreter
            .call(Call::Delay, ())
            .map_err(|error| sentence(&error))?;
        let ms = ms.unwrap_or(0.0);
        if (0.0..=86_400_000.0).contains(&ms) {
            return Ok(ms.floor());
        }
        Err(format!(
            "delay() returned {ms}, expected milliseconds from 0 to a day"
        ))
    }

    /// Calls `response` with an answer.
    pub fn response(
        &self,
        thread: usize,
        status: u16,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), String> {
        let interpreter = &self.threads[thread].interpreter;
        let call = || -> Result<(), Error> {
            let headers = interpreter.lua.create_table()?;
            for (name, value) in header_lines(head) {
                headers.raw_set(
                    interpreter.lua.create_string(name)?,
                    interpreter.lua.create_string(value)?,
                )?;
            }
            let body = interpreter.lua.create_string(body)?;
            interpreter.call(Call::Response, (status, headers, body))
        };
        call().map_err(|error| sentence(&error))
    }

    /// Calls `done` where there is one.
    pub fn done(&self, summary: Summary) {
        self.shared.begin(Part::Done);
        if let Err(error) = self.call_done(summary) {
            self.shared.fail(sentence(&error));
        }
    }

    fn call_done(&self, told: Summary) -> Result<(), Error> {
        if !self.main.has("done")? {
            return Ok(());
        }
        let lua = &self.main.lua;
        let summary = lua.create_table()?;
        for (name, value) in [
            ("duration", told.duration_us),
            ("requests", told.requests),
            ("bytes", told.bytes),
        ] {
            summary.set(name, value as f64)?;
        }
        let errors = lua.create_table()?;
        for (name, value) in [
            ("connect", told.connect_errors),
            ("read", told.read_errors),
            ("write", told.write_errors),
            ("status", told.status_errors),
            ("timeout", told.timeouts),
        ] {
            errors.set(name, value as f64)?;
        }
        summary.set("errors", errors)?;
        let latency = lua.create_userdata(told.latency)?;
        let rates = lua.create_userdata(told.rates)?;
        self.main.call(Call::Done, (summary, latency, rates))
    }
}

/// Names and values after the first line of a head.
fn header_lines(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
}

/// An error of Lua in one line that names the file and the line where it happened.
fn sentence(error: &Error) -> String {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match error {
        Error::SyntaxError { message, .. } => first_line(message),
        Error::RuntimeError(message) => first_line(message),
        Error::CallbackError { traceback, cause } => {
            let inner = sentence(cause);
            let place = traceback.lines().find_map(|line| {
                let (place, _) = line.trim().split_once(": in ")?;
                let (_, number) = place.rsplit_once(':')?;
                let known = number.bytes().all(|byte| byte.is_ascii_digit());
                (known && !place.starts_with("wrk:")).then(|| place.to_owned())
            });
            match place {
                Some(place) if !inner.starts_with(&place) => format!("{place}: {inner}"),
                _ => inner,
            }
        }
        other => first_line(&other.to_string()),
    }
}
