//! Turns a completion (tag and result) into an event, and discards those of connections that have
//! been closed.

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

    /// What a completion says of a connection that is closed is not told: only what it holds is
    /// given back.
    #[cold]
    fn discard(&mut self, operation: u64, index: u32, flags: u32) {
        if operation == SEND_OWNED {
            self.free_owned(index);
        }
        if let Some(buffer) = cqueue::buffer_select(flags) {
            self.buffers.put(buffer);
        }
    }

    pub(super) fn event(&mut self, entry: &cqueue::Entry) -> Option<NetEvent> {
        let (operation, generation, index) = untag(entry.user_data());
        let (result, flags) = (entry.result(), entry.flags());
        let conn = match operation {
            WAKE => {
                self.arm_waker();
                return Some(NetEvent::Woken);
            }
            EVENTFD => {
                if !cqueue::more(flags) {
                    self.arm_eventfd();
                }
                return None;
            }
            CANCEL => return None,
            SEND_OWNED => self.owned_conn(index)?,
            _ => index,
        };
        if !self.is_current(conn, generation) {
            self.discard(operation, index, flags);
            return None;
        }
        match operation {
            RECEIVE => self.received(conn, result, flags),
            CONNECT => {
                self.conns[conn as usize].connecting = false;
                if result == 0 {
                    self.receive(conn);
                    Some(NetEvent::Connected(conn))
                } else {
                    Some(NetEvent::ConnectFailed(conn, -result))
                }
            }
            SEND => {
                // A send that reports no success and failed was not counted; its connection is of
                // no more use.
                self.sent(conn);
                (result < 0).then_some(NetEvent::Broken(conn, Direction::Write, -result))
            }
            SEND_OWNED => self.sent_owned(index, conn, result),
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
