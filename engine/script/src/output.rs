//! What the interpreters of a run print, and their first error. It knows no language.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Printed;

/// More output than this is dropped, and the report says so.
const MAX_PRINTED_BYTES: usize = 4 * 1024 * 1024;

/// The parts of a script's life, which the report keeps apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScriptPhase {
    #[default]
    Setup,
    Run,
    Done,
}

#[derive(Debug, Default)]
struct State {
    part: ScriptPhase,
    printed: Printed,
    error: Option<String>,
}

/// The output of all interpreters of a run.
#[derive(Debug, Default)]
pub struct Output {
    state: Mutex<State>,
    failed: AtomicBool,
}

impl Output {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // A thread that panicked with the lock in hand has left text that is still text.
        act(&mut self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub fn begin(&self, part: ScriptPhase) {
        self.with(|state| state.part = part);
    }

    pub fn print(&self, text: &[u8]) {
        self.with(|state| {
            let printed = &mut state.printed;
            let into = match state.part {
                ScriptPhase::Setup => &mut printed.setup,
                ScriptPhase::Run => &mut printed.run,
                ScriptPhase::Done => &mut printed.done,
            };
            if into.len() + text.len() > MAX_PRINTED_BYTES {
                printed.left_out = true;
            } else {
                into.push_str(&String::from_utf8_lossy(text));
            }
        });
    }

    pub fn printed(&self) -> Printed {
        self.with(|state| state.printed.clone())
    }

    /// Keeps the first error.
    pub fn fail(&self, sentence: String) {
        self.with(|state| state.error.get_or_insert(sentence).len());
        self.failed.store(true, Ordering::Relaxed);
    }

    pub fn error(&self) -> Option<String> {
        if !self.failed.load(Ordering::Relaxed) {
            return None;
        }
        self.with(|state| state.error.clone())
    }
}
