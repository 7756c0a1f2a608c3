//! What a completion of the ring means: from its tag and result to the event that is told.

use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

use super::{BUFFER_GROUP, Uring};
use crate::net::tags::*;
use crate::net::{ConnId, Direction, Event, Received};

impl Uring {
    pub(super) fn receive(&mut self, conn: ConnId) {
        let entry = opcode::RecvMulti::new(Fixed(conn), BUFFER_GROUP)
            .build()
            .user_data(self.tag(RECEIVE, conn));
        self.conns[conn as usize].receiving = true;
        self.push(entry);
    }

    fn received(&mut self, conn: ConnId, current: bool, result: i32, flags: u32) -> Option<Event> {
        let buffer = cqueue::buffer_select(flags);
        if !current {
            if let Some(buffer) = buffer {
                self.buffers.put(buffer);
            }
            return None;
        }
        let ended = !cqueue::more(flags);
        if ended {
            self.conns[conn as usize].receiving = false;
        }
        if result > 0
            && let Some(buffer) = buffer
        {
            if ended {
                self.receive(conn);
            }
            return Some(Event::Received(Received {
                conn,
                buffer,
                length: result as u32,
            }));
        }
        if let Some(buffer) = buffer {
            self.buffers.put(buffer);
        }
        match -result {
            0 => Some(Event::Closed(conn)),
            // All buffers were in use. Many connections say so at once; one growth is for all of them.
            code @ (libc::ENOBUFS | libc::EINTR | libc::EAGAIN) => {
                if code == libc::ENOBUFS && !std::mem::replace(&mut self.grew, true) {
                    self.buffers.grow();
                }
                self.receive(conn);
                None
            }
            code => Some(Event::Broken(conn, Direction::Read, code)),
        }
    }

    pub(super) fn event(&mut self, entry: &cqueue::Entry) -> Option<Event> {
        let data = entry.user_data();
        let conn = data as ConnId;
        let operation = data >> 60;
        if operation == WAKE {
            self.arm_waker();
            return Some(Event::Woken);
        }
        if operation == BELL {
            if !cqueue::more(entry.flags()) {
                self.arm_bell();
            }
            return None;
        }
        if operation == CANCEL {
            return None;
        }
        if operation == SEND_OWNED {
            return self.sent_owned(conn, entry.result());
        }
        let slot = self.conns.get_mut(conn as usize)?;
        let current =
            slot.open && (slot.generation & 0x0fff_ffff) == (data >> 32) as u32 & 0x0fff_ffff;
        let result = entry.result();
        match operation {
            RECEIVE => self.received(conn, current, result, entry.flags()),
            CONNECT if current => {
                slot.connecting = false;
                if result == 0 {
                    self.receive(conn);
                    Some(Event::Connected(conn))
                } else {
                    Some(Event::ConnectFailed(conn, -result))
                }
            }
            SEND if current => {
                slot.sending = false;
                if self.accepted.is_kept() {
                    self.accepted.set(conn, self.happened_ns());
                }
                (result < 0).then_some(Event::Broken(conn, Direction::Write, -result))
            }
            _ => None,
        }
    }
}
