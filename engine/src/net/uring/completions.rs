//! Turns a completion into an event; those of closed connections are discarded.

use io_uring::cqueue;

use super::Uring;
use crate::net::uring::tags::*;
use crate::net::{ConnId, Direction, NetEvent};

impl Uring {
    /// Whether an operation belongs to the connection that is open at this index.
    #[inline]
    fn is_current(&self, conn: ConnId, generation: u32) -> bool {
        let slot = self.conns.get(conn as usize);
        slot.is_some_and(|slot| slot.open && slot.generation & GENERATION == generation)
    }

    /// What a completion of a closed connection holds is given back.
    #[cold]
    fn discard(&mut self, operation: u64, index: u32, flags: u32) {
        if operation == SEND_REPORTED {
            self.free_reported(index);
        }
        let buffer = cqueue::buffer_select(flags).and_then(|index| self.buffers.filled(index));
        if let Some(buffer) = buffer {
            self.buffers.put(buffer);
        }
    }

    pub(super) fn event(&mut self, entry: &cqueue::Entry) -> Option<NetEvent> {
        let (operation, generation, index) = untag(entry.user_data());
        let (result, flags) = (entry.result(), entry.flags());
        let conn = match operation {
            WAKE => {
                // One that cannot be read would say so again at once.
                let passes = [libc::EINTR, libc::EAGAIN];
                if result >= 0 || passes.contains(&-result) {
                    self.arm_waker();
                }
                self.send_read();
                return Some(NetEvent::Woken);
            }
            EVENTFD => {
                if !cqueue::more(flags) {
                    self.arm_eventfd();
                }
                return None;
            }
            CANCEL => return None,
            SEND_REPORTED => self.reported_conn(index)?,
            _ => index,
        };
        if !self.is_current(conn, generation) {
            self.discard(operation, index, flags);
            return None;
        }
        match operation {
            RECEIVE => self.received(conn, result, flags),
            CONNECT => {
                if result == 0 {
                    self.conns[conn as usize].connecting = false;
                    self.receive(conn);
                    Some(NetEvent::Connected(conn))
                } else {
                    Some(NetEvent::ConnectFailed(conn, -result))
                }
            }
            SEND => {
                // Its success is not reported: it failed, perhaps when part of it was out.
                let code = if result < 0 { -result } else { libc::EPIPE };
                Some(NetEvent::Broken(conn, Direction::Write, code))
            }
            SEND_REPORTED => self.sent_reported(index, conn, result),
            _ => None,
        }
    }

    /// A send whose success is reported has ended.
    pub(super) fn sent(&mut self, conn: ConnId) {
        let slot = &mut self.conns[conn as usize];
        slot.sending = slot.sending.saturating_sub(1);
        if self.accepted.is_kept() {
            self.accepted.set(conn, self.happened_ns());
        }
    }
}
