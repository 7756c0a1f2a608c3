//! Connections as users have them: attempted, opened, secured, failed, kept ready.

use super::phase::Phase;
use super::{Action, Context, Users};
use crate::measure::counters::ErrorKind;
use crate::record::Record;
use crate::tls::Secured;

impl Users {
    pub(super) fn connect(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        let under_way = self.all[index as usize].phase == Phase::Warming;
        self.enter(index, Phase::Connecting, cx);
        if self.all[index as usize].connects(cx.now_ns) {
            self.record_send_lag(index, cx.now_ns, cx.record);
        }
        let limit_ns = self.limit_ns(index, cx.now_ns + self.job.connect_timeout_ns);
        match under_way {
            true => Action::WaitUntil(limit_ns),
            false => self.open_connection(index, limit_ns, cx),
        }
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
        Action::Connect { address, limit_ns }
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
        Action::WaitUntil(limit_ns)
    }

    pub(super) fn on_secured(
        &mut self,
        index: u32,
        secured: Secured,
        cx: &mut Context<'_>,
    ) -> Action {
        let began_ns = self.all[index as usize].sent_ns;
        let took_ns = cx.now_ns.saturating_sub(began_ns);
        cx.counters().secured(secured, took_ns);
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
        cx.counters().explain(ErrorKind::Tls, reason);
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
            user.phase = Phase::Ready;
            return Action::VACATE;
        }
        self.enter(index, Phase::Queued, cx);
        Action::Send
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
            return self.schedule_reconnect(index, cx.now_ns);
        }
        self.allowance.request_ended(cx.now_ns);
        let ended = self.ended(index, self.all[index as usize].since_ns);
        cx.record.unconnected(&ended, kind, cx.now_ns);
        self.chain_lost(index, None, cx.record);
        self.values.spend(index, 0, true);
        if self.open.is_none() {
            let breaks_off = self.job.steps[usize::from(ended.step)].ends(kind);
            let moved = self.next_move(index, breaks_off, cx);
            return self.go(index, moved, (Phase::BackingOff, None), cx);
        }
        // Such a user goes away, when its branches have ended.
        match self.end(index, cx) {
            Action::Vacate { .. } => self.schedule_reconnect(index, cx.now_ns),
            waits => waits,
        }
    }

    /// Gives up a connection, whatever its state; whether it had been opened.
    pub(super) fn close(&mut self, index: u32, by_client: bool, record: &mut Record) -> bool {
        if !self.held.is_empty() {
            self.held.remove(&index);
        }
        self.given_up.push(self.connection(index));
        let user = &mut self.all[index as usize];
        user.reader.reset();
        let securing = std::mem::take(&mut user.securing);
        let was_open = std::mem::take(&mut user.connected) || securing;
        if was_open {
            record.closed_connection(by_client);
        }
        was_open
    }

    /// A place without a user has no connection: another attempt follows, less and less soon.
    pub(super) fn schedule_reconnect(&mut self, index: u32, now_ns: u64) -> Action {
        let user = &mut self.all[index as usize];
        user.phase = Phase::Cold;
        Action::Vacate {
            retry_ns: Some(now_ns + user.back_off_ns()),
        }
    }

    /// Opens a connection for nobody in particular.
    pub fn warm(&mut self, index: u32, cx: &mut Context<'_>) -> Action {
        self.all[index as usize].phase = Phase::Warming;
        let limit_ns = cx.now_ns + self.job.connect_timeout_ns;
        self.open_connection(index, limit_ns, cx)
    }

    /// Gives up such an attempt where one is under way.
    pub(super) fn give_up_warming(&mut self, index: u32, record: &mut Record) {
        if self.all[index as usize].phase == Phase::Warming {
            self.close(index, true, record);
            self.all[index as usize].phase = Phase::Cold;
        }
    }

    /// What the user at this place is doing; of an open load also how the place is that nobody holds.
    pub fn phase(&self, index: u32) -> Phase {
        self.all[index as usize].phase
    }

    /// The number of a connection that users have given up since they were asked before.
    #[inline]
    pub fn next_given_up(&mut self) -> Option<u32> {
        self.given_up.pop()
    }
}
