//! The types of the HTTP state machine: what a connection keeps, and what the connections of a
//! thread share. `receive` reads requests, `service` delays them, `respond` writes responses;
//! `stream` does for streams of HTTP/2 what `receive` does for connections of HTTP/1.1.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::behaviour::Closing;
use super::counters::Counters;
use super::random::{Outcome, Random};
use super::request::BodyReader;
use super::response::BodyWriter;
use super::routes::{Endpoint, Handler, Routes};
use super::shared::Shared;
use super::timers::Timers;

/// Output beyond this is sent before more is made of it.
pub(super) const OUT_BYTES: usize = 64 * 1024;
/// Longest body that `/echo` keeps.
pub(super) const ECHO_BYTES: usize = 16 * 1024 * 1024;
/// What the event loop does once the output so far is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read on.
    Read,
    /// Do not read: the response is not due yet.
    Hold,
    /// Call `drained`: there is more to send.
    Drain,
    /// Close in order: end the sending side, read on until the client has closed as well.
    Close,
    /// Read on and discard.
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
    /// A long response is under way.
    Streaming,
    Dripping,
    Endless,
    Mute,
    Lingering,
}

/// The state of one connection, or of one stream of HTTP/2; small while idle, as there may be very many.
#[derive(Debug, Default)]
pub struct HttpState {
    pub(super) request: Option<Box<RequestState>>,
    /// Of the deadline that counts; older ones are ignored.
    pub(super) ticket: u32,
    pub(super) served: u32,
    /// Which connection of its thread it is.
    pub(super) place: u32,
    pub(super) phase: Phase,
    pub(super) has_worker: bool,
    /// It is a stream of HTTP/2: the head of its response waits in [`PartialResponse::head`], and
    /// only the body is written as bytes.
    pub(super) is_stream: bool,
}

/// What a connection needs only between the first byte of a request and the last of its response.
#[derive(Debug, Default)]
pub(super) struct RequestState {
    /// Received and not yet read.
    pub(super) input: Vec<u8>,
    pub(super) pending: Option<Pending>,
    /// The body of `pending` is still being read.
    pub(super) body: Option<BodyReader>,
    pub(super) echo: Vec<u8>,
    pub(super) rest: Option<PartialResponse>,
}

/// A request that was read, or whose body is being read, and waits for its response.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) handler: Rc<Handler>,
    pub(super) endpoint: Endpoint,
    pub(super) head_only: bool,
    pub(super) http10: bool,
    pub(super) keep_alive: bool,
    /// Content type of the request, for `/echo`.
    pub(super) content_type: Option<String>,
    /// Why the query was refused.
    pub(super) refusal: Option<String>,
    pub(super) outcome: Outcome,
}

/// The part of a thread that all its connections share.
#[derive(Debug)]
pub struct Machine {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    pub(super) thread: usize,
    pub(super) routes: Routes,
    pub(super) random: Random,
    pub timers: Timers,
    /// Connections of this thread that were given a worker just now.
    pub granted: VecDeque<u64>,
    /// Requests need neither a worker nor a look at stalls.
    pub(super) answers_at_once: bool,
}

impl HttpState {
    pub(super) fn request(&mut self) -> &mut RequestState {
        self.request.get_or_insert_default()
    }
}

/// The place of the connection that a key means among those of its thread.
pub(super) fn slot_of(key: u64) -> u32 {
    (key & u64::from(u32::MAX)) as u32
}

impl Machine {
    pub fn new(shared: Arc<Shared>, thread: usize) -> Self {
        let behaviour = &shared.behaviour;
        Self {
            counters: Arc::clone(&shared.counters[thread]),
            thread,
            routes: Routes::new(behaviour.settings.clone()),
            random: Random::new(behaviour.seed, thread as u64),
            timers: Timers::default(),
            granted: VecDeque::new(),
            answers_at_once: behaviour.workers.is_none() && behaviour.stall.is_none(),
            shared,
        }
    }
}

/// The head of a response on a stream, as values.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    /// `None`: the status allows no body, nor fields about one.
    pub(super) content_type: Option<String>,
    /// `None`: the length is not said.
    pub(super) length: Option<u64>,
    /// What becomes of the connection after the response.
    pub(super) closing: Closing,
    /// The body ends before its length.
    pub(super) cut: bool,
}

/// The part of a response that is still to be sent.
#[derive(Debug)]
pub(super) struct PartialResponse {
    /// Of a stream, until it is sent.
    pub(super) head: Option<Box<ResponseHead>>,
    pub(super) stream: BodyWriter,
    pub(super) close: bool,
    pub(super) drip_ns: u64,
    /// Bytes of the response to be dripped, from `dripped` on.
    pub(super) made: Vec<u8>,
    pub(super) dripped: usize,
}
