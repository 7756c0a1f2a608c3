//! Payloads become records a piece at a time: nobody waits for the encryption of more.

use super::{TlsDriver, unsecured};
use crate::net::read_ahead::Refill;
use crate::net::{ConnId, Direction, Driver, NetEvent};
use crate::payload::{PIECE_BYTES, Payload};

/// A payload, and from where on it has to be sealed.
pub(super) struct Unsealed {
    pub(super) payload: Payload,
    pub(super) at: usize,
}

impl Unsealed {
    fn follows(&self) -> bool {
        matches!(&self.payload, Payload::Owned(outgoing) if outgoing.follows())
    }
}

impl<D: Driver> TlsDriver<D> {
    /// Seals a piece of a payload; the next one is sealed when this has been sent. `last`: all of it,
    /// with TLS's close_notify behind it.
    pub(super) fn seal(
        &mut self,
        conn: ConnId,
        mut unsealed: Unsealed,
        last: bool,
    ) -> Result<(), NetEvent> {
        let Some(slot) = self.conns[conn as usize].as_mut() else {
            return Ok(());
        };
        let mut out = std::mem::take(&mut slot.outgoing);
        if out.capacity() == 0 {
            out = self.wire.spare();
            out.clear();
        }
        let bytes = &unsealed.payload.now(&self.fixed)[unsealed.at..];
        let length = match last {
            true => bytes.len(),
            false => bytes.len().min(PIECE_BYTES),
        };
        let more = length < bytes.len() || unsealed.follows();
        slot.session
            .seal(&bytes[..length], &mut out)
            .map_err(|error| unsecured(conn, error.to_string()))?;
        if more {
            unsealed.at += length;
            slot.unsealed = Some(Box::new(unsealed));
            self.sealing.push(conn);
        }
        if last {
            slot.said_farewell = slot.session.end(&mut out).is_ok();
        }
        if !out.is_empty() {
            self.wire.send(conn, Payload::bytes(out));
        }
        Ok(())
    }

    /// Seals the next piece of each payload whose last one has been sent. Whether the driver beneath has
    /// taken one: what is to follow, here or above, need not wait.
    pub(super) fn seal_on(&mut self) -> bool {
        let mut at_once = false;
        for conn in std::mem::take(&mut self.sealing) {
            if self.wire.is_sending(conn) {
                self.sealing.push(conn);
                continue;
            }
            let slot = self.conns[conn as usize].as_mut();
            let Some(mut unsealed) = slot.and_then(|slot| slot.unsealed.take()) else {
                continue;
            };
            let result = match self.refill(&mut unsealed) {
                Ok(Refill::Later) => {
                    if let Some(slot) = self.conns[conn as usize].as_mut() {
                        slot.unsealed = Some(unsealed);
                    }
                    self.sealing.push(conn);
                    continue;
                }
                Ok(_) => self.seal(conn, *unsealed, false),
                Err(code) => Err(NetEvent::Broken(conn, Direction::Write, code)),
            };
            match result {
                Ok(()) => at_once |= !self.wire.is_sending(conn),
                Err(event) => self.pending.push_back(event),
            }
        }
        at_once
    }

    /// When all its bytes were sealed: what follows them.
    fn refill(&self, unsealed: &mut Unsealed) -> Result<Refill, i32> {
        let Unsealed { payload, at } = unsealed;
        let Payload::Owned(outgoing) = payload else {
            return Ok(Refill::Nothing);
        };
        if *at < outgoing.bytes().len() {
            return Ok(Refill::Nothing);
        }
        let refill = self.read_ahead.refill(outgoing, &self.waker)?;
        if refill == Refill::Piece {
            *at = 0;
        }
        Ok(refill)
    }
}
