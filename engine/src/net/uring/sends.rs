//! Sends of bytes made for one request. They stay in place until the kernel is done with them, and
//! are refilled while more follows.

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::Fixed;

use super::Uring;
use crate::net::uring::tags::*;
use crate::net::{ConnId, Direction, NetEvent};
use crate::payload::Outgoing;

/// A payload of one send alone.
pub(super) struct Owned {
    conn: ConnId,
    generation: u32,
    outgoing: Outgoing,
}

/// More spare memory than this is given back.
const MAX_SPARE_BYTES: usize = 1024 * 1024;

impl Uring {
    /// False: the operation was refused, and the place is free again.
    fn push_owned(&mut self, place: u32) -> bool {
        let Some(owned) = &self.owned[place as usize] else {
            return false;
        };
        let conn = owned.conn;
        let bytes = owned.outgoing.bytes();
        let entry = opcode::Send::new(Fixed(owned.conn), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(tag(SEND_OWNED, owned.generation, place));
        let pushed = self.push_for(conn, entry);
        if !pushed {
            self.free_owned(place);
        }
        pushed
    }

    pub(super) fn send_owned(&mut self, conn: ConnId, outgoing: Outgoing) {
        let owned = Some(Owned {
            conn,
            generation: self.conns[conn as usize].generation,
            outgoing,
        });
        let place = if let Some(place) = self.free.pop() {
            self.owned[place as usize] = owned;
            place
        } else {
            self.owned.push(owned);
            (self.owned.len() - 1) as u32
        };
        if self.push_owned(place) {
            self.conns[conn as usize].sending += 1;
        }
    }

    /// Whose bytes are at this place.
    pub(super) fn owned_conn(&self, place: u32) -> Option<ConnId> {
        Some(self.owned.get(place as usize)?.as_ref()?.conn)
    }

    /// The kernel is done with the bytes at this place.
    pub(super) fn free_owned(&mut self, place: u32) {
        if let Some(owned) = self.owned[place as usize].take() {
            let spare = owned.outgoing.into_spare();
            if spare.capacity() <= MAX_SPARE_BYTES {
                self.spare = spare;
            }
            self.free.push(place);
        }
    }

    /// A send of owned bytes ended: goes on with what follows them, or gives their place back.
    pub(super) fn sent_owned(&mut self, place: u32, conn: ConnId, result: i32) -> Option<NetEvent> {
        let owned = self.owned.get_mut(place as usize)?.as_mut()?;
        let more = if result < 0 {
            Err(-result)
        } else if (result as usize) < owned.outgoing.bytes().len() {
            Err(libc::EPIPE)
        } else {
            owned
                .outgoing
                .refill()
                .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
        };
        if more == Ok(true) {
            if !self.push_owned(place) {
                self.sent(conn);
            }
            return None;
        }
        self.free_owned(place);
        self.sent(conn);
        let code = more.err()?;
        Some(NetEvent::Broken(conn, Direction::Write, code))
    }

    /// Nothing of what this connection still had to send is to follow.
    pub(super) fn cancel_owned(&mut self, conn: ConnId, generation: u32) {
        let of_conn = |owned: &Option<Owned>| {
            owned
                .as_ref()
                .is_some_and(|owned| owned.conn == conn && owned.generation == generation)
        };
        for place in 0..self.owned.len() {
            if of_conn(&self.owned[place]) {
                let entry = opcode::AsyncCancel::new(tag(SEND_OWNED, generation, place as u32))
                    .build()
                    .user_data(CANCEL << 60)
                    .flags(Flags::SKIP_SUCCESS);
                self.push_or_keep(entry);
            }
        }
    }
}
