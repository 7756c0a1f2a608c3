//! One virtual user: where it is in its scenario and in its request. A small value, for there may
//! be a million of them. It knows nothing of sockets.

use crate::http::response::ResponseReader;
use crate::measure::recorder::Recorder;
use crate::measure::user_time::LifePart;

/// What a user is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// A place of an open load that no arrival holds: with an open connection, ...
    Ready,
    /// ... with one that is being opened, ...
    Warming,
    /// ... without one.
    Cold,
    /// Not started yet.
    #[default]
    Waiting,
    Connecting,
    /// Its request goes out with the next group of sends.
    Queued,
    InFlight,
    /// The last response of its connection has come, and the server is to close that.
    Closing,
    Thinking,
    /// The same, before its first request, which has its place in the quota already.
    Holding,
    /// Goes on with its scenario after a pause: an iteration has sent nothing.
    Idling,
    /// After a failed attempt to connect.
    BackingOff,
    /// All users halt, and it has come to its next request.
    Halted,
    /// Its own branch has ended, and it waits for the others.
    Joining,
    /// A lane on which no branch is walked.
    Spare,
    Ended,
}

impl Phase {
    /// On what a user's life is spent; `None`: nobody is there.
    #[inline]
    fn part(self) -> Option<LifePart> {
        match self {
            Self::InFlight
            | Self::Closing
            | Self::Thinking
            | Self::Holding
            | Self::Idling
            | Self::Halted
            | Self::Joining => Some(LifePart::Cycle),
            Self::Queued => Some(LifePart::Turnaround),
            Self::Connecting => Some(LifePart::Connect),
            Self::BackingOff => Some(LifePart::BackOff),
            Self::Ready | Self::Warming | Self::Cold => None,
            Self::Waiting | Self::Spare | Self::Ended => None,
        }
    }
}

/// The present request goes out on a connection that was open.
const NOT_CONNECTING: u64 = 0;

const FIRST_BACK_OFF_NS: u64 = 10_000_000;
const LONGEST_BACK_OFF_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub struct User {
    pub phase: Phase,
    /// Its connection can be used.
    pub connected: bool,
    /// It is connected and in the TLS handshake.
    pub securing: bool,
    /// It is no user but a lane of one, whose life is described by that one's own phases.
    lane: bool,
    /// Attempts to connect that failed in a row.
    failures: u8,
    /// Of its present request; with several under way, of the one that is answered next.
    pub step: u16,
    /// Of the target: where its connection goes.
    pub address: u16,
    /// Requests sent on the present connection.
    pub on_connection: u32,
    pub iterations: u64,
    /// Begin of the present phase.
    pub since_ns: u64,
    /// When it began to connect for its present request, or [`NOT_CONNECTING`].
    connecting_ns: u64,
    /// When the request in flight was sent; before, when connecting or the handshake began.
    pub sent_ns: u64,
    pub reader: ResponseReader,
}

impl User {
    /// A user who has done nothing yet, in its first phase.
    pub fn new(phase: Phase) -> Self {
        Self {
            phase,
            ..Self::default()
        }
    }

    /// One on which nothing has been walked yet.
    pub fn lane() -> Self {
        Self {
            lane: true,
            ..Self::new(Phase::Spare)
        }
    }

    /// On what its life is spent.
    #[inline]
    fn part(&self) -> Option<LifePart> {
        if self.lane { None } else { self.phase.part() }
    }

    /// Goes on to its next phase. All time of its life is recorded here, phase by phase.
    #[inline]
    pub fn enter(&mut self, phase: Phase, now_ns: u64, recorder: &mut Recorder) {
        let waited = self.waits();
        // A send may be reported ahead of the events that were fetched with the one before it.
        let at_ns = self.since_ns.max(now_ns);
        if let Some(part) = self.part() {
            recorder.lives.leave(part, at_ns);
        }
        if phase == Phase::InFlight {
            recorder.turned_around(at_ns - self.since_ns);
        }
        self.phase = phase;
        if let Some(part) = self.part() {
            recorder.lives.enter(part, at_ns);
        }
        self.since_ns = at_ns;
        match (waited, self.waits()) {
            (false, true) => recorder.waits(now_ns),
            (true, false) => recorder.waited(now_ns),
            _ => {}
        }
    }

    /// Its request waits for a connection of its own.
    #[inline]
    fn waits(&self) -> bool {
        match self.phase {
            Phase::Connecting => true,
            Phase::Queued => self.connecting_ns != NOT_CONNECTING,
            _ => false,
        }
    }

    #[inline]
    pub fn start_request(&mut self) {
        self.connecting_ns = NOT_CONNECTING;
    }

    /// Begins to connect for its present request; false when it had begun before.
    pub fn connects(&mut self, now_ns: u64) -> bool {
        let first = self.connecting_ns == NOT_CONNECTING;
        if first {
            self.connecting_ns = now_ns;
        }
        first
    }

    #[inline]
    pub fn connecting_ns(&self) -> Option<u64> {
        (self.connecting_ns != NOT_CONNECTING).then_some(self.connecting_ns)
    }

    /// Its present phase is denied to have begun before now ([`crate::fault::Fault::HiddenRetries`]).
    pub fn deny(&mut self, now_ns: u64, recorder: &mut Recorder) {
        let now_ns = now_ns.max(self.since_ns);
        if let Some(part) = self.part() {
            recorder.deny(part, self.since_ns, now_ns);
        }
        self.since_ns = now_ns;
    }

    /// How long to wait after one more failed attempt to connect: 10 ms, doubling up to a second,
    /// so that a dead server does not make a busy loop.
    pub fn back_off_ns(&mut self) -> u64 {
        let ns = FIRST_BACK_OFF_NS << self.failures.min(7);
        self.failures = self.failures.saturating_add(1);
        ns.min(LONGEST_BACK_OFF_NS)
    }

    /// Its next request is due, and has not been sent.
    pub fn is_held(&self) -> bool {
        matches!(
            self.phase,
            Phase::Connecting | Phase::Queued | Phase::Thinking | Phase::Holding
        )
    }

    pub fn connected(&mut self) {
        self.connected = true;
        self.securing = false;
        self.failures = 0;
        self.on_connection = 0;
        self.reader.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backing_off_doubles_up_to_a_second_and_starts_again_after_a_connection() {
        let mut user = User::new(Phase::Waiting);
        let waits: Vec<u64> = (0..9).map(|_| user.back_off_ns() / 1_000_000).collect();
        assert_eq!(waits, vec![10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        user.connected();
        assert_eq!(user.back_off_ns(), FIRST_BACK_OFF_NS);
    }

    #[test]
    fn a_user_is_small() {
        assert!(size_of::<User>() <= 64, "{}", size_of::<User>());
    }
}
