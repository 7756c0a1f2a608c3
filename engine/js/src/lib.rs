//! Scripts in JavaScript with the interface of Artillery's processors: an interpreter per thread of
//! the engine, which blocks of scenarios call. It knows nothing of the load generator that asks it.

mod counts;
mod files;
mod native;
mod packages;
mod plain;
mod thread;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prony_script::output::{Output, ScriptPhase};
use prony_script::{Called, Caller, Figures, Functions, Interpreter, Printed, Setup, Summary};

use counts::Counts;
use thread::JsThread;

/// The interpreters of a run.
#[derive(Debug)]
struct JsScript {
    threads: Vec<Mutex<JsThread>>,
    output: Arc<Output>,
    counts: Arc<Counts>,
    failed: AtomicBool,
}

/// Runs the file in every interpreter.
pub fn open(setup: &Setup<'_>) -> Result<Box<dyn Interpreter>, String> {
    if setup.request.is_some() {
        return Err(format!(
            "{} is JavaScript, which blocks call; expected one that does (call), or a script in Lua that writes the requests",
            setup.file.display()
        ));
    }
    let output = Arc::new(Output::default());
    let counts = Arc::new(Counts::default());
    let threads = (0..setup.threads)
        .map(|_| JsThread::open(setup, &output, &counts).map(Mutex::new))
        .collect::<Result<_, _>>()?;
    Ok(Box::new(JsScript {
        threads,
        output,
        counts,
        failed: AtomicBool::new(false),
    }))
}

const NO_REQUESTS: &str = "a script in JavaScript writes no requests by itself";

impl Interpreter for JsScript {
    fn functions(&self) -> Functions {
        Functions {
            request: false,
            response: false,
            delay: false,
        }
    }

    fn request(&self, _: usize) -> Result<Vec<u8>, String> {
        Err(NO_REQUESTS.to_owned())
    }

    fn delay_ms(&self, _: usize) -> Result<f64, String> {
        Err(NO_REQUESTS.to_owned())
    }

    fn response(&self, _: usize, _: u16, _: &[u8], _: &[u8]) -> Result<(), String> {
        Err(NO_REQUESTS.to_owned())
    }

    fn call(&self, caller: Caller, task: usize, given: &[Vec<u8>]) -> Result<Called, String> {
        if self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Each thread of the engine has its own: nobody waits here.
        let mut thread = self.threads[caller.thread % self.threads.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        thread.call(caller, task, given)
    }

    fn figures(&self) -> Figures {
        self.counts.figures()
    }

    fn address(&self, _: usize) -> Option<SocketAddr> {
        None
    }

    fn has_stopped(&self, _: usize) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn fail(&self, sentence: String) {
        self.output.fail(sentence);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn error(&self) -> Option<String> {
        self.output.error()
    }

    fn begin_load(&self) {
        self.output.begin(ScriptPhase::Run);
    }

    fn done(&self, _: Summary) {
        self.output.begin(ScriptPhase::Done);
    }

    fn printed(&self) -> Printed {
        self.output.printed()
    }
}

#[cfg(test)]
mod library_tests;
#[cfg(test)]
mod tests;
