//! The ramp-down of a closed load: from the last to the first, users end at times that follow from their numbers. A user whose request is
//! under way ends after the answer.

use super::Worker;
use crate::job::Job;
use crate::net::Driver;
use crate::pace::arrivals::Share;
use crate::user::Phase;

/// See the module.
pub(super) struct Retirement {
    /// Users of this thread below this index may go on.
    keep: u32,
    next_ns: u64,
}

impl Retirement {
    pub(super) fn new(job: &Job, place: Share, users: usize, start_ns: u64) -> Self {
        let mut retirement = Self {
            keep: users as u32,
            next_ns: u64::MAX,
        };
        retirement.settle(job, place, start_ns);
        retirement
    }

    fn settle(&mut self, job: &Job, place: Share, start_ns: u64) {
        self.next_ns = match (job.after_ns, self.keep.checked_sub(1)) {
            (Some(after_ns), Some(last)) if job.ramp_down.span_ns > 0 => {
                let number = last * place.threads as u32 + place.thread as u32;
                start_ns.saturating_add(job.ramp_down.end_ns(number, job.users, after_ns))
            }
            _ => u64::MAX,
        };
    }

    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Whether this user is to end at the next occasion.
    #[inline]
    pub(super) fn has_come(&self, index: u32) -> bool {
        index >= self.keep
    }
}

impl<D: Driver> Worker<'_, D> {
    /// Ends the users whose time has come.
    pub(super) fn retire(&mut self) {
        while self.retirement.next_ns <= self.now_ns && !self.stopped {
            self.retirement.keep -= 1;
            let index = self.retirement.keep;
            let place = Share {
                thread: self.post.thread,
                threads: self.post.threads,
            };
            self.retirement.settle(&self.job, place, self.start_ns);
            let user = &self.users[index as usize];
            match user.phase {
                Phase::Thinking => self.recorder.cycle(user.since_ns, self.now_ns),
                // Late to start and due to end at once: counted as having been there for no time.
                Phase::Waiting => self.recorder.user_came(self.now_ns),
                Phase::BackingOff | Phase::Idling => {}
                _ => continue,
            }
            self.end_user(index);
        }
    }
}
