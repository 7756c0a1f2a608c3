//! The script of a run as the users see it: what each of its threads sends, in which requests. It
//! knows no language: interpreters are opened by a function that the command line hands in.

mod batch;

use std::ops::Deref;
use std::time::Duration;

use prony_script::{DefaultRequest, Interpreter, Setup};

use crate::check::{PlanError, ms_to_ns};
use crate::net::address::Address;
use crate::plan::{ScriptPlan, Step};
use crate::target::ResolvedTarget;
pub use batch::BatchedRequest;
use batch::{read_requests, read_whatever};

/// How scripts are run.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    pub open: prony_script::OpenScript,
    /// Called, from any thread, when a call into a script hangs and cannot be ended.
    pub on_hang: fn(&str),
}

/// Bytes that a thread sends at once, and the requests in them.
pub type Batch = (Vec<u8>, Vec<BatchedRequest>);

/// A script with its interpreters open.
#[derive(Debug)]
pub struct Script {
    interpreter: Box<dyn Interpreter>,
    threads: usize,
    /// By thread, of a script that does not decide anew for every send.
    fixed: Vec<Batch>,
    /// It decides anew for every send.
    pub dynamic: bool,
    /// It is given every response.
    pub looks: bool,
    /// It says how long users wait.
    pub delays: bool,
    /// Requests in the first batch.
    pub pipeline: u32,
}

impl Script {
    /// Opens the interpreters: at least one per thread of the engine.
    pub fn load(
        plan: &ScriptPlan,
        step: &Step,
        target: &ResolvedTarget,
        engine_threads: usize,
        language: &Language,
    ) -> Result<Self, PlanError> {
        let source = read(plan)?;
        let threads = (plan.threads as usize).max(engine_threads);
        let setup = Setup {
            request: Some(first_request(step, target)),
            address: target.addresses.first().and_then(Address::socket),
            ..setup(plan, &source, threads, language)
        };
        (language.open)(&setup)
            .and_then(|interpreter| Self::begin(interpreter, threads))
            .map_err(PlanError)
    }

    /// Opens an interpreter per thread of the engine for a script that is called for these tasks.
    pub fn beside(
        plan: &ScriptPlan,
        tasks: &[String],
        engine_threads: usize,
        language: &Language,
    ) -> Result<Self, PlanError> {
        let source = read(plan)?;
        let setup = Setup {
            tasks,
            ..setup(plan, &source, engine_threads, language)
        };
        let interpreter = (language.open)(&setup).map_err(PlanError)?;
        interpreter.begin_load();
        Ok(Self {
            interpreter,
            threads: engine_threads,
            fixed: Vec::new(),
            dynamic: false,
            looks: false,
            delays: false,
            pipeline: 1,
        })
    }

    fn begin(interpreter: Box<dyn Interpreter>, threads: usize) -> Result<Self, String> {
        let functions = interpreter.functions();
        let mut script = Self {
            interpreter,
            threads,
            fixed: Vec::new(),
            dynamic: functions.request,
            looks: functions.response,
            delays: functions.delay,
            pipeline: 1,
        };
        // Called once before the load, as by wrk: what is no request is found before.
        let first = script.first(0)?;
        script.pipeline = first.1.len() as u32;
        if !script.dynamic {
            let others = (1..threads).map(|thread| script.first(thread));
            script.fixed = std::iter::once(Ok(first))
                .chain(others)
                .collect::<Result<_, _>>()?;
        }
        script.interpreter.begin_load();
        Ok(script)
    }

    /// Whether it may send anything but the same single request again and again.
    pub fn sends_several(&self) -> bool {
        self.dynamic || self.fixed.iter().any(|(_, requests)| requests.len() > 1)
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Of a script that is not dynamic: what this thread sends.
    pub fn fixed(&self, thread: usize) -> Option<&Batch> {
        self.fixed.get(thread)
    }

    /// Whether it has stopped all of its threads.
    pub fn stopped_itself(&self) -> bool {
        (0..self.threads).all(|thread| self.has_stopped(thread))
    }

    /// What this thread sends first, which must be a request.
    fn first(&self, thread: usize) -> Result<Batch, String> {
        let bytes = self.interpreter.request(thread)?;
        refuse_if! {
            bytes.is_empty() =>
                "request() returned nothing that can be sent, expected the bytes of a request, as wrk.format() writes them";
        }
        let requests = read_requests(&bytes)
            .map_err(|why| format!("what request() returned is not a request: {why}"))?;
        Ok((bytes, requests))
    }

    /// What this thread sends next, as it is; nothing, when the script has nothing to send.
    pub fn request(&self, thread: usize) -> Result<Batch, String> {
        let bytes = self.interpreter.request(thread)?;
        let requests = read_whatever(&bytes);
        Ok((bytes, requests))
    }
}

/// What its interpreter does by itself: errors, delays, responses, figures, its end.
impl Deref for Script {
    type Target = dyn Interpreter;

    fn deref(&self) -> &Self::Target {
        &*self.interpreter
    }
}

fn read(plan: &ScriptPlan) -> Result<Vec<u8>, PlanError> {
    std::fs::read(&plan.file).map_err(|error| {
        PlanError(format!(
            "script.file {} cannot be read: {error}",
            plan.file.display()
        ))
    })
}

/// What every script starts from.
fn setup<'a>(
    plan: &'a ScriptPlan,
    source: &'a [u8],
    threads: usize,
    language: &Language,
) -> Setup<'a> {
    Setup {
        file: &plan.file,
        source,
        url: plan.url.as_deref().unwrap_or_default(),
        args: &plan.args,
        threads,
        request: None,
        tasks: &[],
        address: None,
        call_timeout: Duration::from_nanos(ms_to_ns(plan.call_timeout_ms)),
        on_hang: language.on_hang,
    }
}

/// The plan's one step.
fn first_request<'a>(step: &'a Step, target: &'a ResolvedTarget) -> DefaultRequest<'a> {
    let (host, port) = match target.authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        _ => (target.authority.as_str(), None),
    };
    let headers = step.headers.iter();
    DefaultRequest {
        secure: target.secure,
        host: host.trim_matches(['[', ']']),
        port,
        method: &step.method,
        path: literal(&step.path),
        headers: headers
            .map(|(name, value)| (name.as_str(), literal(value)))
            .collect(),
        body: step
            .body
            .as_ref()
            .and_then(|body| body.text.as_deref())
            .map(literal),
    }
}

/// A text of a plan without placeholders, as it is sent: only `$${` stands for something else.
fn literal(text: &str) -> String {
    text.replace("$${", "${")
}
