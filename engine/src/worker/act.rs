//! Between the driver and the users: events for them, and what they say is done.

use std::io;

use super::Worker;
use crate::measure::counters::ErrorKind;
use crate::net::{ConnId, Direction, Driver, Lost, NetEvent};
use crate::user::{Action, Bytes, Context, Phase, UserEvent};

impl<D: Driver> Worker<'_, D> {
    #[inline]
    pub(super) fn handle(&mut self, event: NetEvent) -> io::Result<()> {
        let truncated = matches!(event, NetEvent::Truncated(_));
        let (conn, event) = match event {
            NetEvent::Received(received) => {
                let arrived_ns = self.driver.arrived_ns(&received);
                let recorder = &mut self.record.recorder;
                recorder.work.receive_delay.record(self.now_ns, arrived_ns);
                let conn = received.conn;
                let bytes = Bytes {
                    bytes: self.driver.bytes(&received),
                    sending: self.driver.is_sending(conn),
                    accepted_ns: match self.job.parts {
                        true => self.driver.accepted_ns(conn),
                        false => None,
                    },
                };
                let owner = self.users.user_of(conn);
                let mut cx = Context::new(self.now_ns, &mut self.record);
                let action = self
                    .users
                    .on_net(owner, conn, UserEvent::Received(bytes), &mut cx);
                self.driver.release(received);
                return self.act(owner.unwrap_or_default(), action);
            }
            NetEvent::Connected(conn) => {
                // The timer was that of connecting.
                self.unset_timer(conn);
                (conn, UserEvent::Connected)
            }
            NetEvent::Secured(conn, secured) => {
                self.unset_timer(conn);
                (conn, UserEvent::Secured(secured))
            }
            NetEvent::Joined(conn) => {
                self.unset_timer(conn);
                (conn, UserEvent::Joined)
            }
            NetEvent::Lost(conn, lost) => {
                let Lost { kind, reason } = *lost;
                (conn, UserEvent::Lost { kind, reason })
            }
            NetEvent::Unsecured(conn, reason) => (conn, UserEvent::Unsecured(*reason)),
            NetEvent::ConnectFailed(conn, code) => {
                (conn, UserEvent::ConnectFailed(self.refusal(code)))
            }
            NetEvent::Closed(conn) | NetEvent::Truncated(conn) => {
                let sending = self.driver.is_sending(conn);
                (conn, UserEvent::Closed { sending, truncated })
            }
            NetEvent::Broken(conn, direction, _) => {
                let sending = self.driver.is_sending(conn);
                let kind = match direction {
                    Direction::Read => ErrorKind::Read,
                    Direction::Write => ErrorKind::Write,
                };
                (conn, UserEvent::Broken { kind, sending })
            }
            NetEvent::Refused(conn, code) => {
                let why = io::Error::from_raw_os_error(code);
                let reason =
                    format!("the load generator could not hand a request to its own kernel: {why}");
                (conn, UserEvent::Refused(reason))
            }
            NetEvent::Woken => {
                self.take_commands();
                return Ok(());
            }
        };
        let owner = self.users.user_of(conn);
        let action = self.users.on_net(owner, conn, event, cx!(self));
        self.act(owner.unwrap_or_default(), action)
    }

    fn unset_timer(&mut self, conn: ConnId) {
        if let Some(index) = self.users.user_of(conn) {
            self.wheel.unset(index);
        }
    }

    /// What the kernel's word for an attempt that failed means.
    fn refusal(&mut self, code: i32) -> ErrorKind {
        let counters = self.record.counters();
        match code {
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
            code => {
                let why = io::Error::from_raw_os_error(code).to_string();
                let (why, _) = why.split_once(" (os error").unwrap_or((&why, ""));
                counters.explain(ErrorKind::ConnectOther, why.to_owned());
                ErrorKind::ConnectOther
            }
        }
    }

    pub(super) fn on_timer(&mut self, index: u32, due_ns: u64) -> io::Result<()> {
        if matches!(self.users.phase(index), Phase::Ready | Phase::Cold) {
            return self.warm_again(index);
        }
        let action = self.users.on(index, UserEvent::Timer { due_ns }, cx!(self));
        self.act(index, action)
    }

    /// Does what a user says, and lets those act whose branches have started or ended by it.
    #[inline]
    pub(super) fn act(&mut self, index: u32, action: Action) -> io::Result<()> {
        self.act_alone(index, action)?;
        while let Some(next) = self.users.next_ready() {
            let action = self.users.on_ready(next, cx!(self));
            self.act_alone(next, action)?;
        }
        Ok(())
    }

    #[inline]
    fn close_given_up(&mut self) {
        while let Some(conn) = self.users.next_given_up() {
            self.driver.close(conn);
        }
    }

    #[inline]
    fn act_alone(&mut self, index: u32, action: Action) -> io::Result<()> {
        self.close_given_up();
        match action {
            Action::Stay => {}
            Action::Send => {
                self.queued.push(index);
                if self.queued.len() >= self.send_group {
                    self.flush()?;
                }
            }
            Action::WaitUntil(at_ns) => self.wheel.set(index, at_ns),
            Action::Connect { address, limit_ns } => {
                self.wheel.set(index, limit_ns);
                self.driver.connect(self.users.connection(index), address);
            }
            Action::SendHeld { until_ns } => {
                let conn = self.users.connection(index);
                if !self.driver.is_sending(conn)
                    && let Some(payload) = self.users.take_held(index, &mut self.record)
                {
                    self.driver.send(conn, payload);
                }
                if let Some(until_ns) = until_ns {
                    self.wheel.set(index, until_ns);
                }
            }
            Action::Vacate { retry_ns } => {
                if self.job.per_session {
                    self.close_beside(index);
                    self.driver.forget_client(index);
                }
                let phase = self.users.phase(index);
                if let Some(open) = &mut self.open {
                    open.put(index, phase);
                }
                match retry_ns {
                    Some(retry_ns) => self.wheel.set(index, retry_ns),
                    None if phase == Phase::Cold => self.warm()?,
                    None => {}
                }
            }
            Action::End => {
                self.close_beside(index);
                self.wheel.unset(index);
            }
        }
        Ok(())
    }

    fn close_beside(&mut self, index: u32) {
        self.users.close_beside(index, &mut self.record);
        self.close_given_up();
    }

    /// Hands the requests of a queued user to the driver; false when it has none to send.
    #[inline]
    pub(super) fn send(&mut self, index: u32) -> io::Result<bool> {
        let conn = self.users.connection(index);
        let spare = || self.driver.spare();
        match self.users.write(index, spare, cx!(self)) {
            Ok(payload) => {
                self.driver.send(conn, payload);
                Ok(true)
            }
            Err(action) => {
                self.act(index, action)?;
                Ok(false)
            }
        }
    }

    /// Requests were handed over, with the time of their send.
    #[inline]
    pub(super) fn sent(&mut self, index: u32, at_ns: u64) {
        let (limit_ns, holds) = self.users.sent(index, at_ns, &mut self.record);
        if holds || !self.wheel.is_set(index) {
            self.wheel.set(index, limit_ns);
        }
    }
}
