//! Ends calls into a script that do not come back, such as endless loops. A call costs two stores
//! and an exchange in memory that nobody else writes; the clock is read by the watching thread
//! alone, which sleeps in between. It knows nothing of Lua beyond the trap.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mlua::{Error, Lua};

use super::luajit::{TRAPPED, Trap};
use super::place::sentence;

/// The watching thread looks so often within the longest time of a call.
const LOOKS: u32 = 4;
/// What a state beyond the calls says: the trap is being set, or is set.
const TRAPPING: u32 = 0x100;
const IS_TRAPPED: u32 = 0x200;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    File = 1,
    Setup,
    Init,
    Request,
    Response,
    Delay,
    Done,
}

impl Call {
    const ALL: [Self; 7] = [
        Self::File,
        Self::Setup,
        Self::Init,
        Self::Request,
        Self::Response,
        Self::Delay,
        Self::Done,
    ];

    fn of(state: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|call| *call as u32 == state & 0xff)
    }

    fn name(self) -> &'static str {
        match self {
            Self::File => "the script outside of its functions",
            Self::Setup => "setup()",
            Self::Init => "init()",
            Self::Request => "request()",
            Self::Response => "response()",
            Self::Delay => "delay()",
            Self::Done => "done()",
        }
    }
}

/// One interpreter that is watched.
#[derive(Debug)]
pub struct Watched {
    /// 0: nothing runs. Else the call, and what became of it.
    state: AtomicU32,
    /// Calls so far.
    calls: AtomicU64,
    trap: Trap,
    limit: Duration,
}

impl Watched {
    /// Runs a call, and says where it was when it had to be ended.
    pub fn call<T>(&self, call: Call, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        // One thread at a time is in an interpreter.
        self.calls
            .store(self.calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let inside = self.trap.enter();
        self.state.store(call as u32, Ordering::Release);
        let result = act();
        let was_trapped = self.leave(call as u32);
        drop(inside);
        if !was_trapped {
            return result;
        }
        result.map_err(|error| {
            let sentence = sentence(&error);
            match sentence.strip_suffix(TRAPPED) {
                Some(place) => Error::runtime(format!("{place}: {}", self.too_long(call))),
                None => error,
            }
        })
    }

    fn too_long(&self, call: Call) -> String {
        format!(
            "{} was ended after {} s; expected it to come to an end (an endless loop? what takes that long by intention: script.call_timeout_ms in the plan)",
            call.name(),
            self.limit.as_secs_f64()
        )
    }

    /// Whether the trap was set.
    fn leave(&self, inside: u32) -> bool {
        loop {
            match self
                .state
                .compare_exchange(inside, 0, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return false,
                Err(state) if state & IS_TRAPPED != 0 => {
                    self.trap.let_go();
                    self.state.store(0, Ordering::Release);
                    return true;
                }
                // The watching thread is about to set it.
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// Sets the trap when this call still runs.
    fn end_call(&self, number: u64, state: u32) {
        let taken = self
            .state
            .compare_exchange(state, state | TRAPPING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if !taken {
            return;
        }
        // Between the look and the exchange another call of the same function may have begun: it
        // waits until this is decided.
        if self.calls.load(Ordering::Acquire) == number {
            self.trap.set();
            self.state.store(state | IS_TRAPPED, Ordering::Release);
        } else {
            self.state.store(state, Ordering::Release);
        }
    }
}

/// The watching thread and what it watches.
#[derive(Debug)]
pub struct Watchdog {
    watched: Arc<Mutex<Vec<Arc<Watched>>>>,
    limit: Duration,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Watchdog {
    pub fn start(limit: Duration, on_hang: fn(&str)) -> Result<Self, Error> {
        let watched = Arc::default();
        let (stop, stopped) = channel();
        let list = Arc::clone(&watched);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(&list, limit, on_hang, &stopped))
            .map_err(|error| {
                Error::runtime(format!(
                    "the thread that watches the script cannot be started: {error}"
                ))
            })?;
        Ok(Self {
            watched,
            limit,
            thread: Some((stop, thread)),
        })
    }

    pub fn watch(&self, lua: &Lua) -> Result<Arc<Watched>, Error> {
        let watched = Arc::new(Watched {
            state: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            trap: Trap::of(lua)?,
            limit: self.limit,
        });
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&watched));
        Ok(watched)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// A call that ran when the thread looked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sight {
    number: u64,
    call: u32,
    since: Option<Instant>,
}

fn watch(
    list: &Mutex<Vec<Arc<Watched>>>,
    limit: Duration,
    on_hang: fn(&str),
    stopped: &Receiver<()>,
) {
    let mut sights: Vec<Sight> = Vec::new();
    while stopped.recv_timeout(limit / LOOKS) == Err(RecvTimeoutError::Timeout) {
        let list = list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sights.resize(list.len(), Sight::default());
        for (watched, sight) in list.iter().zip(&mut sights) {
            let state = watched.state.load(Ordering::Acquire);
            let now = (watched.calls.load(Ordering::Acquire), state & 0xff);
            if state == 0 || now != (sight.number, sight.call) {
                *sight = Sight {
                    number: now.0,
                    call: now.1,
                    since: (state != 0).then(Instant::now),
                };
                continue;
            }
            let ran = sight.since.map_or(Duration::ZERO, |since| since.elapsed());
            if state & IS_TRAPPED == 0 && ran >= limit {
                watched.end_call(now.0, state);
            } else if state & IS_TRAPPED != 0 && ran >= 2 * limit {
                // It does not even come to its next instruction: it waits in a function of C, or in
                // one of the system that no signal ends.
                if let Some(call) = Call::of(state) {
                    on_hang(&format!(
                        "the script waits in a function outside of Lua and cannot be ended: {}",
                        watched.too_long(call)
                    ));
                }
                return;
            }
        }
    }
}
