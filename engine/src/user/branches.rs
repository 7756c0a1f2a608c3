//! Branches that a user walks in parallel. The first is walked on the user's own connection, the others on
//! its *lanes*: places like those of users, each with a connection, a step and a request of its own, and with
//! the user's values. The user goes on when all branches have ended. A load without such blocks has no lanes.

use super::moves::Move;
use super::phase::Phase;
use super::values::UserValues;
use super::{Action, Context, Users};
use crate::scenario::fork::{Branches, Fork, Forked};
use crate::scenario::program::{Cursor, Program, text_of};
use crate::scenario::vars::Vars;

impl UserValues {
    /// The fork that a user is in, asked for by its own place or by a lane.
    fn forked(&mut self, user: u32) -> Option<&mut Forked> {
        self.users.get_mut(user as usize)?.forked.as_deref_mut()
    }

    /// A user comes to a fork: it goes on with the first branch, and lanes with the others.
    pub(super) fn fork(
        &mut self,
        user: u32,
        program: &Program,
        number: usize,
        (cursor, vars): (&mut Cursor, &mut Vars),
        now_ns: u64,
    ) {
        let fork = &program.forks[number];
        let count = match &fork.branches {
            Branches::Steps(entries) => entries.len(),
            Branches::Each { list, .. } => cursor.list(*list).len(),
        };
        let mut forked = Forked::new(number, fork, count, &vars.captured);
        forked.open = cursor.open_transactions();
        forked.from_ns = now_ns.saturating_add(self.passed.pause_ns);
        let lanes = (1..=forked.lanes).map(|lane| user + lane * self.count);
        self.ready.extend(lanes);
        let Some(branch) = forked.take() else {
            return cursor.go_to(fork.after);
        };
        let element = element(fork, cursor, branch);
        enter_branch(fork, &forked, branch, element, (cursor, vars));
        let own = &mut self.users[user as usize];
        own.branch = branch as u32;
        own.forked = Some(Box::new(forked));
    }

    /// A branch was walked to its end: on to the next, or behind the block. Else what follows.
    pub(super) fn next_branch(
        &mut self,
        (index, user): (u32, u32),
        program: &Program,
        (cursor, vars): (&mut Cursor, &mut Vars),
    ) -> Option<Move> {
        let Some(mut forked) = self.users[user as usize].forked.take() else {
            return Some(Move::Stuck);
        };
        let fork = &program.forks[forked.fork];
        forked.keep(fork, &vars.captured);
        let Some(branch) = forked.take() else {
            if forked.lanes == 0 {
                join(*forked, fork, (cursor, vars));
                return None;
            }
            self.users[user as usize].forked = Some(forked);
            return Some(Move::BranchEnded { pause_ns: 0 });
        };
        let element = if index == user {
            element(fork, cursor, branch)
        } else {
            let own = self.users[user as usize].cursor.as_deref();
            own.and_then(|own| element(fork, own, branch))
        };
        enter_branch(fork, &forked, branch, element, (cursor, vars));
        self.users[index as usize].branch = branch as u32;
        self.users[user as usize].forked = Some(forked);
        None
    }

    /// All branches of a user have ended: what they have set is the user's, and it goes on behind them.
    fn join(&mut self, program: &Program, user: u32) -> Option<Forked> {
        let state = &mut self.users[user as usize];
        let forked = *state.forked.take()?;
        let (cursor, vars) = (state.cursor.as_deref_mut()?, state.vars.as_deref_mut()?);
        let fork = &program.forks[forked.fork];
        Some(join(forked, fork, (cursor, vars)))
    }

    /// A lane starts with the next branch of its user; false when none is left.
    fn start_lane(&mut self, program: &Program, (index, user): (u32, u32)) -> bool {
        let Some(mut forked) = self.users[user as usize].forked.take() else {
            return false;
        };
        let fork = &program.forks[forked.fork];
        let branch = forked.take();
        if let Some(branch) = branch {
            let lane = &mut self.users[index as usize];
            lane.branch = branch as u32;
            let mut cursor = lane
                .cursor
                .take()
                .unwrap_or_else(|| Box::new(Cursor::new(program)));
            let mut captured = std::mem::take(&mut lane.captured);
            let own = &mut self.users[user as usize];
            if let (Some(own_cursor), Some(vars)) = (&own.cursor, &mut own.vars) {
                cursor.follow(own_cursor);
                captured.clone_from(&vars.captured);
                std::mem::swap(&mut vars.captured, &mut captured);
                let element = element(fork, own_cursor, branch);
                enter_branch(fork, &forked, branch, element, (&mut cursor, vars));
                std::mem::swap(&mut vars.captured, &mut captured);
            }
            let lane = &mut self.users[index as usize];
            lane.cursor = Some(cursor);
            lane.captured = captured;
        }
        self.users[user as usize].forked = Some(forked);
        branch.is_some()
    }

    /// Before and after a lane acts: the user's values are then those of the lane's branch.
    fn exchange(&mut self, program: &Program, index: u32) {
        let user = self.user(index) as usize;
        let (users, lanes) = self.users.split_at_mut(self.count as usize);
        let lane = &mut lanes[index as usize - users.len()];
        let own = &mut users[user];
        if let Some(vars) = &mut own.vars {
            std::mem::swap(&mut vars.captured, &mut lane.captured);
        }
        if let (Some(counted), Some(cursor)) = (&mut own.cursor, &mut lane.cursor) {
            cursor.exchange_counts(program, counted);
        }
    }

    /// Whether it is the second block in a row in which nothing was sent: a circle.
    fn turns_in_a_circle(&self, user: u32) -> bool {
        let cursor = &self.users[user as usize].cursor;
        cursor.as_ref().is_some_and(|cursor| cursor.idle_forks > 1)
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

    /// A request at this place ended, after so long: its time belongs to all transactions around it.
    #[inline]
    pub(super) fn spend(&mut self, index: u32, service_ns: u64, failed: bool) {
        let Some(place) = self.users.get_mut(index as usize) else {
            return;
        };
        if let Some(cursor) = &mut place.cursor {
            cursor.spend(usize::MAX, service_ns, failed);
        }
        let user = self.user(index);
        if user != index {
            let own = &mut self.users[user as usize];
            if let (Some(cursor), Some(forked)) = (&mut own.cursor, &own.forked) {
                cursor.spend(forked.open, service_ns, failed);
            }
        }
    }
}

impl Users {
    /// Whether a place is the lane of a user.
    #[inline]
    pub(super) fn is_lane(&self, index: u32) -> bool {
        self.values.user(index) != index
    }

    /// The lanes of a user.
    pub(super) fn lanes(&self, user: u32) -> impl Iterator<Item = u32> + use<> {
        let count = self.values.count;
        (user + count..self.all.len() as u32).step_by(count.max(1) as usize)
    }

    /// Does something for a lane, with the values of its branch.
    pub(super) fn on_lane<T>(&mut self, index: u32, act: impl FnOnce(&mut Self) -> T) -> T {
        self.exchange(index);
        let done = act(self);
        self.exchange(index);
        done
    }

    fn exchange(&mut self, index: u32) {
        if let Some(program) = &self.job.scenarios.program {
            self.values.exchange(program, index);
        }
    }

    /// Who is to act since branches have started or ended; to be handed to [`Self::on_ready`].
    #[inline]
    pub fn next_ready(&mut self) -> Option<u32> {
        self.values.ready.pop()
    }

    /// A lane starts with a branch, or a user whose branches have ended goes on behind them.
    pub fn on_ready(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.is_lane(index) {
            return self.start_branch(index, cx);
        }
        let program = self.job.scenarios.program.as_ref();
        let Some(joined) = program.and_then(|program| self.values.join(program, index)) else {
            return Action::Stay;
        };
        if joined.ends {
            return self.end(index, cx);
        }
        let pause_ns = joined.until_ns.saturating_sub(cx.now_ns);
        let before = self.all[index as usize].step;
        if !joined.breaks && self.values.turns_in_a_circle(index) {
            return self.idle(index, pause_ns, cx);
        }
        self.values.passed.pause_ns = pause_ns;
        let moved = if joined.breaks {
            self.next_iteration(index, before, Move::Stuck, cx)
        } else {
            self.move_in_program(index, before, cx)
        };
        self.go(index, moved, (Phase::Thinking, None), cx)
    }

    fn start_branch(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let user = self.values.user(index);
        let program = self.job.scenarios.program.as_ref();
        let starts = program.is_some_and(|program| self.values.start_lane(program, (index, user)));
        let from_ns = self.values.forked(user).map_or(0, |forked| forked.from_ns);
        if !starts {
            return self.await_branches(index, cx.now_ns, cx);
        }
        self.intend(index, cx.now_ns.max(from_ns));
        self.values.passed.pause_ns = from_ns.saturating_sub(cx.now_ns);
        self.on_lane(index, |users| {
            let before = users.all[index as usize].step;
            let moved = users.move_in_program(index, before, cx);
            users.go(index, moved, (Phase::Thinking, None), cx)
        })
    }

    /// Whether users have lanes.
    #[inline]
    pub(super) fn has_lanes(&self) -> bool {
        self.all.len() > self.values.count as usize
    }

    /// The user has just come to a block, after a think time: its lanes wait for that, too.
    #[inline]
    pub(super) fn lanes_think(&mut self, index: u32, think_ns: u64) {
        if self.has_lanes()
            && let Some(forked) = self.values.forked(index)
            && std::mem::take(&mut forked.fresh)
        {
            forked.from_ns = forked.from_ns.saturating_add(think_ns);
        }
    }

    /// Nobody walks a branch at this place any more; the user does not go on before that time.
    pub(super) fn await_branches(
        &mut self,
        index: u32,
        until_ns: u64,
        cx: &mut Context<'_>,
    ) -> Action {
        self.redirects.drop(index);
        let user = self.values.user(index);
        let phase = if index == user {
            Phase::Joining
        } else {
            Phase::Spare
        };
        self.enter(index, phase, cx);
        if let Some(forked) = self.values.forked(user) {
            forked.until_ns = forked.until_ns.max(until_ns);
            if index == user {
                forked.waits = true;
            } else {
                forked.beside -= 1;
            }
            if forked.waits && forked.beside == 0 {
                self.values.ready.push(user);
            }
        }
        Action::Stay
    }

    /// The iteration is broken off within a branch: no further one begins, and those that have begun
    /// end. `None`: there is no branch, or no other than this one.
    pub(super) fn break_branches(&mut self, index: u32, ends: bool) -> Option<Move> {
        let user = self.values.user(index);
        let program = self.job.scenarios.program.as_ref()?;
        let own = self.values.users.get_mut(user as usize)?;
        let (forked, vars) = (own.forked.as_deref_mut()?, own.vars.as_deref()?);
        forked.keep(&program.forks[forked.fork], &vars.captured);
        forked.breaks = true;
        forked.ends |= ends;
        forked.take_no_more();
        if forked.lanes == 0 {
            self.values.join(program, user);
            return None;
        }
        Some(Move::BranchEnded { pause_ns: 0 })
    }
}

/// What follows a block whose branches have all ended.
fn join(mut forked: Forked, fork: &Fork, (cursor, vars): (&mut Cursor, &mut Vars)) -> Forked {
    forked.submit(fork, &mut vars.captured);
    cursor.go_to(fork.after);
    cursor.joins(forked.sent);
    forked
}

/// The element that a branch of a fork is for.
fn element(fork: &Fork, cursor: &Cursor, branch: usize) -> Option<Vec<u8>> {
    let Branches::Each { list, as_json, .. } = &fork.branches else {
        return None;
    };
    let element = cursor.list(*list).get(branch)?;
    Some(text_of(element, *as_json))
}

/// Goes to the begin of a branch, with the values from before the block.
fn enter_branch(
    fork: &Fork,
    forked: &Forked,
    branch: usize,
    text: Option<Vec<u8>>,
    (cursor, vars): (&mut Cursor, &mut Vars),
) {
    forked.restore(fork, &mut vars.captured);
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
