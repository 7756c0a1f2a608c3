//! Between the driver and the users: what happened becomes an event, and what a user says to do is
//! done.

use std::io;

use super::Worker;
use super::pool::Free;
use crate::measure::counters::ErrorKind;
use crate::net::{Direction, Driver, NetEvent};
use crate::user::{Action, Bytes, Context, Next, UserEvent};

impl<D: Driver> Worker<'_, D> {
    #[inline]
    pub(super) fn handle(&mut self, event: NetEvent) -> io::Result<()> {
        let (index, event) = match event {
            NetEvent::Received(received) => {
                let index = received.conn;
                let bytes = Bytes {
                    bytes: self.driver.bytes(&received),
                    sending: self.driver.is_sending(index),
                    accepted_ns: match self.job.parts {
                        true => self.driver.accepted_ns(index),
                        false => None,
                    },
                };
                let event = UserEvent::Received(bytes);
                let action = self.users.on(
                    index,
                    event,
                    &mut Context::new(self.now_ns, &mut self.record),
                );
                self.driver.release(received);
                return self.act(index, action);
            }
            NetEvent::Connected(conn) => {
                // The timer was that of connecting.
                self.wheel.unset(conn);
                (conn, UserEvent::Connected)
            }
            NetEvent::Secured(conn, secured) => {
                self.wheel.unset(conn);
                (conn, UserEvent::Secured(secured))
            }
            NetEvent::Unsecured(conn, reason) => (conn, UserEvent::Unsecured(*reason)),
            NetEvent::ConnectFailed(conn, code) => {
                (conn, UserEvent::ConnectFailed(self.refusal(code)))
            }
            NetEvent::Closed(conn) => {
                let sending = self.driver.is_sending(conn);
                (conn, UserEvent::Closed { sending })
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
        let action = self.users.on(
            index,
            event,
            &mut Context::new(self.now_ns, &mut self.record),
        );
        self.act(index, action)
    }

    /// What the kernel's word for an attempt that failed means.
    fn refusal(&mut self, code: i32) -> ErrorKind {
        let counters = &mut self.record.recorder.counters;
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
            _ => ErrorKind::ConnectOther,
        }
    }

    pub(super) fn on_timer(&mut self, index: u32, due_ns: u64) -> io::Result<()> {
        if self.open.is_some() && self.users.is_vacant(index) {
            return self.warm_again(index);
        }
        let event = UserEvent::Timer { due_ns };
        let action = self.users.on(
            index,
            event,
            &mut Context::new(self.now_ns, &mut self.record),
        );
        self.act(index, action)
    }

    /// Does what a user says.
    #[inline]
    pub(super) fn act(&mut self, index: u32, action: Action) -> io::Result<()> {
        if action.close {
            self.driver.close(index);
        }
        if action.begins {
            self.acted(self.now_ns);
        }
        match action.next {
            Next::Stay => {}
            Next::Send => {
                self.queued.push(index);
                if self.queued.len() >= self.send_group {
                    self.flush()?;
                }
            }
            Next::WaitUntil(at_ns) => self.wheel.set(index, at_ns),
            Next::Connect { address, limit_ns } => {
                self.wheel.set(index, limit_ns);
                self.driver.connect(index, address);
            }
            Next::SendHeld { until_ns } => {
                if !self.driver.is_sending(index)
                    && let Some(payload) = self.users.take_held(index, &mut self.record)
                {
                    self.driver.send(index, payload);
                }
                if let Some(until_ns) = until_ns {
                    self.wheel.set(index, until_ns);
                }
            }
            Next::Vacant { retry_ns } => {
                let free = self.free(index);
                if let Some(open) = &mut self.open {
                    open.put(index, free);
                }
                match retry_ns {
                    Some(retry_ns) => self.wheel.set(index, retry_ns),
                    None if free == Free::Cold => self.warm()?,
                    None => {}
                }
            }
            Next::End => self.wheel.unset(index),
        }
        Ok(())
    }

    /// Hands the requests of a queued user to the driver; false when it has none to send.
    #[inline]
    pub(super) fn send(&mut self, index: u32) -> io::Result<bool> {
        let spare = || self.driver.spare();
        match self.users.write(
            index,
            spare,
            &mut Context::new(self.now_ns, &mut self.record),
        ) {
            Ok(payload) => {
                self.driver.send(index, payload);
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
        let sent = self.users.sent(index, at_ns, &mut self.record);
        if sent.begins {
            self.acted(at_ns);
        }
        if sent.holds || !self.wheel.is_set(index) {
            self.wheel.set(index, sent.limit_ns);
        }
    }

    /// The first request of an arrival goes out.
    #[inline]
    fn acted(&mut self, at_ns: u64) {
        if let Some(open) = &mut self.open {
            open.acted(at_ns, &mut self.record.recorder.gaps);
        }
    }
}
