//! Scripts in Lua with the interface of wrk: an interpreter per thread of the script, and one for
//! `setup` and `done`. It knows nothing of the load generator that asks it.

mod luajit;
mod place;
mod state;
mod stats;
mod thread;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use mlua::{Error, Value};
use prony_script::output::{Output, ScriptPhase};
use prony_script::{Called, Caller, Functions, Printed, Setup, Summary};

use place::sentence;
use state::LuaState;
use stats::Stats;
use thread::{ThreadObject, ThreadState};
use watch::{Call, Watchdog};

/// The interpreters of a run.
#[derive(Debug)]
struct LuaScript {
    main: LuaState,
    threads: Vec<ScriptThread>,
    output: Arc<Output>,
    functions: Functions,
    /// Ends with the script.
    _watchdog: Watchdog,
}

/// One thread of the script.
#[derive(Debug)]
struct ScriptThread {
    interpreter: LuaState,
    state: Arc<ThreadState>,
}

/// Runs the file in every interpreter, then `setup` and `init`.
pub fn open(setup: &Setup<'_>) -> Result<Box<dyn prony_script::Interpreter>, String> {
    if !setup.tasks.is_empty() {
        return Err(format!(
            "{} is a script in Lua, which writes the requests itself; expected JavaScript (.js, .cjs or .mjs) where blocks call its functions",
            setup.file.display()
        ));
    }
    match LuaScript::open(setup) {
        Ok(script) => Ok(Box::new(script)),
        Err(error) => Err(sentence(&error)),
    }
}

impl LuaScript {
    fn open(setup: &Setup<'_>) -> Result<Self, Error> {
        let output = Arc::new(Output::default());
        let watchdog = Watchdog::start(setup.call_timeout, setup.on_hang)?;
        let main = LuaState::open(setup, &output, &watchdog)?;
        let mut threads = Vec::with_capacity(setup.threads);
        for _ in 0..setup.threads {
            let interpreter = LuaState::open(setup, &output, &watchdog)?;
            let state = Arc::new(ThreadState::default());
            let object = || ThreadObject {
                lua: interpreter.lua.weak(),
                state: Arc::clone(&state),
                usual: setup.address,
            };
            main.call::<()>(Call::Setup, main.lua.create_userdata(object())?)?;
            let args = interpreter.lua.create_table()?;
            args.set(0, setup.url)?;
            for (place, word) in setup.args.iter().enumerate() {
                args.set(place + 1, word.as_str())?;
            }
            let own = interpreter.lua.create_userdata(object())?;
            interpreter.call::<()>(Call::Init, (own, args))?;
            threads.push(ScriptThread { interpreter, state });
        }
        let has = |name: &str| threads[0].interpreter.has(name);
        let functions = Functions {
            request: has("request")?,
            response: has("response")?,
            delay: has("delay")?,
        };
        Ok(Self {
            main,
            threads,
            output,
            functions,
            _watchdog: watchdog,
        })
    }

    fn call_done(&self, figures: Summary) -> Result<(), Error> {
        if !self.main.has("done")? {
            return Ok(());
        }
        let lua = &self.main.lua;
        let summary = lua.create_table()?;
        for (name, value) in [
            ("duration", figures.duration_us),
            ("requests", figures.requests),
            ("bytes", figures.bytes),
        ] {
            summary.set(name, value as f64)?;
        }
        let errors = lua.create_table()?;
        for (name, value) in [
            ("connect", figures.connect_errors),
            ("read", figures.read_errors),
            ("write", figures.write_errors),
            ("status", figures.status_errors),
            ("timeout", figures.timeouts),
        ] {
            errors.set(name, value as f64)?;
        }
        summary.set("errors", errors)?;
        let latency = lua.create_userdata(Stats(figures.latency))?;
        let rates = lua.create_userdata(Stats(figures.rates))?;
        self.main.call(Call::Done, (summary, latency, rates))
    }
}

impl prony_script::Interpreter for LuaScript {
    fn functions(&self) -> Functions {
        self.functions
    }

    fn request(&self, thread: usize) -> Result<Vec<u8>, String> {
        let interpreter = &self.threads[thread].interpreter;
        let value: Value = interpreter
            .call(Call::Request, ())
            .map_err(|error| sentence(&error))?;
        match value {
            Value::String(text) => Ok(text.as_bytes().to_vec()),
            Value::Integer(_) | Value::Number(_) => {
                let text = interpreter.lua.coerce_string(value);
                let text = text.map_err(|error| sentence(&error))?;
                Ok(text.map_or_else(Vec::new, |text| text.as_bytes().to_vec()))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn delay_ms(&self, thread: usize) -> Result<f64, String> {
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

    fn response(&self, thread: usize, status: u16, head: &[u8], body: &[u8]) -> Result<(), String> {
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

    fn call(&self, _: Caller, _: usize, _: &[Vec<u8>]) -> Result<Called, String> {
        Err("a script in Lua is not called by blocks".to_owned())
    }

    fn address(&self, thread: usize) -> Option<SocketAddr> {
        self.threads.get(thread)?.state.address()
    }

    #[inline]
    fn has_stopped(&self, thread: usize) -> bool {
        self.threads[thread].state.has_stopped()
    }

    fn fail(&self, sentence: String) {
        self.output.fail(sentence);
        for thread in &self.threads {
            thread.state.stop();
        }
    }

    fn error(&self) -> Option<String> {
        self.output.error()
    }

    fn begin_load(&self) {
        self.output.begin(ScriptPhase::Run);
    }

    fn done(&self, summary: Summary) {
        self.output.begin(ScriptPhase::Done);
        if let Err(error) = self.call_done(summary) {
            self.output.fail(sentence(&error));
        }
    }

    fn printed(&self) -> Printed {
        self.output.printed()
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
