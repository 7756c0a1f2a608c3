//! The schedule of an open load in one thread: when arrivals are due, which places are free for
//! them, and what was due and not sent.

use std::sync::Arc;

use super::pool::Pool;
use crate::job::{Job, OpenJob};
use crate::pace::arrivals::Arrivals;
use crate::pace::lateness::Lateness;
use crate::pace::share::Share;
use crate::record::Record;
use crate::user::Phase;

/// The kernel wakes a waiting thread some ten microseconds late, on a virtual machine five times
/// that. A wait for an arrival therefore ends so much earlier, and the rest is polled: no more than
/// these quarters of the mean gap, which bounds the cost at any rate.
const POLLED_QUARTERS: u64 = 3;
/// The mean is taken over about so many gaps.
const MEAN_OVER: u64 = 16;

/// The arrivals of one thread, and its places.
pub(super) struct OpenArrivals {
    start_ns: u64,
    arrivals: Arrivals,
    /// Arrivals from the next on that were counted as offered already.
    counted: u64,
    /// Of the last arrivals.
    mean_gap_ns: u64,
    /// Of the wake-ups of this thread.
    lateness: Lateness,
    /// No more arrivals: the total of requests is used up.
    pub(super) exhausted: bool,
    pool: Pool,
    /// An arrival that finds no place waits for one.
    waits: bool,
    /// The next arrival is due and waits until a place is free.
    pub(super) held: bool,
    /// Connections to keep open.
    connections: usize,
    deadline_ns: Option<u64>,
    /// By phase: when it ends after the start, and the share of this thread in its places.
    caps: Vec<(u64, Option<usize>)>,
}

impl OpenArrivals {
    pub(super) fn new(
        job: &Job,
        open: &OpenJob,
        place: &Share,
        places: usize,
        start_ns: u64,
    ) -> Self {
        Self {
            start_ns,
            arrivals: Arrivals::new(
                Arc::clone(&open.rate),
                open.spacing,
                place.clone(),
                job.seed,
            ),
            counted: 0,
            mean_gap_ns: 0,
            lateness: Lateness::default(),
            exhausted: false,
            pool: Pool::new(places),
            waits: open.waits,
            held: false,
            connections: place.of(open.connections),
            deadline_ns: open.deadline_ns,
            caps: open
                .caps
                .iter()
                .map(|(end_ns, cap)| (*end_ns, cap.map(|cap| place.of(cap))))
                .collect(),
        }
    }

    pub(super) fn due_ns(&self) -> u64 {
        if self.exhausted {
            return u64::MAX;
        }
        self.start_ns.saturating_add(self.arrivals.next_ns())
    }

    /// When this thread must look at its arrivals, or at the end of the phases.
    pub(super) fn wake_at_ns(&self, now_ns: u64) -> u64 {
        match self.due_ns() {
            u64::MAX if now_ns < self.end_ns() => self.end_ns(),
            u64::MAX => u64::MAX,
            _ if self.held => u64::MAX,
            due_ns => {
                due_ns
                    - self
                        .lateness
                        .ns()
                        .min(self.mean_gap_ns / 4 * POLLED_QUARTERS)
            }
        }
    }

    /// A wait that began at `from_ns` and was to last until `until_ns` ended at `woke_ns`. What
    /// ended it before its time says nothing.
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
    pub(super) fn take(&mut self) -> u64 {
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

    /// Arrivals due before a cut that were not counted: they belong before it.
    pub(super) fn count_due(&mut self, at_ns: u64) -> u64 {
        let due = self.waiting(at_ns);
        let new = due.saturating_sub(self.counted);
        self.counted += new;
        new
    }

    /// Arrivals due before a time that were not taken.
    pub(super) fn waiting(&self, at_ns: u64) -> u64 {
        if self.exhausted {
            return 0;
        }
        self.arrivals
            .due_before(at_ns.saturating_sub(self.start_ns))
    }

    /// Whether fewer connections are open or on their way than are to be kept ready.
    pub(super) fn lacks_connections(&self) -> bool {
        self.pool.not_cold() < self.connections && self.due_ns() != u64::MAX
    }

    pub(super) fn put(&mut self, index: u32, free: Phase) {
        self.held = false;
        self.pool.put(index, free);
    }

    /// A place without a connection, where one is to be kept ready.
    pub(super) fn take_cold(&mut self) -> Option<u32> {
        if self.lacks_connections() {
            self.pool.take(Phase::Cold)
        } else {
            None
        }
    }

    /// The place of an arrival that is due. `None`: it waits, or is counted as not sent.
    pub(super) fn place(
        &mut self,
        due_ns: u64,
        now_ns: u64,
        alive: usize,
        record: &mut Record,
    ) -> Option<u32> {
        let late_ns = now_ns - due_ns;
        let expired = self.deadline_ns.is_some_and(|deadline| late_ns >= deadline);
        if !expired
            && !self.is_full(due_ns, alive)
            && let Some(place) = self.pool.take_any()
        {
            return Some(place);
        }
        record.arrival_held();
        self.held = self.waits && !expired;
        if !self.held {
            let counters = record.counters();
            counters.offered += self.take();
            counters.expired += u64::from(expired);
            counters.blocked += u64::from(!expired);
        }
        None
    }
}
