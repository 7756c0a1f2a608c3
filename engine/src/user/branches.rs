//! Branches that a user walks side by side. The first free one is walked on the user's own connection,
//! the others on its *lanes*: places like those of users, each with a connection, a step and a request
//! of its own, and with the user's values. The user goes on when all branches have ended. A load
//! without such blocks has no lanes.

use super::phase::{Move, Phase};
use super::values::{Following, UserValues};
use super::{Action, Context, Next, Users};
use crate::scenario::fork::{Branches, Fork, Forked};
use crate::scenario::program::{Cursor, Program, text_of};
use crate::scenario::vars::Vars;

/// How the branches of a fork came to their end.
pub(super) struct Joined {
    sent: bool,
    breaks: bool,
    ends: bool,
    until_ns: u64,
}

impl UserValues {
    /// The fork that a user is in, asked for by its own place or by a lane.
    fn forked(&mut self, user: u32) -> Option<&mut Forked> {
        self.users.get_mut(user as usize)?.forked.as_deref_mut()
    }

    /// A user comes to a fork: it goes on with the first branch, and as many lanes as there are others
    /// for go on with those.
    pub(super) fn fork(
        &mut self,
        user: u32,
        program: &Program,
        number: usize,
        (cursor, vars): (&mut Cursor, &mut Vars),
    ) {
        let fork = &program.forks[number];
        let count = match &fork.branches {
            Branches::Steps(entries) => entries.len(),
            Branches::Each { list, .. } => cursor.list(*list).len(),
        };
        let before = fork.sets.iter().map(|slot| vars.captured[*slot].clone());
        let mut forked = Forked::new(number, count, before.collect());
        forked.lanes = count.min(fork.at_once as usize).saturating_sub(1) as u32;
        forked.beside = forked.lanes;
        let lanes = (1..=forked.lanes).map(|lane| user + lane * self.count);
        self.ready.extend(lanes);
        match forked.take() {
            None => cursor.go_to(fork.after),
            Some(branch) => {
                let element = element(fork, cursor, branch);
                begin(fork, branch, element, (cursor, vars));
                self.users[user as usize].branch = branch as u32;
                self.users[user as usize].forked = Some(Box::new(forked));
            }
        }
    }

    /// A branch was walked to its end: on to the next; what follows when there is none. A user whose
    /// branches have all ended goes on behind them.
    pub(super) fn next_branch(
        &mut self,
        (index, user): (u32, u32),
        program: &Program,
        (cursor, vars): (&mut Cursor, &mut Vars),
        now_ns: u64,
    ) -> Option<Following> {
        let pause_ns = self.passed.pause_ns;
        let Some(forked) = self.forked(user) else {
            return Some(Following::Stuck);
        };
        let fork = &program.forks[forked.fork];
        if let Some(branch) = forked.take() {
            let element = if index == user {
                element(fork, cursor, branch)
            } else {
                let own = self.users[user as usize].cursor.as_deref();
                own.and_then(|own| element(fork, own, branch))
            };
            begin(fork, branch, element, (cursor, vars));
            self.users[index as usize].branch = branch as u32;
            return None;
        }
        forked.until_ns = forked.until_ns.max(now_ns + pause_ns);
        self.passed.pause_ns = 0;
        if index != user || self.forked(user).is_some_and(|forked| forked.beside > 0) {
            return Some(Following::BranchEnded);
        }
        let joined = self.join(user, fork, (cursor, vars))?;
        self.passed.pause_ns = joined.until_ns.saturating_sub(now_ns);
        if joined.ends {
            Some(Following::Stuck)
        } else {
            joined.breaks.then_some(Following::Broken)
        }
    }

    /// All branches of a user have ended: what they set is the user's, and it goes on behind them.
    fn join(
        &mut self,
        user: u32,
        fork: &Fork,
        (cursor, vars): (&mut Cursor, &mut Vars),
    ) -> Option<Joined> {
        let forked = self.users[user as usize].forked.take()?;
        for lane in (1..=forked.lanes).map(|lane| user + lane * self.count) {
            let captured = &mut self.users[lane as usize].captured;
            for (slot, before) in fork.sets.iter().zip(&forked.before) {
                if let Some(value) = captured.get_mut(*slot)
                    && value != before
                {
                    vars.captured[*slot] = value.take();
                }
            }
        }
        cursor.go_to(fork.after);
        if forked.sent {
            cursor.has_sent();
        }
        Some(Joined {
            sent: forked.sent,
            breaks: forked.breaks,
            ends: forked.ends,
            until_ns: forked.until_ns,
        })
    }

    /// The same of a user who has waited for its lanes.
    fn join_waiting(&mut self, program: &Program, user: u32) -> Option<Joined> {
        let fork = &program.forks[self.forked(user)?.fork];
        let state = &mut self.users[user as usize];
        let (mut cursor, mut vars) = (state.cursor.take()?, state.vars.take()?);
        let joined = self.join(user, fork, (&mut cursor, &mut vars));
        let state = &mut self.users[user as usize];
        (state.cursor, state.vars) = (Some(cursor), Some(vars));
        joined
    }

    /// A lane begins with the next branch of its user; false when none is left.
    fn begin_lane(&mut self, program: &Program, (index, user): (u32, u32)) -> bool {
        let Some(forked) = self.forked(user) else {
            return false;
        };
        let fork = &program.forks[forked.fork];
        let Some(branch) = forked.take() else {
            return false;
        };
        let lane = &mut self.users[index as usize];
        let mut cursor = lane
            .cursor
            .take()
            .unwrap_or_else(|| Box::new(Cursor::new(program)));
        let mut captured = std::mem::take(&mut lane.captured);
        let own = &mut self.users[user as usize];
        let (Some(own_cursor), Some(vars)) = (own.cursor.as_deref(), own.vars.as_deref_mut())
        else {
            return false;
        };
        cursor.follow(own_cursor);
        captured.clone_from(&vars.captured);
        let element = element(fork, own_cursor, branch);
        std::mem::swap(&mut vars.captured, &mut captured);
        begin(fork, branch, element, (&mut cursor, vars));
        std::mem::swap(&mut vars.captured, &mut captured);
        let lane = &mut self.users[index as usize];
        lane.cursor = Some(cursor);
        lane.captured = captured;
        lane.branch = branch as u32;
        true
    }

    /// Before and after a lane acts: the user's values are then those of the lane's branch.
    fn exchange(&mut self, index: u32) {
        let user = self.user(index) as usize;
        let mut captured = std::mem::take(&mut self.users[index as usize].captured);
        if let Some(vars) = &mut self.users[user].vars {
            std::mem::swap(&mut vars.captured, &mut captured);
        }
        self.users[index as usize].captured = captured;
    }

    /// Forgets the fork that a user is in.
    fn leave_fork(&mut self, user: u32) {
        self.users[user as usize].forked = None;
    }

    /// The branch of which a request at this place is, if of any.
    pub(super) fn branch(&self, index: u32) -> Option<u32> {
        let user = self.users.get(self.user(index) as usize)?;
        user.forked.as_ref()?;
        Some(self.users[index as usize].branch)
    }

    /// Somebody of a user sends a request.
    pub(super) fn sends(&mut self, user: u32) {
        if let Some(forked) = self.forked(user) {
            forked.sent = true;
        }
    }
}

impl Users {
    /// Whether a place is the lane of a user.
    #[inline]
    pub(super) fn is_lane(&self, index: u32) -> bool {
        self.values.user(index) != index
    }

    /// Does something for a lane, with the values of its branch.
    pub(super) fn on_lane<T>(&mut self, index: u32, act: impl FnOnce(&mut Self) -> T) -> T {
        self.values.exchange(index);
        let done = act(self);
        self.values.exchange(index);
        done
    }

    /// Who can go on since branches have begun or ended; to be handed to [`Self::go_on`].
    #[inline]
    pub fn next_ready(&mut self) -> Option<u32> {
        self.values.ready.pop()
    }

    /// A lane begins with a branch, or a user whose branches have ended goes on behind them.
    pub fn go_on(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let job = std::sync::Arc::clone(&self.job);
        let Some(program) = &job.scenarios.program else {
            return Action::STAY;
        };
        if self.is_lane(index) {
            self.intend(index, cx.now_ns);
            let user = self.values.user(index);
            if !self.values.begin_lane(program, (index, user)) {
                self.branch_ended(index);
                return Action::STAY;
            }
            return self.on_lane(index, |users| {
                let before = users.all[index as usize].step;
                let moved = users.move_on_in_program(index, before, cx);
                users.go(index, moved, cx)
            });
        }
        let Some(joined) = self.values.join_waiting(program, index) else {
            return Action::STAY;
        };
        let pause_ns = joined.until_ns.saturating_sub(cx.now_ns);
        let before = self.all[index as usize].step;
        if joined.ends {
            return self.end_user(index, cx);
        }
        if !joined.sent {
            // Another round might send nothing either.
            return self.idle(index, pause_ns, cx);
        }
        let moved = if joined.breaks {
            self.break_off(index, before, cx)
        } else {
            self.values.passed.pause_ns = pause_ns;
            self.move_on_in_program(index, before, cx)
        };
        self.proceed(index, before, moved, cx)
    }

    /// Nobody walks a branch at this place any more.
    pub(super) fn rest(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        self.redirects.drop(index);
        let phase = if self.is_lane(index) {
            Phase::Resting
        } else {
            Phase::Joining
        };
        self.all[index as usize].enter(phase, cx.now_ns, &mut cx.record.recorder);
        self.branch_ended(index);
        Action::next(Next::Stay)
    }

    fn branch_ended(&mut self, index: u32) {
        let user = self.values.user(index);
        let Some(forked) = self.values.forked(user) else {
            return;
        };
        if index == user {
            forked.waits = true;
        } else {
            forked.beside -= 1;
        }
        if forked.waits && forked.beside == 0 {
            self.values.ready.push(user);
        }
    }

    /// The iteration is broken off within a branch: no further one begins, and those that have begun
    /// end. `None`: there is no branch, or no other than this one.
    pub(super) fn break_branches(&mut self, index: u32, ends: bool) -> Option<Move> {
        let user = self.values.user(index);
        let forked = self.values.forked(user)?;
        forked.breaks = true;
        forked.ends |= ends;
        forked.begin_no_more();
        if index == user && forked.beside == 0 {
            self.values.leave_fork(user);
            return None;
        }
        Some(Move::BranchEnded)
    }

    /// The lanes of a user.
    pub(super) fn lanes(&self, user: u32) -> impl Iterator<Item = u32> + use<> {
        let count = self.values.count;
        (user + count..self.all.len() as u32).step_by(count.max(1) as usize)
    }
}

/// The element that a branch of a fork is for.
fn element(fork: &Fork, cursor: &Cursor, branch: usize) -> Option<Vec<u8>> {
    let Branches::Each { list, as_json, .. } = &fork.branches else {
        return None;
    };
    let element = cursor.list(*list).get(branch)?;
    Some(text_of(element, *as_json))
}

/// Goes to the begin of a branch.
fn begin(
    fork: &Fork,
    branch: usize,
    text: Option<Vec<u8>>,
    (cursor, vars): (&mut Cursor, &mut Vars),
) {
    match &fork.branches {
        Branches::Steps(entries) => cursor.go_to(entries[branch]),
        Branches::Each { element, entry, .. } => {
            if let (Some(slot), Some(text)) = (element, text) {
                vars.set(*slot, text);
            }
            cursor.go_to(*entry);
        }
    }
}
