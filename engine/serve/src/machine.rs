//! The state of connections and what those of a thread share: the machine whose halves `exchange` (reads), `service` (waits)
//! and `respond` (answers) are. Types alone.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::answer::Stream;
use super::cases::{Case, Cases, Place};
use super::counters::Counters;
use super::draw::{Dice, Fate};
use super::request::BodyReader;
use super::shared::Shared;
use super::timers::Timers;

/// Output beyond this is sent before more is made of it.
pub(super) const OUT_BYTES: usize = 64 * 1024;
/// Longest body that `/echo` keeps.
pub(super) const ECHO_BYTES: usize = 16 * 1024 * 1024;
/// What the event loop has to do once the bytes made so far are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Read on.
    Read,
    /// Do not read: the answer is not due yet.
    Hold,
    /// Call `drained`: there is more to send.
    Drain,
    /// Close in order: end the sending side, read on until the client has closed as well.
    Close,
    /// Read on, though nothing will be made of it.
    Ignore,
    /// Close at once.
    Drop,
    /// Close with a reset.
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Reading,
    /// In the queue before the workers.
    Queued,
    /// Held by a stall before the service began.
    Stalled,
    Serving,
    /// A long answer is under way.
    Streaming,
    Dripping,
    Endless,
    Mute,
    Lingering,
}

/// The state of one connection; small while idle, as there may be very many.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(super) detail: Option<Box<Detail>>,
    /// The deadline that counts; older ones are passed over.
    pub(super) ticket: u32,
    pub(super) served: u32,
    pub(super) phase: Phase,
    pub(super) has_worker: bool,
}

/// What a connection needs only between the first byte of a request and the last of its answer.
#[derive(Debug, Default)]
pub(super) struct Detail {
    /// Received and not yet read.
    pub(super) input: Vec<u8>,
    pub(super) pending: Option<Pending>,
    /// The body of `pending` is still being read.
    pub(super) body: Option<BodyReader>,
    pub(super) echo: Vec<u8>,
    pub(super) rest: Option<Rest>,
}

/// A request that was read, or whose body is being read, and waits for its answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) case: Rc<Case>,
    pub(super) place: Place,
    pub(super) head_only: bool,
    pub(super) http10: bool,
    pub(super) keep_alive: bool,
    /// Content type of the request, for `/echo`.
    pub(super) content_type: Option<String>,
    /// Why the query was refused.
    pub(super) refusal: Option<String>,
    pub(super) fate: Fate,
}

/// The part of a thread that all its connections share.
#[derive(Debug)]
pub struct Machine {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    pub(super) thread: usize,
    pub(super) cases: Cases,
    pub(super) dice: Dice,
    pub timers: Timers,
    /// Connections of this thread that were given a worker just now.
    pub granted: VecDeque<u64>,
    /// Requests that need neither worker nor look at a stall are answered on the spot.
    pub(super) unhindered: bool,
}

impl Exchange {
    pub(super) fn detail(&mut self) -> &mut Detail {
        self.detail.get_or_insert_default()
    }
}

impl Machine {
    pub fn new(shared: Arc<Shared>, thread: usize) -> Self {
        let script = &shared.script;
        Self {
            counters: Arc::clone(&shared.counters[thread]),
            thread,
            cases: Cases::new(script.settings.clone()),
            dice: Dice::new(script.seed, thread as u64),
            timers: Timers::default(),
            granted: VecDeque::new(),
            unhindered: script.workers.is_none() && script.stall.is_none(),
            shared,
        }
    }
}

/// The part of an answer that is still to be sent.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) stream: Stream,
    pub(super) close: bool,
    pub(super) drip_ns: u64,
    /// Bytes of the answer to be dripped, from `dripped` on.
    pub(super) made: Vec<u8>,
    pub(super) dripped: usize,
}
