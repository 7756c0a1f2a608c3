//! What happens to one user: it begins a request, its connection opens or fails, its answer comes, it thinks, it ends.

use std::io;

use super::Worker;
use super::scenes::{LONGEST_HELD_NS, Moved};
use crate::fault::Fault;
use crate::job::WRITTEN_ANEW;
use crate::measure::counters::ErrorKind;
use crate::net::{ConnId, Driver};
use crate::payload::Payload;
use crate::tls::Secured;
use crate::user::{NOT_SINCE, Phase};

/// Between iterations that send nothing.
const SHORTEST_IDLE_NS: u64 = 1_000_000;

impl<D: Driver> Worker<'_, D> {
    pub(super) fn may_send(&mut self) -> bool {
        if self.portion == 0 {
            self.portion = self.job.quota.take();
        }
        let allowed = self.portion > 0;
        self.outstanding += usize::from(allowed);
        self.portion = self.portion.saturating_sub(1);
        allowed
    }

    #[inline]
    pub(super) fn request_ended(&mut self) {
        self.outstanding -= 1;
        self.ended_ns = self.now_ns;
    }

    pub(super) fn begin_request(&mut self, index: u32) -> io::Result<()> {
        if !self.may_send() {
            self.end_user(index);
            return Ok(());
        }
        if self.open.is_some() {
            self.recorder.counters.offered += 1;
        }
        self.begin(index)
    }

    /// Begins a request that has its place in the quota.
    pub(super) fn begin(&mut self, index: u32) -> io::Result<()> {
        let user = &mut self.users[index as usize];
        user.since_ns = NOT_SINCE;
        if user.connected {
            self.queue(index)
        } else {
            self.connect(index);
            Ok(())
        }
    }

    pub(super) fn connect(&mut self, index: u32) {
        let user = &mut self.users[index as usize];
        let first = user.since_ns == NOT_SINCE;
        let under_way = user.phase == Phase::Warming;
        user.phase = Phase::Connecting;
        user.since_ns = self.now_ns;
        let mut limit_ns = self.now_ns + self.job.connect_timeout_ns;
        if let Some(open) = &self.open {
            limit_ns = open.limit_ns(index, limit_ns);
            if first {
                self.acted(index, self.now_ns);
            }
        }
        if under_way {
            self.wheel.set(index, limit_ns);
        } else {
            self.open_connection(index, limit_ns);
        }
    }

    pub(super) fn open_connection(&mut self, index: u32, limit_ns: u64) {
        self.recorder.counters.connect_attempts += 1;
        self.wheel.set(index, limit_ns);
        let user = &mut self.users[index as usize];
        let said = self.job.script_addresses.get(usize::from(user.step));
        let address = said.copied().unwrap_or(self.next_address);
        self.next_address = (self.next_address + 1) % self.job.addresses.len();
        // What the client did since the batch was fetched is no part of the time that connecting takes.
        user.sent_ns = if self.in_batch {
            self.driver.now_ns()
        } else {
            self.now_ns
        };
        user.address = address as u16;
        if let Some(figures) = self.recorder.address(user.address) {
            figures.connect_attempts += 1;
        }
        if let Some(logging) = &mut self.logging {
            logging.connecting(index);
        }
        self.driver.connect(index, address);
    }

    fn queue(&mut self, index: u32) -> io::Result<()> {
        self.users[index as usize].phase = Phase::Queued;
        self.queued.push(index);
        if self.queued.len() >= self.send_group {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands the request of a queued user to the driver. False for a user whose connection was lost while it waited.
    #[inline]
    pub(super) fn send(&mut self, index: u32) -> bool {
        let user = &mut self.users[index as usize];
        if user.phase != Phase::Queued {
            return false;
        }
        if self.pipeline.is_some() {
            self.send_together(index);
            return true;
        }
        user.on_connection = user.on_connection.saturating_add(1);
        let step = &self.job.steps[usize::from(user.step)];
        let fixed = step.request(user.on_connection >= self.job.max_requests);
        if fixed == WRITTEN_ANEW && self.job.script.is_some() {
            return self.send_scripted(index);
        }
        self.note_flight(index);
        if fixed == WRITTEN_ANEW {
            let last = self.users[index as usize].on_connection >= self.job.max_requests;
            self.send_written(index, last);
        } else {
            self.driver.send(index, Payload::Fixed(fixed));
        }
        true
    }

    /// Records a request that was handed over, with the time of its send.
    #[inline]
    pub(super) fn sent(&mut self, index: u32, at_ns: u64) {
        if self.pipeline.is_some() {
            self.sent_together(index, at_ns);
        }
        let user = &mut self.users[index as usize];
        user.phase = Phase::InFlight;
        user.sent_ns = at_ns;
        if let Some(parts) = &mut self.parts {
            parts.begin(index);
        }
        let unacted = user.since_ns == NOT_SINCE;
        if unacted {
            user.since_ns = at_ns;
        }
        let step = &self.job.steps[usize::from(user.step)];
        let fixed = step.request(user.on_connection >= self.job.max_requests);
        // The bytes of a request that was written anew, or with others, were counted when they were.
        let bytes = match self.pipeline {
            None => self.job.fixed.get(fixed as usize).map_or(0, Vec::len),
            Some(_) => 0,
        };
        self.recorder.sent(at_ns, bytes as u64);
        if let Some(logging) = &mut self.logging {
            logging.sends(index, bytes as u64, None);
        }
        for _ in 1..self.answers_left(index) {
            self.recorder.sent(at_ns, 0);
        }
        let user = &mut self.users[index as usize];
        if let Some(figures) = self.recorder.address(user.address) {
            figures.sent += 1;
        }
        let mut limit_ns = at_ns + self.job.request_timeout_ns;
        if let Some(open) = &self.open {
            limit_ns = open.limit_ns(index, limit_ns);
            if unacted {
                self.acted(index, at_ns);
            }
        }
        if self.scenes.holds(index) {
            self.wheel.set(index, limit_ns.min(at_ns + LONGEST_HELD_NS));
        } else if !self.wheel.is_set(index) {
            self.wheel.set(index, limit_ns);
        }
    }

    pub(super) fn on_connected(&mut self, index: ConnId) -> io::Result<()> {
        let user = &mut self.users[index as usize];
        let counters = &mut self.recorder.counters;
        counters.connections_opened += 1;
        let took_ns = self.now_ns.saturating_sub(user.sent_ns);
        counters.connect_time.record(took_ns);
        if let Some(logging) = &mut self.logging {
            logging.connected(index, took_ns);
        }
        self.recorder.connections_open += 1;
        if let Some(figures) = self.recorder.address(user.address) {
            figures.connections_opened += 1;
        }
        if !D::SECURES {
            return self.on_usable(index);
        }
        user.securing = true;
        user.sent_ns = self.now_ns;
        let mut limit_ns = self.now_ns + self.job.tls_timeout_ns;
        if user.phase == Phase::Connecting
            && let Some(open) = &self.open
        {
            limit_ns = open.limit_ns(index, limit_ns);
        }
        self.wheel.set(index, limit_ns);
        Ok(())
    }

    pub(super) fn on_secured(&mut self, index: ConnId, secured: Secured) -> io::Result<()> {
        let began_ns = self.users[index as usize].sent_ns;
        let counters = &mut self.recorder.counters;
        let took_ns = self.now_ns.saturating_sub(began_ns);
        counters.secured(secured, took_ns);
        if let Some(logging) = &mut self.logging {
            logging.secured(index, took_ns);
        }
        self.on_usable(index)
    }

    /// TLS failed: as a rule in the handshake, seldom later.
    pub(super) fn on_unsecured(&mut self, index: ConnId, reason: String) -> io::Result<()> {
        self.recorder.counters.explain(ErrorKind::Tls, reason);
        let user = &self.users[index as usize];
        if user.securing {
            self.fail_to_connect(index, ErrorKind::Tls);
            return Ok(());
        }
        if user.phase == Phase::InFlight {
            return self.lose(index, ErrorKind::Tls, true);
        }
        self.on_closed(index)
    }

    /// Requests may be sent on its connection.
    fn on_usable(&mut self, index: u32) -> io::Result<()> {
        let user = &mut self.users[index as usize];
        user.connected();
        // The timer was that of connecting.
        self.wheel.unset(index);
        if user.phase == Phase::Warming {
            self.warmed(index);
            return Ok(());
        }
        self.queue(index)
    }

    pub(super) fn on_connect_failed(&mut self, index: ConnId, code: i32) -> io::Result<()> {
        let counters = &mut self.recorder.counters;
        let kind = match code {
            // No file at the path of a Unix socket: nobody listens there either.
            libc::ECONNREFUSED | libc::ENOENT => ErrorKind::ConnectRefused,
            libc::ETIMEDOUT => ErrorKind::ConnectTimeout,
            libc::EADDRNOTAVAIL => {
                counters.eaddrnotavail += 1;
                ErrorKind::AddressUnavailable
            }
            libc::EMFILE | libc::ENFILE => {
                counters.emfile += 1;
                ErrorKind::Descriptors
            }
            _ => ErrorKind::ConnectOther,
        };
        self.fail_to_connect(index, kind);
        Ok(())
    }

    pub(super) fn fail_to_connect(&mut self, index: u32, kind: ErrorKind) {
        self.close(index, true);
        if self.users[index as usize].phase == Phase::Warming {
            // No request waits for it, so none has failed.
            self.cooled(index);
            return;
        }
        self.request_ended();
        self.recorder.counters.fail(kind);
        self.step_failed(index);
        self.log_failure(index, self.users[index as usize].since_ns, kind);
        let user = &mut self.users[index as usize];
        self.recorder.cycle(user.since_ns, self.now_ns);
        user.since_ns = NOT_SINCE;
        if self.open.is_some() {
            self.turned_away(index, kind);
            return;
        }
        user.phase = Phase::BackingOff;
        let due_ns = self.now_ns + user.back_off_ns();
        self.ends_iteration = self.job.steps[usize::from(user.step)].ends(kind);
        let moved = self.move_on(index);
        if moved == Moved::Later {
            self.users[index as usize].phase = Phase::Idling;
        }
        let goes_on = matches!(moved, Moved::On | Moved::Later);
        let pause_ns = self.take_pause_ns().unwrap_or(0);
        if goes_on && !self.retirement.has_come(index) {
            self.wheel.set(index, due_ns.saturating_add(pause_ns));
        } else {
            self.end_user(index);
        }
    }

    pub(super) fn close(&mut self, index: u32, by_client: bool) {
        self.driver.close(index);
        self.scenes.drop_held(index);
        let user = &mut self.users[index as usize];
        user.reader.reset();
        let idle = user.phase == Phase::Idle;
        let securing = std::mem::take(&mut user.securing);
        if !std::mem::take(&mut user.connected) && !securing {
            return;
        }
        if idle {
            self.cooled(index);
        }
        self.recorder.connections_open -= 1;
        if by_client {
            self.recorder.counters.connections_closed_by_client += 1;
        } else {
            self.recorder.counters.connections_closed_by_server += 1;
        }
    }

    /// After a request: on to the next step, thinking first where users think.
    pub(super) fn advance(&mut self, index: u32) -> io::Result<()> {
        let before = usize::from(self.users[index as usize].step);
        if self.driver.faults().has(Fault::VanishingUsers) && index % 10 == 9 {
            self.users[index as usize].phase = Phase::Ended;
            return Ok(());
        }
        let moved = self.move_on(index);
        if moved == Moved::Walked {
            self.walked(index);
        }
        let goes_on = matches!(moved, Moved::On | Moved::Later);
        let pause_ns = self.take_pause_ns();
        if !goes_on || self.retirement.has_come(index) {
            self.end_user(index);
            return Ok(());
        }
        let think_ns = match self.script_delay_ns(index) {
            None => self.job.steps[before].think.draw(&mut self.rng),
            delay_ns => delay_ns,
        };
        if moved == Moved::Later {
            self.idle(index, think_ns.unwrap_or(0) + pause_ns.unwrap_or(0));
            return Ok(());
        }
        let think_ns = match (think_ns, pause_ns) {
            (Some(think_ns), Some(pause_ns)) => Some(think_ns.saturating_add(pause_ns)),
            (one, other) => one.or(other),
        };
        let due_ns = self.now_ns + think_ns.unwrap_or(0);
        if let Some(open) = &mut self.open {
            open.intend(index, due_ns);
        }
        match think_ns {
            None => self.begin_request(index),
            Some(_) => {
                let user = &mut self.users[index as usize];
                user.phase = Phase::Thinking;
                user.since_ns = self.now_ns;
                self.wheel.set(index, due_ns);
                Ok(())
            }
        }
    }

    /// A user goes on with its scenario after a pause, and after a moment at least: it would turn in a circle else.
    fn idle(&mut self, index: u32, pause_ns: u64) {
        self.users[index as usize].phase = Phase::Idling;
        let due_ns = self.now_ns.saturating_add(pause_ns.max(SHORTEST_IDLE_NS));
        self.wheel.set(index, due_ns);
    }

    /// A user who has just come, or comes back from idling, goes to its first request.
    fn go(&mut self, index: u32, moved: Moved) -> io::Result<()> {
        let pause_ns = self.take_pause_ns();
        match moved {
            Moved::Walked | Moved::Stuck => {
                self.end_user(index);
                Ok(())
            }
            _ if self.retirement.has_come(index) => {
                self.end_user(index);
                Ok(())
            }
            Moved::Later => {
                self.idle(index, pause_ns.unwrap_or(0));
                Ok(())
            }
            Moved::On => match pause_ns {
                None => self.begin_request(index),
                Some(pause_ns) => {
                    let user = &mut self.users[index as usize];
                    user.phase = Phase::Thinking;
                    user.since_ns = self.now_ns;
                    self.wheel.set(index, self.now_ns.saturating_add(pause_ns));
                    Ok(())
                }
            },
        }
    }

    /// Gives back the place in the quota of a request that is not sent.
    pub(super) fn unsend(&mut self) {
        self.outstanding -= 1;
        self.portion = self.portion.saturating_add(1);
    }

    pub(super) fn on_timer(&mut self, index: u32, due_ns: u64) -> io::Result<()> {
        if self.retirement.has_come(index) && self.retire_user(index) {
            return Ok(());
        }
        let user = &mut self.users[index as usize];
        match user.phase {
            Phase::Waiting => {
                self.recorder.user_came(self.now_ns);
                if self.job.script.is_some() {
                    return self.begin_first(index);
                }
                let moved = self.set_out(index);
                self.go(index, moved)
            }
            Phase::Idling => {
                let moved = self.move_on(index);
                self.go(index, moved)
            }
            Phase::Holding => self.begin(index),
            Phase::BackingOff => self.begin_request(index),
            Phase::Thinking => {
                let drawn_ns = due_ns - user.since_ns;
                let actual_ns = self.now_ns.saturating_sub(user.since_ns);
                let counters = &mut self.recorder.counters;
                counters.think_count += 1;
                counters.think_drawn_ns += u128::from(drawn_ns);
                counters.think_actual_ns += u128::from(actual_ns);
                counters
                    .think_overshoot
                    .record(actual_ns.saturating_sub(drawn_ns));
                self.recorder.cycle(user.since_ns, self.now_ns);
                self.begin_request(index)
            }
            Phase::Connecting | Phase::Warming if user.securing => {
                let within = user.phase == Phase::Connecting
                    && self.now_ns.saturating_sub(user.sent_ns) < self.job.tls_timeout_ns
                    && self.now_ns.saturating_sub(user.since_ns) < self.job.connect_timeout_ns;
                if within {
                    // Only the deadline of the request can have passed.
                    self.fail_to_connect(index, ErrorKind::Timeout);
                    return Ok(());
                }
                let limit_ms = self.job.tls_timeout_ns / 1_000_000;
                let reason = format!("the handshake did not end within {limit_ms} ms");
                self.on_unsecured(index, reason)
            }
            Phase::Connecting | Phase::Warming => {
                let waited_ns = self.now_ns.saturating_sub(user.since_ns);
                let expired =
                    user.phase == Phase::Connecting && waited_ns < self.job.connect_timeout_ns;
                // Before the time for connecting is over only the deadline of the request can have passed.
                let kind = if expired {
                    ErrorKind::Timeout
                } else {
                    ErrorKind::ConnectTimeout
                };
                self.fail_to_connect(index, kind);
                Ok(())
            }
            Phase::Idle => {
                self.warm_again(index);
                Ok(())
            }
            // One timer serves all requests of a connection: it is set anew only when it fires, not with every request.
            Phase::InFlight => {
                let mut deadline_ns = user.sent_ns + self.job.request_timeout_ns;
                if let Some(open) = &self.open {
                    deadline_ns = open.limit_ns(index, deadline_ns);
                }
                if self.now_ns >= deadline_ns {
                    return self.lose(index, ErrorKind::Timeout, true);
                }
                self.send_held(index);
                self.wheel.set(index, deadline_ns);
                Ok(())
            }
            Phase::Queued | Phase::Ended => Ok(()),
        }
    }

    pub(super) fn end_user(&mut self, index: u32) {
        self.chains.drop(index);
        if self.open.is_some() {
            self.leave(index);
            return;
        }
        self.wheel.unset(index);
        self.close(index, true);
        let user = &mut self.users[index as usize];
        user.phase = Phase::Ended;
        user.since_ns = NOT_SINCE;
        self.recorder.user_went(self.now_ns);
        self.alive -= 1;
    }
}
