//! Users of a closed load who rest between turns: a user that is due to send waits with its
//! connection open until all go on.

use std::collections::VecDeque;

use super::phase::Phase;
use super::{Action, Context, Users};

#[derive(Debug, Default)]
pub(super) struct Halted {
    /// A user that comes to its next request rests.
    pub(super) rests: bool,
    /// Those who rest, or are still to go on, by when they came.
    users: VecDeque<u32>,
}

impl Users {
    pub fn rest_all(&mut self) {
        self.halted.rests = true;
    }

    pub fn resume_all(&mut self) {
        self.halted.rests = false;
    }

    /// Whether somebody has rested and is to go on.
    pub fn any_resumes(&self) -> bool {
        !self.halted.rests && !self.halted.users.is_empty()
    }

    /// The next of them, to be handed to [`Self::resume`].
    #[inline]
    pub fn next_resumed(&mut self) -> Option<u32> {
        if self.halted.rests {
            return None;
        }
        self.halted.users.pop_front()
    }

    /// A user goes on with the request at which it came to rest, unless it has ended meanwhile.
    pub fn resume(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.all[index as usize].phase != Phase::Halted {
            return Action::STAY;
        }
        if self.is_lane(index) {
            return self.on_lane(index, |users| users.begin_request(index, cx));
        }
        self.begin_request(index, cx)
    }

    /// A user comes to its next request while all rest.
    #[cold]
    pub(super) fn halt(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        self.all[index as usize].enter(Phase::Halted, cx.now_ns, &mut cx.record.recorder);
        self.halted.users.push_back(index);
        Action::STAY
    }
}
