//! Connections as users have them: attempted, opened, secured, failed, kept ready for nobody in
//! particular.

use super::phase::{Move, Phase};
use super::{Action, Context, Next, Users};
use crate::measure::counters::ErrorKind;
use crate::record::Record;
use crate::tls::Secured;

/// In which state a place of an open load is that nobody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Free {
    /// With an open connection.
    Ready,
    /// With one that is being opened.
    Warming,
    /// Without.
    Cold,
}

impl Users {
    pub(super) fn connect(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let user = &mut self.all[index as usize];
        let under_way = user.phase == Phase::Warming;
        user.enter(Phase::Connecting, cx.now_ns, &mut cx.record.recorder);
        let first = user.connects(cx.now_ns);
        let limit_ns = self.limit_ns(index, cx.now_ns + self.job.connect_timeout_ns);
        let begins = first && self.record_send_lag(index, cx.now_ns, cx.record);
        let action = if under_way {
            Action::next(Next::WaitUntil(limit_ns))
        } else {
            self.open_connection(index, limit_ns, cx)
        };
        Action { begins, ..action }
    }

    fn open_connection(&mut self, index: u32, limit_ns: u64, cx: &mut Context<'_>) -> Action {
        let server = self.server(index);
        let turn = &mut self.next_address[server];
        let among = &self.job.servers[server].addresses;
        let next = among.start + *turn % among.len();
        *turn = turn.wrapping_add(1);
        let user = &mut self.all[index as usize];
        let said = self.job.script_addresses.get(usize::from(user.step));
        let address = said.copied().unwrap_or(next);
        user.sent_ns = cx.now_ns;
        user.address = address as u16;
        cx.record.connecting(index, user.address);
        Action::next(Next::Connect { address, limit_ns })
    }

    pub(super) fn on_connected(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let user = &mut self.all[index as usize];
        let took_ns = cx.now_ns.saturating_sub(user.sent_ns);
        cx.record.connected(index, user.address, took_ns);
        if !self.surroundings.secures || !self.job.is_secure(user.address) {
            return self.on_usable(index, cx);
        }
        user.securing = true;
        user.sent_ns = cx.now_ns;
        let mut limit_ns = cx.now_ns + self.job.tls_timeout_ns;
        if user.phase == Phase::Connecting {
            limit_ns = self.limit_ns(index, limit_ns);
        }
        Action::next(Next::WaitUntil(limit_ns))
    }

    pub(super) fn on_secured(
        &mut self,
        index: u32,
        secured: Secured,
        cx: &mut Context<'_>,
    ) -> Action {
        let began_ns = self.all[index as usize].sent_ns;
        let took_ns = cx.now_ns.saturating_sub(began_ns);
        cx.record
            .recorder
            .figures
            .counters
            .secured(secured, took_ns);
        cx.record.secured(index, took_ns);
        self.on_usable(index, cx)
    }

    /// TLS failed: as a rule in the handshake, seldom later.
    pub(super) fn on_unsecured(
        &mut self,
        index: u32,
        reason: String,
        cx: &mut Context<'_>,
    ) -> Action {
        cx.record
            .recorder
            .figures
            .counters
            .explain(ErrorKind::Tls, reason);
        let user = &self.all[index as usize];
        if user.securing {
            return self.fail_to_connect(index, ErrorKind::Tls, cx);
        }
        if user.phase == Phase::InFlight {
            return self.lose(index, ErrorKind::Tls, true, cx);
        }
        self.on_closed(index, (false, false), cx)
    }

    /// Requests may be sent on its connection.
    pub(super) fn on_usable(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let user = &mut self.all[index as usize];
        user.connected();
        if user.phase == Phase::Warming {
            user.phase = Phase::Idle;
            return Action::next(Next::Vacant { retry_ns: None });
        }
        user.enter(Phase::Queued, cx.now_ns, &mut cx.record.recorder);
        Action::next(Next::Send)
    }

    pub(super) fn fail_to_connect(
        &mut self,
        index: u32,
        kind: ErrorKind,
        cx: &mut Context<'_>,
    ) -> Action {
        self.close(index, true, cx.record);
        if self.all[index as usize].phase == Phase::Warming {
            // No request waits for it, so none has failed.
            return self.schedule_reconnect(index, cx.now_ns).closing(true);
        }
        self.allowance.request_ended(cx.now_ns);
        let ended = self.ended(index, self.all[index as usize].since_ns);
        cx.record.unconnected(&ended, kind, cx.now_ns);
        self.chain_lost(index, None, cx.record);
        self.values.spend(index, 0, true);
        if self.open.is_some() {
            // Such a user goes away, when its branches have ended.
            if self.break_branches(index, true).is_some() {
                return self.rest(index, cx.now_ns, cx).closing(true);
            }
            self.release(index, Phase::Idle, cx);
            return self.schedule_reconnect(index, cx.now_ns).closing(true);
        }
        let user = &mut self.all[index as usize];
        let due_ns = cx.now_ns + user.back_off_ns();
        let breaks_off = self.job.steps[usize::from(ended.step)].ends(kind);
        let (phase, step, pause_ns) = match self.move_on(index, breaks_off, cx) {
            Move::To { step, pause_ns } => (Phase::BackingOff, step, pause_ns),
            Move::Later { step, pause_ns } => (Phase::Idling, step, pause_ns),
            Move::Walked | Move::Stuck | Move::Waits => {
                return self.end_user(index, cx).closing(true);
            }
            Move::BranchEnded { pause_ns } => {
                let until_ns = due_ns.saturating_add(pause_ns);
                return self.rest(index, until_ns, cx).closing(true);
            }
        };
        if self.retirement.has_come(self.values.user(index)) {
            return self.end_user(index, cx).closing(true);
        }
        let user = &mut self.all[index as usize];
        user.step = step;
        user.enter(phase, cx.now_ns, &mut cx.record.recorder);
        Action::next(Next::WaitUntil(due_ns.saturating_add(pause_ns))).closing(true)
    }

    /// Gives up a connection, whatever its state; whether it had been opened.
    pub(super) fn close(&mut self, index: u32, by_client: bool, record: &mut Record) -> bool {
        if !self.held.is_empty() {
            self.held.remove(&index);
        }
        let user = &mut self.all[index as usize];
        user.reader.reset();
        let securing = std::mem::take(&mut user.securing);
        let was_open = std::mem::take(&mut user.connected) || securing;
        if was_open {
            record.closed_connection(by_client);
        }
        was_open
    }

    /// A place without a user has lost its connection, or got none. Another attempt follows, at
    /// first soon, then less and less so.
    pub(super) fn schedule_reconnect(&mut self, index: u32, now_ns: u64) -> Action {
        let user = &mut self.all[index as usize];
        user.phase = Phase::Idle;
        Action::next(Next::Vacant {
            retry_ns: Some(now_ns + user.back_off_ns()),
        })
    }

    /// Opens a connection for nobody in particular.
    pub fn warm(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        self.all[index as usize].phase = Phase::Warming;
        let limit_ns = cx.now_ns + self.job.connect_timeout_ns;
        self.open_connection(index, limit_ns, cx)
    }

    /// Gives up such an attempt where one is under way; whether it was.
    pub(super) fn gives_up_warming(&mut self, index: u32, record: &mut Record) -> bool {
        let warming = self.all[index as usize].phase == Phase::Warming;
        if warming {
            self.close(index, true, record);
            self.all[index as usize].phase = Phase::Idle;
        }
        warming
    }

    /// Whether nobody is at this place of an open load, and nothing is under way.
    pub fn is_vacant(&self, index: u32) -> bool {
        self.all[index as usize].phase == Phase::Idle
    }

    /// In which state a place is that nobody holds.
    pub fn free(&self, index: u32) -> Free {
        let user = &self.all[index as usize];
        match (user.connected, user.phase) {
            (true, _) => Free::Ready,
            (false, Phase::Warming) => Free::Warming,
            (false, _) => Free::Cold,
        }
    }
}
