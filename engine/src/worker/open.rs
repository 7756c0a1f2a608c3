//! The open load of one thread: takes arrivals when they are due, finds each a place, keeps connections ready, and sees what was due
//! and not sent. What happens to a request once it has begun is [`super::walk`]'s.

use std::io;
use std::sync::Arc;

use super::Worker;
use super::pool::{Free, Pool};
use super::scenes::Moved;
use crate::job::{Job, OpenJob};
use crate::measure::counters::ErrorKind;
use crate::net::Driver;
use crate::pace::arrivals::{Arrivals, Share, Spacing};
use crate::pace::lateness::Lateness;
use crate::user::{NOT_SINCE, Phase};

/// Arrivals taken in one turn, so that answers do not wait behind a crowd of them.
const ARRIVALS_PER_LOOP: usize = 64;

/// What is due for less than this at the end of a span is on its way, not left behind: a hundred times the usual send lag.
const OVERDUE_NS: u64 = 10_000_000;

/// The kernel wakes a waiting thread some ten microseconds late, on a virtual machine five times that. A wait for an arrival therefore
/// ends so much earlier, and the rest is polled: no more than these quarters of the mean gap, which bounds the cost at any rate.
const POLLED_QUARTERS: u64 = 3;
/// The mean is taken over about so many gaps.
const MEAN_OVER: u64 = 16;

/// See the module.
pub(super) struct Open {
    start_ns: u64,
    arrivals: Arrivals,
    /// Arrivals from the next on that were counted as offered already.
    counted: u64,
    /// Of the last arrivals.
    mean_gap_ns: u64,
    /// Of the wake-ups of this thread.
    lateness: Lateness,
    /// No more arrivals: the total of requests is used up.
    exhausted: bool,
    pool: Pool,
    /// Connections to keep open.
    connections: usize,
    /// Of the request that each place is about, after the start of the clock.
    intended_ns: Vec<u64>,
    /// When the user at each place was to arrive; empty when an arrival is one request.
    arrived_ns: Vec<u64>,
    deadline_ns: Option<u64>,
    /// By phase: when it ends after the start, and the share of this thread in its places.
    caps: Vec<(u64, Option<usize>)>,
    /// Whether gaps between arrivals are tested, and when the last one was sent, after the start.
    tests_gaps: bool,
    last_sent_ns: Option<u64>,
}

impl Open {
    pub(super) fn new(
        job: &Job,
        open: &OpenJob,
        place: Share,
        places: usize,
        start_ns: u64,
    ) -> Self {
        Self {
            start_ns,
            arrivals: Arrivals::new(Arc::clone(&open.rate), open.spacing, place, job.seed),
            counted: 0,
            mean_gap_ns: 0,
            lateness: Lateness::default(),
            exhausted: false,
            pool: Pool::new(places),
            connections: place.of(open.connections),
            intended_ns: vec![0; places],
            arrived_ns: vec![0; if open.walks { places } else { 0 }],
            deadline_ns: open.deadline_ns,
            caps: open
                .caps
                .iter()
                .map(|(end_ns, cap)| (*end_ns, cap.map(|cap| place.of(cap))))
                .collect(),
            // With blocks the first step may come again and again, or after a pause.
            tests_gaps: open.spacing != Spacing::Constant && job.scenarios.program.is_none(),
            last_sent_ns: None,
        }
    }

    fn due_ns(&self) -> u64 {
        if self.exhausted {
            return u64::MAX;
        }
        self.start_ns.saturating_add(self.arrivals.next_ns())
    }

    /// When this thread must look at its arrivals: a little before the next is due; when no more come, at the end of the phases.
    pub(super) fn look_ns(&self, now_ns: u64) -> u64 {
        match self.due_ns() {
            u64::MAX if now_ns < self.end_ns() => self.end_ns(),
            u64::MAX => u64::MAX,
            due_ns => {
                due_ns
                    - self
                        .lateness
                        .ns()
                        .min(self.mean_gap_ns / 4 * POLLED_QUARTERS)
            }
        }
    }

    /// A wait that began at `from_ns` and was to last until `until_ns` ended at `woke_ns`. What ended it before its time says nothing.
    #[inline]
    pub(super) fn woke(&mut self, from_ns: u64, until_ns: u64, woke_ns: u64) {
        if from_ns < until_ns && until_ns <= woke_ns {
            self.lateness.observe(woke_ns - until_ns);
        }
    }

    /// Whether the phase of an arrival that is due now has no place left beside so many.
    fn is_full(&self, due_ns: u64, alive: usize) -> bool {
        let elapsed_ns = due_ns.saturating_sub(self.start_ns);
        let phase = self.caps.iter().find(|(end_ns, _)| elapsed_ns < *end_ns);
        phase.is_some_and(|(_, cap)| cap.is_some_and(|cap| alive >= cap))
    }

    fn end_ns(&self) -> u64 {
        if self.exhausted {
            return self.start_ns;
        }
        self.start_ns.saturating_add(self.arrivals.end_ns())
    }

    /// The instant from which nobody will arrive any more, once it has passed.
    pub(super) fn ended_ns(&self, now_ns: u64) -> Option<u64> {
        let ended = self.due_ns() == u64::MAX && now_ns >= self.end_ns();
        ended.then(|| self.end_ns())
    }

    /// Goes on to the next arrival; 1 when this one has not been counted as offered yet.
    fn take(&mut self) -> u64 {
        let before_ns = self.arrivals.next_ns();
        self.arrivals.advance();
        let gap_ns = self.arrivals.next_ns() - before_ns;
        self.mean_gap_ns =
            (self.mean_gap_ns / MEAN_OVER * (MEAN_OVER - 1)).saturating_add(gap_ns / MEAN_OVER);
        if self.counted > 0 {
            self.counted -= 1;
            return 0;
        }
        1
    }

    /// Arrivals due before a cut that were neither taken nor counted: they belong before it, whenever they are dealt with.
    pub(super) fn count_due(&mut self, at_ns: u64) -> u64 {
        let due = self.waiting(at_ns);
        let new = due.saturating_sub(self.counted);
        self.counted += new;
        new
    }

    /// Arrivals due before a time that were not taken.
    fn waiting(&self, at_ns: u64) -> u64 {
        if self.exhausted {
            return 0;
        }
        self.arrivals
            .due_before(at_ns.saturating_sub(self.start_ns))
    }

    pub(super) fn intend(&mut self, index: u32, due_ns: u64) {
        self.intended_ns[index as usize] = due_ns;
    }

    pub(super) fn intended_ns(&self, index: u32) -> u64 {
        self.intended_ns[index as usize]
    }

    /// The latest end of the request of a place that was given so long.
    pub(super) fn limit_ns(&self, index: u32, limit_ns: u64) -> u64 {
        let intended_ns = self.intended_ns(index);
        self.deadline_ns.map_or(limit_ns, |deadline| {
            limit_ns.min(intended_ns.saturating_add(deadline))
        })
    }

    /// Whether fewer connections are open or on their way than are to be kept ready.
    fn lacks_connections(&self) -> bool {
        self.pool.not_cold() < self.connections && self.due_ns() != u64::MAX
    }

    fn put(&mut self, index: u32, free: Free) {
        self.pool.put(index, free);
    }
}

impl<D: Driver> Worker<'_, D> {
    /// Deals with the arrivals that are due.
    pub(super) fn take_arrivals(&mut self) -> io::Result<()> {
        for _ in 0..ARRIVALS_PER_LOOP {
            let Some(open) = &self.open else {
                return Ok(());
            };
            let due_ns = open.due_ns();
            // What is due after a cut waits for it, though the clock may have been read since.
            if due_ns > self.now_ns || due_ns >= self.schedule.next_ns() || self.stopped {
                return Ok(());
            }
            self.arrive(due_ns)?;
        }
        Ok(())
    }

    fn arrive(&mut self, due_ns: u64) -> io::Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let late_ns = self.now_ns - due_ns;
        if open.deadline_ns.is_some_and(|deadline| late_ns >= deadline) {
            self.recorder.counters.offered += open.take();
            self.recorder.counters.expired += 1;
            open.last_sent_ns = None;
            return Ok(());
        }
        let place = if open.is_full(due_ns, self.alive) {
            None
        } else {
            open.pool.take_any()
        };
        let Some(index) = place else {
            self.recorder.counters.offered += open.take();
            self.recorder.counters.blocked += 1;
            open.last_sent_ns = None;
            return Ok(());
        };
        if !self.may_send() {
            // Counted at a cut or not: it was never meant to be sent.
            let free = self.free_state(index);
            if let Some(open) = &mut self.open {
                open.exhausted = true;
                open.put(index, free);
            }
            return Ok(());
        }
        if let Some(open) = &mut self.open {
            self.recorder.counters.offered += open.take();
            open.intend(index, due_ns);
            if let Some(arrived_ns) = open.arrived_ns.get_mut(index as usize) {
                *arrived_ns = due_ns;
                self.recorder.counters.sessions_begun += 1;
            }
        }
        let user = &mut self.users[index as usize];
        user.step = 0;
        user.iterations = 0;
        // Never without a row: a checked open load has no feeder that ends.
        let moved = self.set_out(index);
        self.recorder.user_came(self.now_ns);
        self.alive += 1;
        let pause_ns = self.take_pause_ns();
        if moved != Moved::On {
            // No block of it has sent anything: an arrival, but not of a request.
            self.unsend();
            let counters = &mut self.recorder.counters;
            counters.offered = counters.offered.saturating_sub(1);
            self.walked(index);
            self.leave(index);
            return Ok(());
        }
        let Some(pause_ns) = pause_ns else {
            return self.begin(index);
        };
        let begin_ns = due_ns.saturating_add(pause_ns);
        if let Some(open) = &mut self.open {
            open.intend(index, begin_ns);
        }
        self.users[index as usize].phase = Phase::Holding;
        self.wheel.set(index, begin_ns.max(self.now_ns));
        Ok(())
    }

    fn free_state(&self, index: u32) -> Free {
        let user = &self.users[index as usize];
        if user.connected {
            Free::Ready
        } else if user.phase == Phase::Warming {
            Free::Warming
        } else {
            Free::Cold
        }
    }

    /// The request of a place was sent, or its connection begun where none was ready.
    #[inline]
    pub(super) fn acted(&mut self, index: u32, at_ns: u64) {
        let Some(open) = &mut self.open else { return };
        let lag_ns = at_ns.saturating_sub(open.intended_ns(index));
        self.recorder.open_load.send_lag.record(lag_ns);
        if open.tests_gaps && self.users[index as usize].step == 0 {
            let sent_ns = at_ns.saturating_sub(open.start_ns);
            if let Some(last_ns) = open.last_sent_ns.replace(sent_ns) {
                let expected = open.arrivals.expected_between(last_ns, sent_ns);
                self.recorder.gaps.record_gap(expected);
            }
        }
    }

    /// A request of a place ended with a time that counts: answered or timed out.
    #[inline]
    pub(super) fn record_latency(&mut self, index: u32) {
        if let Some(open) = &self.open {
            let latency_ns = self.now_ns.saturating_sub(open.intended_ns(index));
            self.recorder.open_load.latency.record(latency_ns);
        }
    }

    /// A user of an open load is through; its place is free for another.
    pub(super) fn leave(&mut self, index: u32) {
        if self.job.per_session {
            self.close(index, true);
        }
        self.release(index);
        if !self.users[index as usize].connected {
            self.warm();
        }
    }

    fn release(&mut self, index: u32) {
        let user = &mut self.users[index as usize];
        user.phase = Phase::Idle;
        user.since_ns = NOT_SINCE;
        let free = if user.connected {
            Free::Ready
        } else {
            Free::Cold
        };
        if let Some(open) = &mut self.open {
            open.put(index, free);
        }
        self.recorder.user_went(self.now_ns);
        self.alive -= 1;
    }

    /// The user at a place has walked its scenario to the end.
    pub(super) fn walked(&mut self, index: u32) {
        if let Some(open) = &self.open
            && let Some(arrived_ns) = open.arrived_ns.get(index as usize)
        {
            self.recorder.counters.sessions_completed += 1;
            let session_ns = self.now_ns.saturating_sub(*arrived_ns);
            self.recorder.open_load.session_time.record(session_ns);
        }
    }

    /// Opens connections until there are as many as are to be kept ready.
    pub(super) fn warm(&mut self) {
        while let Some(open) = &mut self.open
            && open.lacks_connections()
            && let Some(index) = open.pool.take(Free::Cold)
        {
            self.warm_place(index);
        }
    }

    /// The timer of a free place: time for another attempt to connect, or what was left of the timer of a request.
    pub(super) fn warm_again(&mut self, index: u32) {
        let lacking = self
            .open
            .as_ref()
            .is_some_and(|open| open.lacks_connections());
        if lacking && !self.users[index as usize].connected {
            self.warm_place(index);
        }
    }

    fn warm_place(&mut self, index: u32) {
        if let Some(open) = &mut self.open {
            open.put(index, Free::Warming);
        }
        self.users[index as usize].phase = Phase::Warming;
        self.open_connection(index, self.now_ns + self.job.connect_timeout_ns);
    }

    /// A connection for nobody in particular was opened.
    pub(super) fn warmed(&mut self, index: u32) {
        self.users[index as usize].phase = Phase::Idle;
        if let Some(open) = &mut self.open {
            open.put(index, Free::Ready);
        }
    }

    /// A connection that nobody used was lost, or could not be opened.
    pub(super) fn cooled(&mut self, index: u32) {
        self.users[index as usize].phase = Phase::Idle;
        if let Some(open) = &mut self.open {
            open.put(index, Free::Cold);
        }
        self.connect_later(index);
    }

    /// An arrival could not connect: such a user goes away.
    pub(super) fn turned_away(&mut self, index: u32, kind: ErrorKind) {
        if matches!(kind, ErrorKind::Timeout | ErrorKind::ConnectTimeout) {
            self.record_latency(index);
        }
        self.release(index);
        self.connect_later(index);
    }

    /// Another attempt for a place that nobody holds follows, at first soon, then less and less so.
    fn connect_later(&mut self, index: u32) {
        let back_off_ns = self.users[index as usize].back_off_ns();
        self.wheel.set(index, self.now_ns + back_off_ns);
    }

    /// At a cut: what became due before it is counted as offered.
    pub(super) fn count_offered(&mut self, at_ns: u64) {
        if let Some(open) = &mut self.open {
            self.recorder.counters.offered += open.count_due(at_ns);
        }
    }

    /// At the end of a span: requests that should have been sent some time ago and were not.
    pub(super) fn overdue(&self, at_ns: u64) -> u64 {
        let Some(open) = &self.open else { return 0 };
        let limit_ns = at_ns.saturating_sub(OVERDUE_NS);
        let held = self
            .users
            .iter()
            .zip(&open.intended_ns)
            .filter(|(user, intended_ns)| {
                matches!(
                    user.phase,
                    Phase::Connecting | Phase::Queued | Phase::Thinking | Phase::Holding
                ) && **intended_ns < limit_ns
            });
        open.waiting(limit_ns) + held.count() as u64
    }
}
