//! The users of one thread as a machine without I/O: an event and the time go in, what to do next
//! comes out. It owns where each user is in its scenario, the requests it has under way, its
//! values, and its end. It must not know of drivers, timers or messages.
//!
//! A user *starts* (an iteration, a branch, a request), *goes* where its scenario leads, and *ends*. What
//! it is doing is a [`Phase`], where the scenario leads is a `Move`, and what the thread is to do for it an
//! [`Action`]. From its phase an event takes it *on*, to its next request: `Queued` on an open connection,
//! else `Connecting`; before it `Thinking` where it pauses, `Idling` where an iteration sends nothing,
//! `Halted` while all users halt; `Joining` or `Spare` where a branch ends; `Ended` (open load: `Ready` or
//! `Cold`) at its end.
//!
//! | phase | event | next |
//! |---|---|---|
//! | `Waiting`, `Idling`, `Thinking`, `BackingOff` | timer | on |
//! | `Holding` | timer | `Queued`, `Connecting` |
//! | `Halted` | users resume | on |
//! | `Connecting` | connected, secured | `Queued` |
//! | `Connecting` | failed, timer | `BackingOff`; open load: `Cold` |
//! | `Queued` | sent | `InFlight` |
//! | `Queued` | closed | `Connecting` |
//! | `InFlight` | response, loss, timer | on; `Closing` where the server is to close |
//! | `Closing` | closed, timer | on |
//! | `Joining`, `Spare` | the others' branches end, a branch starts | on |
//! | `Ready`, `Cold` | arrival | `Queued`, `Connecting`, `Holding` |
//! | `Ready` | closed | `Cold` |
//! | `Cold` | a connection is to be kept ready | `Warming` |
//! | `Warming` | connected, secured; failed, timer | `Ready`; `Cold` |
//! | `Warming` | arrival | `Connecting` |

mod branches;
mod connection;
mod halted;
mod moves;
mod outcome;
mod phase;
mod queue;
mod quota;
mod receive;
mod redirects;
mod retirement;
mod scripted;
mod send;
mod servers;
#[cfg(test)]
mod tests;
mod values;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::fault::Faults;
use crate::http::captured::CapturedResponse;
use crate::http::head::HeadCache;
use crate::http::memory::Budget;
use crate::job::Job;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::running::Running;
use crate::pace::share::Share;
use crate::payload::Outgoing;
use crate::record::{Ended, Record};
use crate::tls::Secured;
use halted::Halted;
pub use phase::Phase;
use phase::User;
use queue::Queues;
use quota::Allowance;
use redirects::Redirects;
use retirement::Retirement;
use servers::Servers;
use values::UserValues;

/// When something happens, and where it is recorded.
pub struct Context<'a> {
    pub now_ns: u64,
    pub record: &'a mut Record,
}

impl<'a> Context<'a> {
    #[inline]
    pub fn new(now_ns: u64, record: &'a mut Record) -> Self {
        Self { now_ns, record }
    }

    #[inline]
    fn counters(&mut self) -> &mut Counters {
        self.record.counters()
    }
}

/// Something that happened to a user.
#[derive(Debug)]
pub enum UserEvent<'a> {
    Connected,
    /// The handshake ended well, and requests may be sent.
    Secured(Secured),
    /// TLS failed, and why; the connection is of no more use.
    Unsecured(String),
    ConnectFailed(ErrorKind),
    /// Requests may be sent on a connection that others have too, and that one of them opened.
    Joined,
    /// Its request ended without a response, and its connection stays.
    Lost {
        kind: ErrorKind,
        reason: String,
    },
    Received(Bytes<'a>),
    /// The other side closed its direction. `sending`: not all of what was sent has been taken;
    /// `truncated`: over TLS, without close_notify.
    Closed {
        sending: bool,
        truncated: bool,
    },
    /// The connection broke while reading or writing, which is this kind of error.
    Broken {
        kind: ErrorKind,
        sending: bool,
    },
    /// The client could not do what this connection needed, and why: nothing that the server did.
    Refused(String),
    /// A time that it asked for has come.
    Timer {
        due_ns: u64,
    },
}

/// What came on a connection.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    pub bytes: &'a [u8],
    /// Not all of what was sent has been taken.
    pub sending: bool,
    /// When the last byte of what was sent had been taken, where that is asked for and known.
    pub accepted_ns: Option<u64>,
}

/// What the thread is to do, after it has closed what was given up ([`Users::next_given_up`]).
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Nothing: the user waits for what it waits for already.
    Stay,
    /// Connect its own connection ([`Users::connection`]) to this address; a timer at that time.
    Connect { address: usize, limit_ns: u64 },
    /// Ask [`Users::write`] for its request when its turn to send has come.
    Send,
    /// Send what [`Users::take_held`] has, and set the timer where a time is given.
    SendHeld { until_ns: Option<u64> },
    /// A timer.
    WaitUntil(u64),
    /// Its place in an open load is free, as [`Users::phase`] says; where a time is given,
    /// another attempt to connect follows.
    Vacate { retry_ns: Option<u64> },
    /// It has ended.
    End,
}

impl Action {
    const VACATE: Self = Self::Vacate { retry_ns: None };
}

/// The last heads of a step's responses.
#[derive(Default)]
struct HeadCaches {
    usual: HeadCache,
    /// Of responses to HEAD, where one step has them beside others.
    of_heads: HeadCache,
}

impl HeadCaches {
    #[inline]
    fn of(&mut self, head: Option<bool>) -> &mut HeadCache {
        if head == Some(true) {
            &mut self.of_heads
        } else {
            &mut self.usual
        }
    }
}

/// What only the users of an open load have.
struct OpenTimes {
    /// When the present request of each place was to be sent.
    intended_ns: Vec<u64>,
    /// When the user at each place was to arrive; empty when an arrival is one request.
    arrived_ns: Vec<u64>,
    deadline_ns: Option<u64>,
}

/// What users know of where they live.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// A connection is of use only after [`UserEvent::Secured`].
    pub secures: bool,
    pub faults: Faults,
    /// What the clock of events must be put forward to give the time since 1970.
    pub unix_offset_ns: u64,
}

/// The users of one thread; with one server a user's index is also that of its connection.
pub struct Users {
    job: Arc<Job>,
    place: Share,
    surroundings: Surroundings,
    all: Vec<User>,
    head_caches: Vec<HeadCaches>,
    /// Of incomplete responses.
    budget: Budget,
    values: UserValues,
    /// `None`: each has one request under way at most.
    queues: Option<Box<Queues>>,
    redirects: Redirects,
    /// Requests from their sends on, until their users know how they ended.
    in_flight: Running,
    /// Bodies that wait until the server asks for them.
    held: HashMap<u32, Outgoing>,
    /// Connections that the thread is to close.
    given_up: Vec<u32>,
    /// The response that is looked at.
    captured: CapturedResponse,
    /// The digest of the body that came last, if it was sampled.
    sampled: Option<u64>,
    allowance: Allowance,
    /// `None` in a closed load.
    open: Option<Box<OpenTimes>>,
    retirement: Retirement,
    halted: Halted,
    rng: SmallRng,
    /// By server: which of its addresses the next connection goes to.
    next_address: Vec<usize>,
    /// `None`: all requests go to one server.
    servers: Option<Box<Servers>>,
    /// Users that have not ended; in an open load those that have arrived and not gone.
    alive: usize,
    /// The first response's head was noted.
    head_noted: bool,
}

impl Users {
    pub fn new(
        job: &Arc<Job>,
        place: Share,
        count: usize,
        start_ns: u64,
        surroundings: Surroundings,
    ) -> Self {
        let phase = if job.open.is_some() {
            Phase::Cold
        } else {
            Phase::Waiting
        };
        let places = job.places(count);
        let open = job.open.as_ref().map(|open| {
            Box::new(OpenTimes {
                intended_ns: vec![0; places],
                // No lane ever begins with the first request of an arrival.
                arrived_ns: vec![u64::MAX; if open.walks { places } else { 0 }],
                deadline_ns: open.deadline_ns,
            })
        });
        let user = |index: usize| {
            let mut user = User::new(phase);
            user.step = job.script_thread(index, &place);
            user
        };
        Self {
            surroundings,
            all: (0..count)
                .map(user)
                .chain((count..places).map(|_| User::lane()))
                .collect(),
            head_caches: job.steps.iter().map(|_| HeadCaches::default()).collect(),
            budget: Budget::new(job.partial_response_bytes),
            values: UserValues::new(job, count, place.clone()),
            queues: job.queues_requests().then(|| Box::new(Queues::new(count))),
            redirects: Redirects::default(),
            in_flight: Running::default(),
            held: HashMap::new(),
            given_up: Vec::new(),
            captured: CapturedResponse::new(true),
            sampled: None,
            allowance: Allowance::new(start_ns),
            alive: if open.is_some() { 0 } else { count },
            open,
            retirement: Retirement::new(job, &place, count, start_ns),
            halted: Halted::default(),
            rng: SmallRng::seed_from_u64(
                job.seed
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .wrapping_add(place.stream()),
            ),
            next_address: vec![place.stream() as usize; job.servers.len()],
            servers: Servers::new(job, places),
            head_noted: false,
            place,
            job: Arc::clone(job),
        }
    }

    /// After an event of a connection: what its user does, if it is not parked.
    #[inline]
    pub fn on_net(
        &mut self,
        owner: Option<u32>,
        connection: u32,
        event: UserEvent<'_>,
        cx: &mut Context<'_>,
    ) -> Action {
        match owner {
            Some(index) => self.on(index, event, cx),
            None => self.on_parked(connection, &event, cx),
        }
    }

    /// What a user does after an event.
    #[inline]
    pub fn on(&mut self, index: u32, event: UserEvent<'_>, cx: &mut Context<'_>) -> Action {
        if self.is_lane(index) {
            return self.on_lane(index, |users| users.on_event(index, event, cx));
        }
        self.on_event(index, event, cx)
    }

    #[inline]
    fn on_event(&mut self, index: u32, event: UserEvent<'_>, cx: &mut Context<'_>) -> Action {
        match event {
            UserEvent::Received(bytes) => self.on_received(index, bytes, cx),
            UserEvent::Timer { due_ns } => self.on_timer(index, due_ns, cx),
            UserEvent::Connected => self.on_connected(index, cx),
            UserEvent::Secured(secured) => self.on_secured(index, secured, cx),
            UserEvent::Unsecured(reason) => self.on_unsecured(index, reason, cx),
            UserEvent::ConnectFailed(kind) => self.fail_to_connect(index, kind, cx),
            UserEvent::Joined => self.on_usable(index, cx),
            UserEvent::Lost { kind, reason } => self.on_lost(index, kind, reason, cx),
            UserEvent::Refused(reason) => self.on_refused(index, reason, cx),
            UserEvent::Closed { sending, truncated } => {
                if self.all[index as usize].connected {
                    cx.record.server_closed_first();
                }
                self.on_closed(index, (sending, truncated), cx)
            }
            UserEvent::Broken { kind, sending } => match self.all[index as usize].phase {
                Phase::InFlight => self.lose(index, kind, false, cx),
                _ => self.on_closed(index, (sending, false), cx),
            },
        }
    }

    pub fn alive(&self) -> usize {
        self.alive
    }

    /// When the last request ended, where no more may be sent: the total is used up.
    pub fn used_up_ns(&self) -> Option<u64> {
        self.allowance
            .is_used_up(&self.job.quota)
            .then_some(self.allowance.ended_ns())
    }

    /// When the last request ended.
    pub fn ended_ns(&self) -> u64 {
        self.allowance.ended_ns()
    }

    /// Σ time since their sends of the requests in flight.
    pub fn in_flight_age_ns(&self, at_ns: u64) -> i128 {
        self.in_flight.until(at_ns)
    }

    /// Places of users and their lanes.
    pub fn places(&self) -> u32 {
        self.all.len() as u32
    }

    /// Requests of these users that are held and should have been sent before this time.
    pub fn overdue(&self, limit_ns: u64, among: impl Iterator<Item = u32>) -> u64 {
        let Some(open) = &self.open else { return 0 };
        let held = among
            .map(|index| index as usize)
            .filter(|index| self.all[*index].is_held() && open.intended_ns[*index] < limit_ns);
        held.count() as u64
    }

    #[inline]
    fn enter(&mut self, index: u32, phase: Phase, cx: &mut Context<'_>) {
        self.all[index as usize].enter(phase, cx.now_ns, &mut cx.record.recorder);
    }

    /// The wall clock at a time of the clock of events.
    #[inline]
    fn unix_ns(&self, now_ns: u64) -> u64 {
        now_ns.wrapping_add(self.surroundings.unix_offset_ns)
    }

    #[inline]
    fn intend(&mut self, index: u32, due_ns: u64) {
        if let Some(open) = &mut self.open {
            open.intended_ns[index as usize] = due_ns;
        }
    }

    /// The latest end of a request that was given so long.
    #[inline]
    fn limit_ns(&self, index: u32, limit_ns: u64) -> u64 {
        match &self.open {
            None => limit_ns,
            Some(open) => open.deadline_ns.map_or(limit_ns, |deadline_ns| {
                let intended_ns = open.intended_ns[index as usize];
                limit_ns.min(intended_ns.saturating_add(deadline_ns))
            }),
        }
    }

    /// The request of a user that is answered next, begun at that time.
    #[inline]
    fn ended(&self, index: u32, start_ns: u64) -> Ended {
        let number = self.values.number(index) as u32;
        Ended {
            index,
            number,
            step: self.all[index as usize].step,
            start_ns,
            intended_ns: match &self.open {
                None => start_ns,
                Some(open) => open.intended_ns[index as usize],
            },
            connecting_ns: match &self.open {
                None => self.all[index as usize].connecting_ns(),
                Some(_) => None,
            },
            users: self.alive as u32,
            branch: match &self.job.log {
                None => None,
                Some(_) => self.values.branch(index),
            },
        }
    }
}
