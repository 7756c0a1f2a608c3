//! Connections as users have them: attempted, opened, secured, failed, kept ready for nobody in particular.

use super::phase::{Move, NOT_SINCE, Phase};
use super::{Action, Next, Users};
use crate::measure::counters::ErrorKind;
use crate::record::Record;
use crate::tls::Secured;

/// What a place of an open load has that nobody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub connected: bool,
    /// A connection is being opened.
    pub warming: bool,
}

impl Users {
    pub(super) fn connect(&mut self, index: u32, now_ns: u64, record: &mut Record) -> Action {
        let user = &mut self.all[index as usize];
        let first = user.since_ns == NOT_SINCE;
        let under_way = user.phase == Phase::Warming;
        user.phase = Phase::Connecting;
        user.since_ns = now_ns;
        let limit_ns = self.limit_ns(index, now_ns + self.job.connect_timeout_ns);
        let begins = first && self.acts(index, now_ns, record);
        let action = if under_way {
            Action::next(Next::WaitUntil(limit_ns))
        } else {
            self.open_connection(index, limit_ns, now_ns, record)
        };
        Action { begins, ..action }
    }

    fn open_connection(
        &mut self,
        index: u32,
        limit_ns: u64,
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        let user = &mut self.all[index as usize];
        let said = self.job.script_addresses.get(usize::from(user.step));
        let address = said.copied().unwrap_or(self.next_address);
        self.next_address = (self.next_address + 1) % self.job.addresses.len();
        user.sent_ns = now_ns;
        user.address = address as u16;
        record.connecting(index, user.address);
        Action::next(Next::Connect { address, limit_ns })
    }

    pub(super) fn on_connected(&mut self, index: u32, now_ns: u64, record: &mut Record) -> Action {
        let user = &mut self.all[index as usize];
        let took_ns = now_ns.saturating_sub(user.sent_ns);
        record.connected(index, user.address, took_ns);
        if !self.surroundings.secures {
            return self.on_usable(index);
        }
        user.securing = true;
        user.sent_ns = now_ns;
        let mut limit_ns = now_ns + self.job.tls_timeout_ns;
        if user.phase == Phase::Connecting {
            limit_ns = self.limit_ns(index, limit_ns);
        }
        Action::next(Next::WaitUntil(limit_ns))
    }

    pub(super) fn on_secured(
        &mut self,
        index: u32,
        secured: Secured,
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        let began_ns = self.all[index as usize].sent_ns;
        let took_ns = now_ns.saturating_sub(began_ns);
        record.recorder.counters.secured(secured, took_ns);
        record.secured(index, took_ns);
        self.on_usable(index)
    }

    /// TLS failed: as a rule in the handshake, seldom later.
    pub(super) fn on_unsecured(
        &mut self,
        index: u32,
        reason: String,
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        record.recorder.counters.explain(ErrorKind::Tls, reason);
        let user = &self.all[index as usize];
        if user.securing {
            return self.fail_to_connect(index, ErrorKind::Tls, now_ns, record);
        }
        if user.phase == Phase::InFlight {
            return self.lose(index, ErrorKind::Tls, true, now_ns, record);
        }
        self.on_closed(index, false, now_ns, record)
    }

    /// Requests may be sent on its connection.
    fn on_usable(&mut self, index: u32) -> Action {
        let user = &mut self.all[index as usize];
        user.connected();
        if user.phase == Phase::Warming {
            user.phase = Phase::Idle;
            return Action::next(Next::Vacant {
                connected: true,
                retry_ns: None,
            });
        }
        user.phase = Phase::Queued;
        Action::next(Next::Send)
    }

    pub(super) fn fail_to_connect(
        &mut self,
        index: u32,
        kind: ErrorKind,
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        self.close(index, true, record);
        if self.all[index as usize].phase == Phase::Warming {
            // No request waits for it, so none has failed.
            return self.cool(index, now_ns).closing(true);
        }
        self.allowance.request_ended(now_ns);
        let ended = self.ended(index, self.all[index as usize].since_ns);
        record.unconnected(&ended, kind, now_ns);
        self.chain_lost(index, None, record);
        self.values.spend(index, 0, true);
        let user = &mut self.all[index as usize];
        record.recorder.cycle(user.since_ns, now_ns);
        user.since_ns = NOT_SINCE;
        if self.open.is_some() {
            // Such a user goes away.
            self.release(index, now_ns, record);
            return self.cool(index, now_ns).closing(true);
        }
        user.phase = Phase::BackingOff;
        let due_ns = now_ns + user.back_off_ns();
        let breaks_off = self.job.steps[usize::from(ended.step)].ends(kind);
        let (phase, step, pause_ns) = match self.move_on(index, breaks_off, now_ns, record) {
            Move::To { step, pause_ns } => (Phase::BackingOff, step, pause_ns),
            Move::Later { step, pause_ns } => (Phase::Idling, step, pause_ns),
            Move::Walked | Move::Stuck | Move::Waits => {
                return self.end_user(index, now_ns, record).closing(true);
            }
        };
        if self.retirement.has_come(index) {
            return self.end_user(index, now_ns, record).closing(true);
        }
        let user = &mut self.all[index as usize];
        (user.phase, user.step) = (phase, step);
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
            record.recorder.connections_open -= 1;
            let counters = &mut record.recorder.counters;
            if by_client {
                counters.connections_closed_by_client += 1;
            } else {
                counters.connections_closed_by_server += 1;
            }
        }
        was_open
    }

    /// A place without a user has lost its connection, or got none. Another attempt follows, at
    /// first soon, then less and less so.
    pub(super) fn cool(&mut self, index: u32, now_ns: u64) -> Action {
        let user = &mut self.all[index as usize];
        user.phase = Phase::Idle;
        Action::next(Next::Vacant {
            connected: false,
            retry_ns: Some(now_ns + user.back_off_ns()),
        })
    }

    /// Opens a connection for nobody in particular.
    pub fn warm(&mut self, index: u32, now_ns: u64, record: &mut Record) -> Action {
        self.all[index as usize].phase = Phase::Warming;
        let limit_ns = now_ns + self.job.connect_timeout_ns;
        self.open_connection(index, limit_ns, now_ns, record)
    }

    /// Whether nobody is at this place of an open load, and nothing is under way.
    pub fn is_vacant(&self, index: u32) -> bool {
        self.all[index as usize].phase == Phase::Idle
    }

    pub fn standing(&self, index: u32) -> Standing {
        let user = &self.all[index as usize];
        Standing {
            connected: user.connected,
            warming: user.phase == Phase::Warming,
        }
    }
}
