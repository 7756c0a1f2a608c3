//! Users of a closed load who end at times that follow from their numbers: those of a ramp-down, from the last to the first, and those
//! of a population whose time is over. A user whose request is under way ends after the answer.

use std::ops::Range;

use super::Worker;
use crate::job::Job;
use crate::net::Driver;
use crate::pace::arrivals::Share;
use crate::user::Phase;

/// Users are ended in portions of this size, so that answers do not wait behind a crowd of them.
const USERS_PER_LOOP: usize = 256;

/// See the module.
pub(super) struct Retirement {
    /// Users of this thread below this index may go on, as far as the ramp-down goes.
    keep: u32,
    /// When the next of them ends.
    ramp_ns: u64,
    /// When populations end, and their users; the first to end last.
    ends: Vec<(u64, Range<u32>)>,
    /// Users of populations that have ended.
    gone: Vec<Range<u32>>,
    /// Those of them who have still to be seen to.
    sweep: Range<u32>,
}

impl Retirement {
    pub(super) fn new(job: &Job, place: Share, users: usize, start_ns: u64) -> Self {
        let mut ends = job.populations.ends_in(place);
        for (end_ns, _) in &mut ends {
            *end_ns = end_ns.saturating_add(start_ns);
        }
        let mut retirement = Self {
            keep: users as u32,
            ramp_ns: u64::MAX,
            ends,
            gone: Vec::new(),
            sweep: 0..0,
        };
        retirement.settle(job, place, start_ns);
        retirement
    }

    fn settle(&mut self, job: &Job, place: Share, start_ns: u64) {
        self.ramp_ns = match (job.after_ns, self.keep.checked_sub(1)) {
            (Some(after_ns), Some(last)) if job.ramp_down.span_ns > 0 => {
                let number = last * place.threads as u32 + place.thread as u32;
                start_ns.saturating_add(job.ramp_down.end_ns(number, job.users, after_ns))
            }
            _ => u64::MAX,
        };
    }

    pub(super) fn next_ns(&self) -> u64 {
        if !self.sweep.is_empty() {
            return 0;
        }
        let end_ns = self.ends.last().map_or(u64::MAX, |end| end.0);
        self.ramp_ns.min(end_ns)
    }

    /// Whether this user is to end at the next occasion.
    #[inline]
    pub(super) fn has_come(&self, index: u32) -> bool {
        index >= self.keep || self.gone.iter().any(|users| users.contains(&index))
    }
}

impl<D: Driver> Worker<'_, D> {
    /// Ends the users whose time has come.
    pub(super) fn retire(&mut self) {
        while self.retirement.ramp_ns <= self.now_ns && !self.stopped {
            self.retirement.keep -= 1;
            let index = self.retirement.keep;
            let place = Share {
                thread: self.post.thread,
                threads: self.post.threads,
            };
            self.retirement.settle(&self.job, place, self.start_ns);
            self.retire_user(index);
        }
        let retirement = &mut self.retirement;
        if retirement.sweep.is_empty()
            && let Some((_, users)) = retirement.ends.pop_if(|end| end.0 <= self.now_ns)
        {
            retirement.gone.push(users.clone());
            retirement.sweep = users;
        }
        for _ in 0..USERS_PER_LOOP {
            let Some(index) = self.retirement.sweep.next() else {
                return;
            };
            self.retire_user(index);
        }
    }

    /// Ends a user who waits for nothing but its time; one whose request is under way ends after it. Whether it did.
    pub(super) fn retire_user(&mut self, index: u32) -> bool {
        let user = &self.users[index as usize];
        match user.phase {
            Phase::Thinking => self.recorder.cycle(user.since_ns, self.now_ns),
            // Late to start and due to end at once: counted as having been there for no time.
            Phase::Waiting => self.recorder.user_came(self.now_ns),
            Phase::BackingOff | Phase::Idling => {}
            _ => return false,
        }
        self.end_user(index);
        true
    }
}
