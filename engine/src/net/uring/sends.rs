//! Sends whose end is told: bytes made for one request, which stay in place until the kernel is done with
//! them and are refilled while more follows, and fixed ones that may go out in pieces.

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::Fixed;

use super::Uring;
use crate::net::uring::tags::*;
use crate::net::{ConnId, Direction, NetEvent, Payload};

/// A send whose end is told.
pub(super) struct Told {
    conn: ConnId,
    generation: u32,
    payload: Payload,
}

impl Told {
    fn bytes<'a>(&'a self, fixed: &'a [Vec<u8>]) -> &'a [u8] {
        match &self.payload {
            Payload::Fixed(index) => &fixed[*index as usize],
            Payload::Owned(outgoing) => outgoing.bytes(),
        }
    }
}

/// More spare memory than this is given back.
const MAX_SPARE_BYTES: usize = 1024 * 1024;

impl Uring {
    /// False: the operation was refused, and the place is free again.
    fn push_told(&mut self, place: u32) -> bool {
        let Some(told) = &self.told[place as usize] else {
            return false;
        };
        let conn = told.conn;
        let bytes = told.bytes(&self.config.fixed);
        let entry = opcode::Send::new(Fixed(conn), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(tag(SEND_TOLD, told.generation, place));
        let pushed = self.push_for(conn, entry);
        if !pushed {
            self.free_told(place);
        }
        pushed
    }

    pub(super) fn send_told(&mut self, conn: ConnId, payload: Payload) {
        let told = Some(Told {
            conn,
            generation: self.conns[conn as usize].generation,
            payload,
        });
        let place = if let Some(place) = self.free.pop() {
            self.told[place as usize] = told;
            place
        } else {
            self.told.push(told);
            (self.told.len() - 1) as u32
        };
        if self.push_told(place) {
            self.conns[conn as usize].sending += 1;
        }
    }

    /// Whose bytes are at this place.
    pub(super) fn told_conn(&self, place: u32) -> Option<ConnId> {
        Some(self.told.get(place as usize)?.as_ref()?.conn)
    }

    /// The kernel is done with the bytes at this place.
    pub(super) fn free_told(&mut self, place: u32) {
        if let Some(told) = self.told[place as usize].take() {
            if let Payload::Owned(outgoing) = told.payload {
                let spare = outgoing.into_spare();
                if spare.capacity() <= MAX_SPARE_BYTES {
                    self.spare = spare;
                }
            }
            self.free.push(place);
        }
    }

    /// It ended: goes on with what follows its bytes, or gives its place back.
    pub(super) fn sent_told(&mut self, place: u32, conn: ConnId, result: i32) -> Option<NetEvent> {
        let told = self.told.get_mut(place as usize)?.as_mut()?;
        let length = told.bytes(&self.config.fixed).len();
        let more = if result < 0 {
            Err(-result)
        } else if (result as usize) < length {
            Err(libc::EPIPE)
        } else if let Payload::Owned(outgoing) = &mut told.payload {
            outgoing
                .refill()
                .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
        } else {
            Ok(false)
        };
        if more == Ok(true) {
            if !self.push_told(place) {
                self.sent(conn);
            }
            return None;
        }
        self.free_told(place);
        self.sent(conn);
        let code = more.err()?;
        Some(NetEvent::Broken(conn, Direction::Write, code))
    }

    /// Nothing of what this connection still had to send is to follow.
    pub(super) fn cancel_told(&mut self, conn: ConnId, generation: u32) {
        let of_conn = |told: &Option<Told>| {
            told.as_ref()
                .is_some_and(|told| told.conn == conn && told.generation == generation)
        };
        for place in 0..self.told.len() {
            if of_conn(&self.told[place]) {
                let entry = opcode::AsyncCancel::new(tag(SEND_TOLD, generation, place as u32))
                    .build()
                    .user_data(CANCEL << 60)
                    .flags(Flags::SKIP_SUCCESS);
                self.push_or_keep(entry);
            }
        }
    }
}
