//! Receives: one multishot operation per connection. Where the kernel says when it took in what is
//! read, the operation reads messages: the kernel then puts control data before the bytes.

use io_uring::types::{Fixed, RecvMsgOut};
use io_uring::{cqueue, opcode};

use super::tags::RECEIVE;
use super::{BUFFER_GROUP, Uring};
use crate::net::arrival::{self, CONTROL_BYTES};
use crate::net::{ConnId, Direction, NetEvent, Received};

/// Of a stamped read the bytes begin here in their buffer: behind four 32-bit lengths and flags
/// (`struct io_uring_recvmsg_out`), and the control data.
pub(super) const LEAD_BYTES: usize = 16 + CONTROL_BYTES;

/// The message of a stamped read, which says how much room its control data has.
pub(super) struct StampedRead(Box<libc::msghdr>);

impl StampedRead {
    pub(super) fn new() -> Self {
        // SAFETY: a plain C structure of integers and pointers, for which all zeros are valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_controllen = CONTROL_BYTES as _;
        Self(Box::new(message))
    }
}

impl Uring {
    pub(super) fn receive(&mut self, conn: ConnId) {
        let entry = if self.conns[conn as usize].stamped {
            let message = &raw const *self.stamped_read.0;
            opcode::RecvMsgMulti::new(Fixed(conn), message, BUFFER_GROUP).build()
        } else {
            opcode::RecvMulti::new(Fixed(conn), BUFFER_GROUP).build()
        };
        let entry = entry.user_data(self.tag(RECEIVE, conn));
        self.conns[conn as usize].receiving = self.push_for(conn, entry);
    }

    pub(super) fn received(&mut self, conn: ConnId, result: i32, flags: u32) -> Option<NetEvent> {
        let buffer = cqueue::buffer_select(flags).and_then(|index| self.buffers.filled(index));
        let ended = !cqueue::more(flags);
        let slot = &mut self.conns[conn as usize];
        if ended {
            slot.receiving = false;
        }
        let stamped = slot.stamped;
        let lead = if stamped { LEAD_BYTES as i32 } else { 0 };
        if result > lead && buffer.is_some() {
            if ended {
                self.receive(conn);
            }
            return Some(NetEvent::Received(Received {
                conn,
                buffer,
                stamped,
                length: (result - lead) as u32,
            }));
        }
        if let Some(buffer) = buffer {
            self.buffers.put(buffer);
        }
        match -result {
            // A message without bytes is the end too.
            code if code <= 0 => Some(NetEvent::Closed(conn)),
            // All buffers were in use. Many connections say so at once; one growth is for all.
            code @ (libc::ENOBUFS | libc::EINTR | libc::EAGAIN) => {
                if code == libc::ENOBUFS && !std::mem::replace(&mut self.grew, true) {
                    self.buffers.grow();
                }
                self.receive(conn);
                None
            }
            code => Some(NetEvent::Broken(conn, Direction::Read, code)),
        }
    }

    /// When the last packet of a stamped read had come.
    pub(super) fn stamp_of(&self, received: &Received) -> Option<u64> {
        let length = LEAD_BYTES as u32 + received.length;
        let buffer = received.buffer.as_ref()?;
        let read = self.buffers.bytes(buffer, 0, length);
        let message = RecvMsgOut::parse(read, &self.stamped_read.0).ok()?;
        arrival::arrived_ns(message.control_data())
    }
}
