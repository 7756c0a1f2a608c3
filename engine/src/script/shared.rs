//! What the interpreters of a script share with the engine: what was printed, whether a thread has stopped, where it connects to,
//! and the first error. It knows nothing of Lua.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is printed beyond this is left out, and said to be.
const MOST_PRINTED_BYTES: usize = 4 * 1024 * 1024;

/// The parts of a script's life, in which what it prints is told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    Setup,
    Run,
    Done,
}

/// What a script has printed, by part.
#[derive(Debug, Clone, Default)]
pub struct Printed {
    pub setup: String,
    pub run: String,
    pub done: String,
    pub left_out: bool,
}

#[derive(Debug, Default)]
struct Said {
    part: Part,
    printed: Printed,
    error: Option<String>,
}

/// Of all interpreters of a run.
#[derive(Debug, Default)]
pub struct Shared {
    said: Mutex<Said>,
    failed: AtomicBool,
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Said) -> T) -> T {
        // Whoever panicked with the lock in hand has left text that is still text.
        act(&mut self
            .said
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub fn begin(&self, part: Part) {
        self.with(|said| said.part = part);
    }

    pub fn print(&self, text: &[u8]) {
        self.with(|said| {
            let printed = &mut said.printed;
            let into = match said.part {
                Part::Setup => &mut printed.setup,
                Part::Run => &mut printed.run,
                Part::Done => &mut printed.done,
            };
            if into.len() + text.len() > MOST_PRINTED_BYTES {
                printed.left_out = true;
            } else {
                into.push_str(&String::from_utf8_lossy(text));
            }
        });
    }

    pub fn printed(&self) -> Printed {
        self.with(|said| said.printed.clone())
    }

    /// Keeps the first error.
    pub fn fail(&self, sentence: String) {
        self.with(|said| said.error.get_or_insert(sentence).len());
        self.failed.store(true, Ordering::Relaxed);
    }

    pub fn error(&self) -> Option<String> {
        if !self.failed.load(Ordering::Relaxed) {
            return None;
        }
        self.with(|said| said.error.clone())
    }
}

/// Of one thread of the script.
#[derive(Debug, Default)]
pub struct ThreadShared {
    stopped: AtomicBool,
    address: Mutex<Option<SocketAddr>>,
}

impl ThreadShared {
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn set_address(&self, address: SocketAddr) {
        *self
            .address
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(address);
    }

    pub fn address(&self) -> Option<SocketAddr> {
        *self
            .address
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
