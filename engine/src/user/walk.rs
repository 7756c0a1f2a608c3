//! A user's way through its scenario: it starts, goes where that leads, and ends.

use super::moves::Move;
use super::phase::Phase;
use super::{Action, Context, Users};
use crate::fault::Fault;
use crate::measure::counters::ErrorKind;
use crate::record::Record;

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
            cx.counters().sessions_begun += 1;
        }
        self.all[index as usize].iterations = 0;
        // Never without a row: a checked open load has no feeder that ends.
        let moved = self.first_move(index, cx);
        cx.record.recorder.user_came(cx.now_ns);
        self.alive += 1;
        let Move::To { step, pause_ns } = moved else {
            // No block of it has sent anything: an arrival, but not of a request.
            self.allowance.give_back();
            let counters = cx.counters();
            counters.offered = counters.offered.saturating_sub(1);
            if let Move::BranchEnded { .. } = moved {
                self.give_up_warming(index, cx.record);
            }
            return self.go(index, moved, (Phase::Thinking, None), cx);
        };
        self.all[index as usize].step = step;
        if pause_ns == 0 {
            return self.send_or_connect(index, cx);
        }
        let due_ns = due_ns.saturating_add(pause_ns);
        self.intend(index, due_ns);
        // The timer is that of the pause: an attempt to connect, which needs it too, is given up.
        self.give_up_warming(index, cx.record);
        self.enter(index, Phase::Holding, cx);
        Action::WaitUntil(due_ns.max(cx.now_ns))
    }

    /// Starts the request of a user's step, which takes a place in the quota.
    #[inline]
    pub(super) fn start_request(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.halted.halts {
            return self.halt(index, cx);
        }
        if !self.may_send() {
            return self.end(index, cx);
        }
        if self.open.is_some() {
            cx.counters().offered += 1;
        }
        self.send_or_connect(index, cx)
    }

    /// Starts a request that has its place in the quota.
    #[inline]
    fn send_or_connect(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        self.turn_to_server(index, cx.record);
        let user = &mut self.all[index as usize];
        user.start_request();
        if user.connected {
            self.enter(index, Phase::Queued, cx);
            return Action::Send;
        }
        self.connect(index, cx)
    }

    /// On after a request. `breaks_off`: the rest of the iteration is left out.
    #[inline]
    pub(super) fn go_on(&mut self, index: u32, breaks_off: bool, cx: &mut Context<'_>) -> Action {
        if self.redirects.leads(index) {
            self.intend(index, cx.now_ns);
            return self.start_request(index, cx);
        }
        let before = self.all[index as usize].step;
        if self.surroundings.faults.has(Fault::VanishingUsers) && index % 10 == 9 {
            self.enter(index, Phase::Ended, cx);
            return Action::Stay;
        }
        let decided = match &mut self.queues {
            None => None,
            Some(queues) => queues.take_ahead(index),
        };
        let moved = match decided {
            Some(decided) if !breaks_off => decided,
            _ => self.next_move(index, breaks_off, cx),
        };
        self.go(index, moved, (Phase::Thinking, Some(before)), cx)
    }

    /// Goes there, after a wait in this phase: its back-off, or the think time after the step before.
    #[inline]
    pub(super) fn go(
        &mut self,
        index: u32,
        moved: Move,
        waits: (Phase, Option<u16>),
        cx: &mut Context<'_>,
    ) -> Action {
        let (step, pause_ns) = match moved {
            Move::To { step, pause_ns } | Move::Later { step, pause_ns } => (step, pause_ns),
            Move::Walked => {
                self.walked(index, cx);
                return self.end(index, cx);
            }
            Move::BranchEnded { pause_ns } => {
                let wait_ns = self.draw_wait(index, waits, cx.record).unwrap_or(0);
                self.lanes_think(index, wait_ns);
                let until_ns = cx.now_ns.saturating_add(wait_ns).saturating_add(pause_ns);
                return self.await_branches(index, until_ns, cx);
            }
            Move::Stuck | Move::Waits => return self.end(index, cx),
        };
        if self.retirement.has_come(self.values.user(index)) {
            return self.end(index, cx);
        }
        self.all[index as usize].step = step;
        let wait_ns = self.draw_wait(index, waits, cx.record);
        self.lanes_think(index, wait_ns.unwrap_or(0));
        let waits_ns = wait_ns.unwrap_or(0).saturating_add(pause_ns);
        if matches!(moved, Move::Later { .. }) {
            return self.idle(index, waits_ns, cx);
        }
        let due_ns = cx.now_ns.saturating_add(waits_ns);
        self.intend(index, due_ns);
        if wait_ns.is_none() && pause_ns == 0 {
            return self.start_request(index, cx);
        }
        self.enter(index, waits.0, cx);
        Action::WaitUntil(due_ns)
    }

    #[inline]
    fn draw_wait(
        &mut self,
        index: u32,
        (phase, before): (Phase, Option<u16>),
        record: &mut Record,
    ) -> Option<u64> {
        if phase == Phase::BackingOff {
            return Some(self.all[index as usize].back_off_ns());
        }
        if self.job.script.is_some()
            && let Some(delay_ns) = self.script_delay_ns(index, record)
        {
            return Some(delay_ns);
        }
        let step = &self.job.steps[usize::from(before?)];
        step.think.draw(&mut self.rng)
    }

    /// A user goes on after a pause, and after a moment at least: no turning in a circle.
    pub(super) fn idle(&mut self, index: u32, pause_ns: u64, cx: &mut Context<'_>) -> Action {
        self.enter(index, Phase::Idling, cx);
        Action::WaitUntil(cx.now_ns.saturating_add(pause_ns.max(SHORTEST_IDLE_NS)))
    }

    /// The user at a place has walked its scenario to the end.
    fn walked(&mut self, index: u32, cx: &mut Context<'_>) {
        if let Some(open) = &self.open
            && let Some(arrived_ns) = open.arrived_ns.get(index as usize)
        {
            let figures = &mut cx.record.recorder.figures;
            figures.counters.sessions_completed += 1;
            let session_ns = cx.now_ns.saturating_sub(*arrived_ns);
            figures.open_load.session_time.record(session_ns);
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
                let moved = self.first_move(index, cx);
                self.go(index, moved, (Phase::Thinking, None), cx)
            }
            Phase::Idling => {
                // The iteration has begun already.
                let moved = self.next_move(index, false, cx);
                self.go(index, moved, (Phase::Thinking, None), cx)
            }
            Phase::Holding => self.send_or_connect(index, cx),
            Phase::BackingOff => self.start_request(index, cx),
            Phase::Thinking => {
                let drawn_ns = due_ns.saturating_sub(user.since_ns);
                let actual_ns = cx.now_ns.saturating_sub(user.since_ns);
                let counters = cx.counters();
                counters.think_count += 1;
                counters.think_drawn_ns += u128::from(drawn_ns);
                counters.think_actual_ns += u128::from(actual_ns);
                let overshoot_ns = actual_ns.saturating_sub(drawn_ns);
                counters.think_overshoot.record(overshoot_ns);
                self.start_request(index, cx)
            }
            Phase::Connecting | Phase::Warming => self.connect_expired(index, cx),
            Phase::Closing => self.lose_idle(index, true, cx),
            // One timer serves all requests of a connection: it is set anew only when it fires.
            Phase::InFlight => {
                let deadline_ns = user.sent_ns + self.job.request_timeout_ns;
                let deadline_ns = self.limit_ns(index, deadline_ns);
                if cx.now_ns >= deadline_ns {
                    return self.lose(index, ErrorKind::Timeout, true, cx);
                }
                match self.holds(index) {
                    true => Action::SendHeld {
                        until_ns: Some(deadline_ns),
                    },
                    false => Action::WaitUntil(deadline_ns),
                }
            }
            Phase::Ready
            | Phase::Cold
            | Phase::Queued
            | Phase::Halted
            | Phase::Joining
            | Phase::Spare
            | Phase::Ended => Action::Stay,
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
    pub(super) fn end(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        if self.break_branches(index, true).is_some() {
            return self.await_branches(index, cx.now_ns, cx);
        }
        self.redirects.drop(index);
        if let Some(queues) = &mut self.queues {
            queues.take_ahead(index);
        }
        // A user who has sent nothing leaves a connection that is being opened as it is.
        let warming = self.all[index as usize].phase == Phase::Warming;
        if self.open.is_none() || self.job.per_session && !warming {
            self.close(index, true, cx.record);
        }
        let (phase, action) = match (self.open.is_some(), self.all[index as usize].connected) {
            (false, _) => (Phase::Ended, Action::End),
            (true, _) if warming => (Phase::Warming, Action::VACATE),
            (true, true) => (Phase::Ready, Action::VACATE),
            (true, false) => (Phase::Cold, Action::VACATE),
        };
        self.enter(index, phase, cx);
        cx.record.recorder.user_went(cx.now_ns);
        self.alive -= 1;
        action
    }
}
