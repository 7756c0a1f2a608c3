//! One interpreter with a script in it: what the script finds when it begins, and the functions
//! through which it is called. It knows nothing of threads and of when they are called.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mlua::function::FunctionInfo;
use mlua::{Error, FromLuaMulti, Function, IntoLuaMulti, Lua, Table, Value, Variadic};
use prony_script::output::Output;
use prony_script::{DefaultRequest, Setup};

use super::luajit;
use super::place::Script;
use super::thread::{self, AddressObject};
use super::watch::{Call, Watchdog, Watched};

const PRELUDE: &str = include_str!("prelude.lua");
const MODULES: &str = include_str!("modules.lua");

/// The functions through which a script is called.
#[derive(Debug)]
struct Calls {
    setup: Function,
    init: Function,
    request: Function,
    response: Function,
    delay: Function,
    done: Function,
}

/// One interpreter with the script in it.
#[derive(Debug)]
pub struct LuaState {
    pub lua: Lua,
    calls: Calls,
    has: Function,
    script: Script,
    watched: Arc<Watched>,
}

impl LuaState {
    pub fn open(
        setup: &Setup<'_>,
        output: &Arc<Output>,
        watchdog: &Watchdog,
    ) -> Result<Self, Error> {
        let lua = luajit::open()?;
        let native = lua.create_table()?;
        let sink = Arc::clone(output);
        let print = lua.create_function(move |_, words: Variadic<mlua::LuaString>| {
            for word in words.iter() {
                sink.print(&word.as_bytes());
            }
            Ok(())
        })?;
        native.set("print", print)?;
        native.set("lookup", lua.create_function(thread::look_up)?)?;
        native.set("connect", lua.create_function(thread::connects)?)?;
        lua.load(MODULES)
            .set_name("=modules")
            .call::<()>(host(&lua)?)?;
        let request = setup
            .request
            .as_ref()
            .ok_or_else(|| Error::runtime("a script in Lua needs a request to begin with"))?;
        let known = known(&lua, request)?;
        let calls: Table = lua.load(PRELUDE).set_name("=wrk").call((known, native))?;
        if let Some(address) = setup.address {
            let addresses = lua.create_table()?;
            addresses.push(lua.create_userdata(AddressObject(address))?)?;
            lua.globals().get::<Table>("wrk")?.set("addrs", addresses)?;
        }
        let watched = watchdog.watch(&lua)?;
        let file = lua
            .load(setup.source)
            .set_name(format!("@{}", as_typed(setup.file).display()))
            .into_function()?;
        let name = file.info().short_src.unwrap_or_default();
        let script = Script::new(name, setup.source);
        watched
            .call(Call::File, || file.call::<()>(()))
            .map_err(|error| script.placed(error, None))?;
        let call = |name: &str| calls.get::<Function>(name);
        Ok(Self {
            calls: Calls {
                setup: call("setup")?,
                init: call("init")?,
                request: call("request")?,
                response: call("response")?,
                delay: call("delay")?,
                done: call("done")?,
            },
            has: call("has")?,
            script,
            watched,
            lua,
        })
    }

    /// Whether the script has this function now.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        self.has.call(name)
    }

    /// Calls one of the script's functions; an error when it does not come to an end.
    pub fn call<R: FromLuaMulti>(&self, call: Call, args: impl IntoLuaMulti) -> Result<R, Error> {
        let function = match call {
            Call::Setup => &self.calls.setup,
            Call::Init => &self.calls.init,
            Call::Response => &self.calls.response,
            Call::Delay => &self.calls.delay,
            Call::Done => &self.calls.done,
            Call::File | Call::Request => &self.calls.request,
        };
        self.watched
            .call(call, || function.call(args))
            .map_err(|error| self.script.placed(error, self.entered(call).as_ref()))
    }

    /// The script's own function that a call enters, where it has one.
    fn entered(&self, call: Call) -> Option<FunctionInfo> {
        let name = match call {
            Call::Request => "request",
            Call::Response => "response",
            Call::Delay => "delay",
            Call::Done => "done",
            // Behind these the engine's own Lua goes on.
            Call::File | Call::Setup | Call::Init => return None,
        };
        let function: Option<Function> = self.lua.globals().raw_get(name).ok()?;
        function.map(|function| function.info())
    }
}

/// A file below the current directory by its path from there, as it is mostly given on a command
/// line: scripts look for modules in the folder that `debug.getinfo` tells.
fn as_typed(file: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    file.strip_prefix(here).unwrap_or(file).to_owned()
}

/// Longer waits outlast any run.
const LONGEST_SLEEP_S: f64 = 7.0 * 24.0 * 3600.0;

/// What the modules need of the host: its clock, a wait, and what stands for JSON's `null`.
fn host(lua: &Lua) -> Result<Table, Error> {
    let host = lua.create_table()?;
    host.set(
        "time_s",
        lua.create_function(|_, ()| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            Ok(since.unwrap_or_default().as_secs_f64())
        })?,
    )?;
    host.set(
        "wait_s",
        lua.create_function(|_, seconds: f64| {
            // A comparison that is false for what is no number.
            if seconds > 0.0 {
                let seconds = seconds.min(LONGEST_SLEEP_S);
                std::thread::sleep(Duration::from_secs_f64(seconds));
            }
            Ok(())
        })?,
    )?;
    host.set("null", Value::NULL)?;
    Ok(host)
}

/// The fields of `wrk`: the request of a script that says nothing else.
fn known(lua: &Lua, request: &DefaultRequest<'_>) -> Result<Table, Error> {
    let known = lua.create_table()?;
    known.set("scheme", if request.secure { "https" } else { "http" })?;
    known.set("host", request.host)?;
    known.set("port", request.port)?;
    known.set("method", request.method)?;
    known.set("path", request.path.as_str())?;
    let headers = lua.create_table()?;
    for (name, value) in &request.headers {
        headers.set(*name, value.as_str())?;
    }
    known.set("headers", headers)?;
    if let Some(body) = &request.body {
        known.set("body", body.as_str())?;
    }
    Ok(known)
}
