//! Sends of bytes that belong to one request alone: kept in their place until the kernel is done with them, and filled again
//! while there is more to come.

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::Fixed;

use super::Uring;
use crate::net::tags::*;
use crate::net::{ConnId, Direction, Event};
use crate::payload::Outgoing;

/// A payload of one send alone.
pub(super) struct Owned {
    conn: ConnId,
    generation: u32,
    outgoing: Outgoing,
    /// The connection was closed: nothing is to follow.
    cancelled: bool,
}

/// More spare memory than this is given back.
const MAX_SPARE_BYTES: usize = 1024 * 1024;

impl Uring {
    fn push_owned(&mut self, place: u32) {
        let Some(owned) = &self.owned[place as usize] else {
            return;
        };
        let bytes = owned.outgoing.bytes();
        let entry = opcode::Send::new(Fixed(owned.conn), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(tag(SEND_OWNED, owned.generation, place));
        self.push(entry);
    }

    pub(super) fn send_owned(&mut self, conn: ConnId, outgoing: Outgoing) {
        let owned = Some(Owned {
            conn,
            generation: self.conns[conn as usize].generation,
            outgoing,
            cancelled: false,
        });
        let place = if let Some(place) = self.free.pop() {
            self.owned[place as usize] = owned;
            place
        } else {
            self.owned.push(owned);
            (self.owned.len() - 1) as u32
        };
        self.conns[conn as usize].sending = true;
        self.push_owned(place);
    }

    /// A send of owned bytes ended: goes on with what follows them, or gives their place back.
    pub(super) fn sent_owned(&mut self, place: u32, result: i32) -> Option<Event> {
        let owned = self.owned.get_mut(place as usize)?.as_mut()?;
        let (conn, cancelled) = (owned.conn, owned.cancelled);
        let more = if result < 0 || cancelled {
            Ok(false)
        } else if (result as usize) < owned.outgoing.bytes().len() {
            Err(libc::EPIPE)
        } else {
            owned
                .outgoing
                .refill()
                .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
        };
        if more == Ok(true) {
            self.push_owned(place);
            return None;
        }
        if let Some(owned) = self.owned[place as usize].take() {
            let spare = owned.outgoing.into_spare();
            if spare.capacity() <= MAX_SPARE_BYTES {
                self.spare = spare;
            }
        }
        self.free.push(place);
        if cancelled {
            return None;
        }
        self.conns[conn as usize].sending = false;
        if self.accepted.is_kept() {
            self.accepted.set(conn, self.happened_ns());
        }
        let code = if result < 0 {
            Some(-result)
        } else {
            more.err()
        };
        code.map(|code| Event::Broken(conn, Direction::Write, code))
    }

    /// Nothing of what this connection still had to send is to follow.
    pub(super) fn cancel_owned(&mut self, conn: ConnId, generation: u32) {
        let of_conn = |owned: &Option<Owned>| {
            owned
                .as_ref()
                .is_some_and(|owned| owned.conn == conn && owned.generation == generation)
        };
        let Some(place) = self.owned.iter().position(of_conn) else {
            return;
        };
        if let Some(owned) = &mut self.owned[place] {
            owned.cancelled = true;
        }
        let entry = opcode::AsyncCancel::new(tag(SEND_OWNED, generation, place as u32))
            .build()
            .user_data(CANCEL << 60)
            .flags(Flags::SKIP_SUCCESS);
        self.push(entry);
    }
}
