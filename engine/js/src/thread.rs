//! One interpreter with the script in it, and how it is called for a user. A call that takes too long
//! is ended: the interpreter asks the clock from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prony_script::output::Output;
use prony_script::{Called, Caller, Setup};
use rquickjs::{Array, CatchResultExt, CaughtError, Context, Ctx, Exception, Function, Object};
use rquickjs::{Runtime, Value};

use super::counts::Counts;
use super::files::{self, Beside};
use super::native;

const HOST: &str = include_str!("host.js");
/// What host.js hands out of Node's library.
const URLS: &str = include_str!("urls.js");
const LIBRARY: &str = include_str!("library.js");
const UUIDS: &str = include_str!("uuid.js");
const PROCESSOR: &str = include_str!("processor.js");
/// Where processor.js leaves the functions through which it is called.
const CALLS: &str = "prony:calls";
/// One interpreter with all that its users keep.
const MAX_MEMORY_BYTES: usize = 256 * 1024 * 1024;
/// Of the 2 MiB that a thread has.
const MAX_STACK_BYTES: usize = 512 * 1024;

/// When the call under way must have ended.
#[derive(Debug)]
struct Deadline {
    began: Instant,
    limit: Duration,
    /// Since the beginning.
    at_ns: AtomicU64,
    passed: AtomicBool,
}

impl Deadline {
    fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            limit,
            at_ns: AtomicU64::new(u64::MAX),
            passed: AtomicBool::new(false),
        })
    }

    fn set(&self) {
        let at = (self.began.elapsed() + self.limit).as_nanos();
        let at = u64::try_from(at).unwrap_or(u64::MAX);
        self.at_ns.store(at, Ordering::Relaxed);
        self.passed.store(false, Ordering::Relaxed);
    }

    /// Whether it has passed, which it then remembers.
    fn has_passed(&self) -> bool {
        let passed =
            self.began.elapsed().as_nanos() > u128::from(self.at_ns.load(Ordering::Relaxed));
        if passed {
            self.passed.store(true, Ordering::Relaxed);
        }
        passed
    }

    fn too_long(&self) -> Option<String> {
        self.passed.load(Ordering::Relaxed).then(|| {
            format!(
                "was ended after {} s; expected it to come to an end (an endless loop? what takes that long by intention: script.call_timeout_ms in the plan)",
                self.limit.as_secs_f64()
            )
        })
    }
}

/// One interpreter.
pub struct JsThread {
    context: Context,
    _runtime: Runtime,
    deadline: Arc<Deadline>,
    file: String,
    /// What each task calls.
    names: Vec<String>,
}

impl std::fmt::Debug for JsThread {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("JsThread")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl JsThread {
    pub fn open(
        setup: &Setup<'_>,
        output: &Arc<Output>,
        counts: &Arc<Counts>,
    ) -> Result<Self, String> {
        let said = |error: rquickjs::Error| {
            format!("{}: JavaScript cannot begin: {error}", setup.file.display())
        };
        let runtime = Runtime::new().map_err(said)?;
        runtime.set_memory_limit(MAX_MEMORY_BYTES);
        runtime.set_max_stack_size(MAX_STACK_BYTES);
        runtime.set_loader(Beside, Beside);
        let deadline = Deadline::new(setup.call_timeout);
        let asked = Arc::clone(&deadline);
        runtime.set_interrupt_handler(Some(Box::new(move || asked.has_passed())));
        let context = Context::full(&runtime).map_err(said)?;
        let tasks = parsed(setup)?;
        context.with(|ctx| {
            deadline.set();
            let made = begun(&ctx, setup, &tasks, output, counts).catch(&ctx);
            made.map_err(|error| match deadline.too_long() {
                Some(why) => format!("{}: the script {why}", setup.file.display()),
                None => sentence(&setup.file.display().to_string(), &error),
            })
        })?;
        Ok(Self {
            context,
            _runtime: runtime,
            deadline,
            file: setup.file.display().to_string(),
            names: tasks.iter().map(called_by).collect(),
        })
    }

    pub fn call(
        &mut self,
        caller: Caller,
        task: usize,
        given: &[Vec<u8>],
    ) -> Result<Called, String> {
        let deadline = &self.deadline;
        let made: Result<Called, String> = self.context.with(|ctx| {
            deadline.set();
            let act = || -> rquickjs::Result<Called> {
                let texts = Array::new(ctx.clone())?;
                for (place, value) in given.iter().enumerate() {
                    texts.set(place, String::from_utf8_lossy(value).as_ref())?;
                }
                let place = f64::from(caller.place);
                let calls: Object<'_> = ctx.globals().get(CALLS)?;
                let begin: Function<'_> = calls.get("begin")?;
                let begun: Value<'_> =
                    begin.call((task as f64, place, caller.started as f64, texts))?;
                // Promises that resolve at once, whether the call needs them or not.
                while !deadline.has_passed() && ctx.execute_pending_job() {}
                let ended = if begun.is_undefined() {
                    calls.get::<_, Function<'_>>("end")?.call(())?
                } else {
                    begun
                };
                taken(ended)
            };
            let made = act().catch(&ctx);
            made.map_err(|error| sentence(&self.file, &error))
        });
        // What was ended by the clock is an error of the run, whatever the script made of it.
        match self.deadline.too_long() {
            Some(why) => Err(format!("{}: {} {why}", self.file, self.names[task])),
            None => made,
        }
    }
}

/// The values that a call gave back; none when it failed the user. Bytes come as a list of one text,
/// with a character for each.
fn taken(ended: Value<'_>) -> rquickjs::Result<Called> {
    if ended.is_null() {
        return Ok(None);
    }
    let given: Vec<Value<'_>> = ended.get()?;
    let mut values = Vec::with_capacity(given.len());
    for value in given {
        values.push(match value.as_array() {
            Some(bytes) => native::bytes_of(&bytes.get::<String>(0)?),
            None => value
                .get::<rquickjs::String<'_>>()?
                .to_string()?
                .into_bytes(),
        });
    }
    Ok(Some(values))
}

fn parsed(setup: &Setup<'_>) -> Result<Vec<serde_json::Value>, String> {
    let tasks = setup.tasks.iter();
    tasks
        .map(|text| {
            serde_json::from_str(text)
                .map_err(|error| format!("a call's task cannot be read: {error}: {text}"))
        })
        .collect()
}

/// The functions of a task, as an error names them.
fn called_by(task: &serde_json::Value) -> String {
    let names = task["functions"].as_array().into_iter().flatten();
    let names: Vec<String> = names
        .filter_map(|name| name.as_str())
        .map(|name| format!("{name}()"))
        .collect();
    names.join(", ")
}

/// Runs the script; its functions are called by what then is in [`CALLS`].
fn begun<'js>(
    ctx: &Ctx<'js>,
    setup: &Setup<'_>,
    tasks: &[serde_json::Value],
    output: &Arc<Output>,
    counts: &Arc<Counts>,
) -> rquickjs::Result<()> {
    let config: serde_json::Value = match setup.args.first() {
        Some(text) => serde_json::from_str(text).map_err(|error| {
            Exception::throw_message(ctx, &format!("args[0] cannot be read: {error}"))
        })?,
        None => serde_json::Value::Null,
    };
    let env = config.get("env").cloned();
    let env = env.unwrap_or_else(|| serde_json::json!({}));
    let native = native::native(ctx, setup, &env, output, counts)?;
    for (name, text) in [("urls", URLS), ("library", LIBRARY), ("uuids", UUIDS)] {
        let made: Function<'js> = native::eval(ctx, text, &format!("prony:{name}"))?;
        native.set(name, made)?;
    }
    let require: Function<'js> =
        native::eval::<Function<'js>>(ctx, HOST, "prony:host")?.call((native.clone(),))?;
    let file = std::fs::canonicalize(setup.file).unwrap_or_else(|_| setup.file.to_owned());
    let path = file.to_string_lossy().into_owned();
    let text = String::from_utf8_lossy(setup.source).into_owned();
    let functions: Value<'js> = if files::is_module(&file, &text) {
        native::module(ctx, path, text)?
    } else {
        require.call((path.clone(), path))?
    };
    let mut whole = serde_json::Map::new();
    whole.insert("tasks".to_owned(), tasks.into());
    for name in [
        "variables",
        "rows",
        "target",
        "origin",
        "headers",
        "cookies",
        "user_agent",
        "timeout_ms",
    ] {
        whole.insert(name.to_owned(), config[name].clone());
    }
    let config = ctx.json_parse(serde_json::Value::from(whole).to_string())?;
    let processor: Function<'js> = native::eval(ctx, PROCESSOR, "prony:processor")?;
    processor.call((native, functions, config))
}

/// An error in one line, with the file and the line where it happened.
fn sentence(file: &str, error: &CaughtError<'_>) -> String {
    let (message, stack) = match error {
        CaughtError::Exception(exception) => (
            exception.message().unwrap_or_default(),
            exception.stack().unwrap_or_default(),
        ),
        CaughtError::Value(value) => (format!("{value:?} was thrown"), String::new()),
        CaughtError::Error(error) => (error.to_string(), String::new()),
    };
    let message = message.lines().next().unwrap_or_default().to_owned();
    // The innermost frame that is the script's: "at name (FILE:LINE:COLUMN)".
    let frames = stack.lines().filter(|line| !line.contains("prony:"));
    let place = frames.filter_map(place_in).next();
    match place {
        Some(place) => format!("{place}: {message}"),
        None => format!("{file}: {message}"),
    }
}

/// FILE:LINE of a frame.
fn place_in(frame: &str) -> Option<String> {
    let inside = match frame.rsplit_once('(') {
        Some((_, inside)) => inside.trim_end_matches(')'),
        None => frame.trim().strip_prefix("at ")?,
    };
    let (rest, last) = inside.rsplit_once(':')?;
    last.parse::<u32>().ok()?;
    match rest.rsplit_once(':') {
        Some((_, line)) if line.parse::<u32>().is_ok() => Some(rest.to_owned()),
        _ => Some(inside.to_owned()),
    }
}
