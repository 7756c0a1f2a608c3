//! Sends whose end is reported: bytes made for one request, which stay in place until the kernel is done with
//! them and are refilled while more follows, and fixed ones that may go out in pieces.

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::Fixed;

use super::{Local, Uring};
use crate::net::read_ahead::Refill;
use crate::net::uring::tags::*;
use crate::net::{ConnId, Direction, NetEvent, Payload};

/// A send whose end is reported.
pub(super) struct Reported {
    conn: ConnId,
    generation: u32,
    payload: Payload,
}

/// More spare memory than this is given back.
const MAX_SPARE_BYTES: usize = 1024 * 1024;

impl Uring {
    /// False: the operation was refused, and the place is free again.
    fn push_reported(&mut self, place: u32) -> bool {
        let Some(reported) = &self.reported[place as usize] else {
            return false;
        };
        let conn = reported.conn;
        let bytes = reported.payload.now(&self.config.fixed);
        let entry = opcode::Send::new(Fixed(conn), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(tag(SEND_REPORTED, reported.generation, place));
        let pushed = self.push_for(conn, entry);
        if !pushed {
            self.free_reported(place);
        }
        pushed
    }

    pub(super) fn send_reported(&mut self, conn: ConnId, mut payload: Payload) {
        if let Payload::Owned(outgoing) = &mut payload {
            self.config.read_ahead.begin(outgoing, &self.waker);
        }
        let reported = Some(Reported {
            conn,
            generation: self.conns[conn as usize].generation,
            payload,
        });
        let place = if let Some(place) = self.free.pop() {
            self.reported[place as usize] = reported;
            place
        } else {
            self.reported.push(reported);
            (self.reported.len() - 1) as u32
        };
        if self.push_reported(place) {
            self.conns[conn as usize].sending += 1;
        }
    }

    /// Whose bytes are at this place.
    pub(super) fn reported_conn(&self, place: u32) -> Option<ConnId> {
        Some(self.reported.get(place as usize)?.as_ref()?.conn)
    }

    /// The kernel is done with the bytes at this place.
    pub(super) fn free_reported(&mut self, place: u32) {
        if let Some(reported) = self.reported[place as usize].take() {
            if let Payload::Owned(outgoing) = reported.payload {
                let spare = outgoing.into_spare();
                if spare.capacity() <= MAX_SPARE_BYTES {
                    self.spare = spare;
                }
            }
            self.free.push(place);
        }
    }

    /// It ended: goes on with what follows its bytes, or gives its place back.
    pub(super) fn sent_reported(
        &mut self,
        place: u32,
        conn: ConnId,
        result: i32,
    ) -> Option<NetEvent> {
        let reported = self.reported.get_mut(place as usize)?.as_mut()?;
        let length = reported.payload.now(&self.config.fixed).len();
        let refill = if result < 0 {
            Err(-result)
        } else if (result as usize) < length {
            Err(libc::EPIPE)
        } else if let Payload::Owned(outgoing) = &mut reported.payload {
            self.config.read_ahead.refill(outgoing, &self.waker)
        } else {
            Ok(Refill::Nothing)
        };
        let code = self.follow(place, conn, refill)?;
        Some(NetEvent::Broken(conn, Direction::Write, code))
    }

    /// Goes on with what follows at a place when it has been read.
    pub(super) fn send_read(&mut self) {
        for (place, conn) in std::mem::take(&mut self.unread) {
            if let Some(Reported {
                payload: Payload::Owned(outgoing),
                ..
            }) = &mut self.reported[place as usize]
            {
                let refill = self.config.read_ahead.refill(outgoing, &self.waker);
                if let Some(code) = self.follow(place, conn, refill) {
                    self.push_local(conn, Local::Broken(code));
                }
            }
        }
    }

    /// Sends the piece, waits for it, or gives the place back; with the `errno` of a failure.
    fn follow(&mut self, place: u32, conn: ConnId, refill: Result<Refill, i32>) -> Option<i32> {
        match refill {
            Ok(Refill::Piece) => {
                if !self.push_reported(place) {
                    self.sent(conn);
                }
                return None;
            }
            Ok(Refill::Later) => {
                self.unread.push((place, conn));
                return None;
            }
            Ok(Refill::Nothing) | Err(_) => {}
        }
        self.free_reported(place);
        self.sent(conn);
        refill.err()
    }

    /// Nothing of what this connection still had to send is to follow.
    pub(super) fn cancel_reported(&mut self, conn: ConnId, generation: u32) {
        let of_conn = |reported: &Option<Reported>| {
            reported
                .as_ref()
                .is_some_and(|reported| reported.conn == conn && reported.generation == generation)
        };
        for place in 0..self.reported.len() {
            if !of_conn(&self.reported[place]) {
                continue;
            }
            let place = place as u32;
            let reads = self.unread.iter().position(|(unread, _)| *unread == place);
            if let Some(at) = reads {
                self.unread.swap_remove(at);
                self.free_reported(place);
            } else {
                let entry = opcode::AsyncCancel::new(tag(SEND_REPORTED, generation, place))
                    .build()
                    .user_data(CANCEL << 60)
                    .flags(Flags::SKIP_SUCCESS);
                self.push_or_keep(entry);
            }
        }
    }
}
