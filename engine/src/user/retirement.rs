//! Users of a closed load who end at times that follow from their numbers: those of a ramp-down,
//! from the last to the first, and those of a population whose time is over. A user whose request
//! is under way ends after the response.

use std::ops::Range;

use super::phase::Phase;
use super::{Action, Context, Users};
use crate::job::Job;
use crate::pace::share::Share;

/// Who ends, and when.
#[derive(Debug)]
pub(super) struct Retirement {
    start_ns: u64,
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
    pub(super) fn new(job: &Job, place: &Share, users: usize, start_ns: u64) -> Self {
        let mut ends = job.populations.ends_in(place);
        for (end_ns, _) in &mut ends {
            *end_ns = end_ns.saturating_add(start_ns);
        }
        let mut retirement = Self {
            start_ns,
            keep: users as u32,
            ramp_ns: u64::MAX,
            ends,
            gone: Vec::new(),
            sweep: 0..0,
        };
        retirement.settle(job, place);
        retirement
    }

    fn settle(&mut self, job: &Job, place: &Share) {
        self.ramp_ns = match (job.after_ns, self.keep.checked_sub(1)) {
            (Some(after_ns), Some(last)) if job.ramp_down.span_ns > 0 => {
                let number = place.number(last.into()) as u32;
                let end_ns = job.ramp_down.end_ns(number, job.users, after_ns);
                self.start_ns.saturating_add(end_ns)
            }
            _ => u64::MAX,
        };
    }

    /// Whether this user is to end at the next occasion.
    #[inline]
    pub(super) fn has_come(&self, index: u32) -> bool {
        index >= self.keep || self.gone.iter().any(|users| users.contains(&index))
    }
}

fn waits_for_its_time(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Thinking | Phase::BackingOff | Phase::Idling | Phase::Halted
    )
}

impl Users {
    /// When the next user ends.
    pub fn next_retirement_ns(&self) -> u64 {
        let retirement = &self.retirement;
        if !retirement.sweep.is_empty() {
            return 0;
        }
        let end_ns = retirement.ends.last().map_or(u64::MAX, |end| end.0);
        retirement.ramp_ns.min(end_ns)
    }

    /// A user whose time has come; to be handed to [`Self::retire`].
    #[inline]
    pub fn next_retired(&mut self, now_ns: u64) -> Option<u32> {
        let retirement = &mut self.retirement;
        if retirement.ramp_ns <= now_ns {
            retirement.keep -= 1;
            let index = retirement.keep;
            retirement.settle(&self.job, &self.place);
            return Some(index);
        }
        if retirement.sweep.is_empty() {
            let (_, users) = retirement.ends.pop_if(|end| end.0 <= now_ns)?;
            retirement.gone.push(users.clone());
            retirement.sweep = users;
        }
        retirement.sweep.next()
    }

    /// Ends a user who waits for nothing but its time; `None` for one with a request under way.
    pub fn retire(&mut self, index: u32, cx: &mut Context<'_>) -> Option<Action> {
        if self.has_lanes() && !self.is_lane(index) {
            for lane in self.lanes(index) {
                let phase = self.all[lane as usize].phase;
                if waits_for_its_time(phase) {
                    let _ = self.on_lane(lane, |users| users.end(lane, cx));
                }
            }
        }
        let user = &self.all[index as usize];
        match user.phase {
            // Late to start and due to end at once: counted as having been there for no time.
            Phase::Waiting => cx.record.recorder.user_came(cx.now_ns),
            phase if waits_for_its_time(phase) => {}
            // It ends when its branches have.
            Phase::Joining => return Some(Action::Stay),
            _ => return None,
        }
        Some(self.end(index, cx))
    }
}
