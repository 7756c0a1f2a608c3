//! Users of a closed load who halt between turns, with their connections open.

use std::collections::VecDeque;

use super::phase::Phase;
use super::{Action, Context, Users};

#[derive(Debug, Default)]
pub(super) struct Halted {
    /// A user that comes to its next request halts.
    pub(super) halts: bool,
    /// Those who halt, or are still to resume, by when they came.
    users: VecDeque<u32>,
}

impl Users {
    pub fn halt_all(&mut self, halts: bool) {
        self.halted.halts = halts;
    }

    /// Whether somebody has halted and is to resume.
    pub fn any_resumes(&self) -> bool {
        !self.halted.halts && !self.halted.users.is_empty()
    }

    /// The next of them, to be handed to [`Self::resume`].
    #[inline]
    pub fn next_resumed(&mut self) -> Option<u32> {
        match self.halted.halts {
            true => None,
            false => self.halted.users.pop_front(),
        }
    }

    /// A user starts the request at which it halted, unless it has ended meanwhile.
    pub fn resume(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.all[index as usize].phase != Phase::Halted {
            return Action::Stay;
        }
        if self.is_lane(index) {
            return self.on_lane(index, |users| users.start_request(index, cx));
        }
        self.start_request(index, cx)
    }

    /// A user comes to its next request while all halt.
    #[cold]
    pub(super) fn halt(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        self.enter(index, Phase::Halted, cx);
        self.halted.users.push_back(index);
        Action::Stay
    }
}
