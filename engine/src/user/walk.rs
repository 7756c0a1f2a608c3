//! How a user goes through its scenario: it arrives, begins a request, thinks, goes on, ends.

use super::phase::{Move, Phase};
use super::{Action, Context, Next, Users};
use crate::fault::Fault;
use crate::measure::counters::ErrorKind;

/// Between iterations that send nothing.
const SHORTEST_IDLE_NS: u64 = 1_000_000;

impl Users {
    /// Takes the place of one request in the total; false when none is left.
    #[inline]
    pub fn may_send(&mut self) -> bool {
        self.allowance.take(&self.job.quota)
    }

    /// A user arrives at a place of an open load, due at that time, with its place in the quota.
    pub fn arrive(&mut self, index: u32, due_ns: u64, cx: &mut Context<'_>) -> Action {
        self.intend(index, due_ns);
        if let Some(open) = &mut self.open
            && let Some(arrived_ns) = open.arrived_ns.get_mut(index as usize)
        {
            *arrived_ns = due_ns;
            cx.record.recorder.figures.counters.sessions_begun += 1;
        }
        self.all[index as usize].iterations = 0;
        // Never without a row: a checked open load has no feeder that ends.
        let moved = self.set_out(index, cx);
        cx.record.recorder.user_came(cx.now_ns);
        self.alive += 1;
        let Move::To { step, pause_ns } = moved else {
            // No block of it has sent anything: an arrival, but not of a request.
            self.allowance.give_back();
            let counters = &mut cx.record.recorder.figures.counters;
            counters.offered = counters.offered.saturating_sub(1);
            if let Move::BranchEnded { pause_ns } = moved {
                let closes = self.gives_up_warming(index, cx.record);
                let until_ns = cx.now_ns.saturating_add(pause_ns);
                return self.rest(index, until_ns, cx).closing(closes);
            }
            if moved != Move::Stuck {
                self.walked(index, cx);
            }
            return self.leave(index, cx);
        };
        self.all[index as usize].step = step;
        if pause_ns == 0 {
            return self.begin(index, cx);
        }
        let begin_ns = due_ns.saturating_add(pause_ns);
        self.intend(index, begin_ns);
        // The timer is that of the pause: an attempt to connect that is under way, which needs it
        // too, is given up.
        let closes = self.gives_up_warming(index, cx.record);
        self.all[index as usize].enter(Phase::Holding, cx.now_ns, &mut cx.record.recorder);
        Action::next(Next::WaitUntil(begin_ns.max(cx.now_ns))).closing(closes)
    }

    #[inline]
    pub(super) fn begin_request(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.halted.rests {
            return self.halt(index, cx);
        }
        if !self.may_send() {
            return self.end_user(index, cx);
        }
        if self.open.is_some() {
            cx.record.recorder.figures.counters.offered += 1;
        }
        self.begin(index, cx)
    }

    /// Begins a request that has its place in the quota.
    #[inline]
    fn begin(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let gives_up = self.turn_to_server(index, cx.record);
        let user = &mut self.all[index as usize];
        user.begin();
        if user.connected {
            user.enter(Phase::Queued, cx.now_ns, &mut cx.record.recorder);
            return Action::next(Next::Send).closing(gives_up);
        }
        self.connect(index, cx).closing(gives_up)
    }

    /// After a request: on to the next, thinking first where users think. `breaks_off`: the rest of
    /// the iteration is left out.
    #[inline]
    pub(super) fn advance(&mut self, index: u32, breaks_off: bool, cx: &mut Context<'_>) -> Action {
        let before = self.all[index as usize].step;
        if self.surroundings.faults.has(Fault::VanishingUsers) && index % 10 == 9 {
            self.all[index as usize].enter(Phase::Ended, cx.now_ns, &mut cx.record.recorder);
            return Action::STAY;
        }
        let decided = match &mut self.queues {
            None => None,
            Some(queues) => queues.take_ahead(index),
        };
        let moved = match decided {
            Some(decided) if !breaks_off => decided,
            _ => self.move_on(index, breaks_off, cx),
        };
        self.proceed(index, Some(before), moved, cx)
    }

    /// On to what was decided to come next, thinking first as after a request of that step.
    #[inline]
    pub(super) fn proceed(
        &mut self,
        index: u32,
        before: Option<u16>,
        moved: Move,
        cx: &mut Context<'_>,
    ) -> Action {
        let (step, pause_ns) = match moved {
            Move::To { step, pause_ns } | Move::Later { step, pause_ns } => (step, pause_ns),
            Move::Walked => {
                self.walked(index, cx);
                return self.end_user(index, cx);
            }
            Move::BranchEnded { pause_ns } => {
                let think_ns = self.draw_think(before).unwrap_or(0);
                self.lanes_think(index, think_ns);
                let until_ns = cx.now_ns.saturating_add(think_ns).saturating_add(pause_ns);
                return self.rest(index, until_ns, cx);
            }
            Move::Stuck | Move::Waits => return self.end_user(index, cx),
        };
        if self.retirement.has_come(self.values.user(index)) {
            return self.end_user(index, cx);
        }
        self.all[index as usize].step = step;
        let delay_ns = match self.job.script {
            None => None,
            Some(_) => self.script_delay_ns(index, cx.record),
        };
        let think_ns = match delay_ns {
            None => self.draw_think(before),
            delay_ns => delay_ns,
        };
        self.lanes_think(index, think_ns.unwrap_or(0));
        if matches!(moved, Move::Later { .. }) {
            return self.idle(index, think_ns.unwrap_or(0) + pause_ns, cx);
        }
        let waits_ns = think_ns.unwrap_or(0).saturating_add(pause_ns);
        let due_ns = cx.now_ns.saturating_add(waits_ns);
        self.intend(index, due_ns);
        if think_ns.is_none() && pause_ns == 0 {
            return self.begin_request(index, cx);
        }
        self.think(index, due_ns, cx)
    }

    /// The think time after a request of that step.
    #[inline]
    fn draw_think(&mut self, step: Option<u16>) -> Option<u64> {
        self.job.steps[usize::from(step?)].think.draw(&mut self.rng)
    }

    fn think(&mut self, index: u32, due_ns: u64, cx: &mut Context<'_>) -> Action {
        self.all[index as usize].enter(Phase::Thinking, cx.now_ns, &mut cx.record.recorder);
        Action::next(Next::WaitUntil(due_ns))
    }

    /// A user goes on with its scenario after a pause, and after a moment at least: it would turn
    /// in a circle else.
    pub(super) fn idle(&mut self, index: u32, pause_ns: u64, cx: &mut Context<'_>) -> Action {
        self.all[index as usize].enter(Phase::Idling, cx.now_ns, &mut cx.record.recorder);
        let due_ns = cx.now_ns.saturating_add(pause_ns.max(SHORTEST_IDLE_NS));
        Action::next(Next::WaitUntil(due_ns))
    }

    /// A user who has just come, or comes back from idling, goes to its first request.
    pub(super) fn go(&mut self, index: u32, moved: Move, cx: &mut Context<'_>) -> Action {
        if self.retirement.has_come(self.values.user(index)) {
            return self.end_user(index, cx);
        }
        match moved {
            Move::BranchEnded { pause_ns } => {
                let until_ns = cx.now_ns.saturating_add(pause_ns);
                self.rest(index, until_ns, cx)
            }
            Move::Walked => {
                self.walked(index, cx);
                self.end_user(index, cx)
            }
            Move::Stuck | Move::Waits => self.end_user(index, cx),
            Move::Later { step, pause_ns } => {
                self.all[index as usize].step = step;
                self.idle(index, pause_ns, cx)
            }
            Move::To { step, pause_ns } => {
                self.all[index as usize].step = step;
                let delay_ns = match self.job.script {
                    Some(_) => self.script_delay_ns(index, cx.record).unwrap_or(0),
                    None => 0,
                };
                match delay_ns.saturating_add(pause_ns) {
                    0 => self.begin_request(index, cx),
                    waits_ns => self.think(index, cx.now_ns.saturating_add(waits_ns), cx),
                }
            }
        }
    }

    /// The user at a place has walked its scenario to the end.
    fn walked(&mut self, index: u32, cx: &mut Context<'_>) {
        if let Some(open) = &self.open
            && let Some(arrived_ns) = open.arrived_ns.get(index as usize)
        {
            cx.record.recorder.figures.counters.sessions_completed += 1;
            let session_ns = cx.now_ns.saturating_sub(*arrived_ns);
            cx.record
                .recorder
                .figures
                .open_load
                .session_time
                .record(session_ns);
        }
    }

    pub(super) fn on_timer(&mut self, index: u32, due_ns: u64, cx: &mut Context<'_>) -> Action {
        if self.retirement.has_come(self.values.user(index))
            && let Some(action) = self.retire(index, cx)
        {
            return action;
        }
        let user = &self.all[index as usize];
        match user.phase {
            Phase::Waiting => {
                cx.record.recorder.user_came(cx.now_ns);
                let moved = self.set_out(index, cx);
                self.go(index, moved, cx)
            }
            Phase::Idling => {
                // The iteration has begun already.
                let moved = self.move_on(index, false, cx);
                self.go(index, moved, cx)
            }
            Phase::Holding => self.begin(index, cx),
            Phase::BackingOff => self.begin_request(index, cx),
            Phase::Thinking => {
                let drawn_ns = due_ns.saturating_sub(user.since_ns);
                let actual_ns = cx.now_ns.saturating_sub(user.since_ns);
                let counters = &mut cx.record.recorder.figures.counters;
                counters.think_count += 1;
                counters.think_drawn_ns += u128::from(drawn_ns);
                counters.think_actual_ns += u128::from(actual_ns);
                counters
                    .think_overshoot
                    .record(actual_ns.saturating_sub(drawn_ns));
                self.begin_request(index, cx)
            }
            Phase::Connecting | Phase::Warming => self.connect_expired(index, cx),
            Phase::Closing => self.lose_idle(index, true, cx),
            // One timer serves all requests of a connection: it is set anew only when it fires, not
            // with every request.
            Phase::InFlight => {
                let deadline_ns = user.sent_ns + self.job.request_timeout_ns;
                let deadline_ns = self.limit_ns(index, deadline_ns);
                if cx.now_ns >= deadline_ns {
                    return self.lose(index, ErrorKind::Timeout, true, cx);
                }
                Action::next(if self.holds(index) {
                    Next::SendHeld {
                        until_ns: Some(deadline_ns),
                    }
                } else {
                    Next::WaitUntil(deadline_ns)
                })
            }
            Phase::Idle
            | Phase::Queued
            | Phase::Halted
            | Phase::Joining
            | Phase::Resting
            | Phase::Ended => Action::STAY,
        }
    }

    /// The time for connecting, for the handshake, or for the request that waits for them is over.
    fn connect_expired(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let user = &self.all[index as usize];
        let waits = user.phase == Phase::Connecting;
        let connecting = cx.now_ns.saturating_sub(user.since_ns) < self.job.connect_timeout_ns;
        let securing = cx.now_ns.saturating_sub(user.sent_ns) < self.job.tls_timeout_ns;
        // Before those are over only the deadline of the request can have passed.
        if waits && connecting && (!user.securing || securing) {
            return self.fail_to_connect(index, ErrorKind::Timeout, cx);
        }
        if !user.securing {
            return self.fail_to_connect(index, ErrorKind::ConnectTimeout, cx);
        }
        let limit_ms = self.job.tls_timeout_ns / 1_000_000;
        let reason = format!("the handshake did not end within {limit_ms} ms");
        self.on_unsecured(index, reason, cx)
    }

    /// A user ends; one of an open load leaves its place to another.
    pub(super) fn end_user(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.break_branches(index, true).is_some() {
            return self.rest(index, cx.now_ns, cx);
        }
        self.redirects.drop(index);
        if let Some(queues) = &mut self.queues {
            queues.take_ahead(index);
        }
        if self.open.is_some() {
            return self.leave(index, cx);
        }
        self.close(index, true, cx.record);
        self.release(index, Phase::Ended, cx);
        Action::next(Next::End).closing(true)
    }

    fn leave(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        // A user who has sent nothing leaves a connection that is being opened as it is.
        let warming = self.all[index as usize].phase == Phase::Warming;
        let closes = self.job.per_session && !warming;
        if closes {
            self.close(index, true, cx.record);
        }
        let phase = if warming { Phase::Warming } else { Phase::Idle };
        self.release(index, phase, cx);
        Action::next(Next::Vacant { retry_ns: None }).closing(closes)
    }

    /// A user is no more.
    pub(super) fn release(&mut self, index: u32, phase: Phase, cx: &mut Context<'_>) {
        self.all[index as usize].enter(phase, cx.now_ns, &mut cx.record.recorder);
        cx.record.recorder.user_went(cx.now_ns);
        self.alive -= 1;
    }
}
