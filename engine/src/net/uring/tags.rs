//! The user data of an operation: its kind, and which connection it belongs to.

use crate::net::ConnId;

pub(super) const CONNECT: u64 = 1;
pub(super) const SEND: u64 = 2;
pub(super) const RECEIVE: u64 = 3;
pub(super) const CANCEL: u64 = 4;
pub(super) const WAKE: u64 = 5;
/// A send whose end is reported; the low half of its tag is the place of the bytes and not the connection.
pub(super) const SEND_REPORTED: u64 = 6;
/// The eventfd that a ring waits for beside its own completions.
pub(super) const EVENTFD: u64 = 7;

/// What of a generation is carried along.
pub(super) const GENERATION: u32 = 0x0fff_ffff;

pub(super) fn tag(operation: u64, generation: u32, conn: ConnId) -> u64 {
    operation << 60 | u64::from(generation & GENERATION) << 32 | u64::from(conn)
}

/// The operation, the generation and the low half of a tag.
#[inline]
pub(super) fn untag(data: u64) -> (u64, u32, u32) {
    (data >> 60, (data >> 32) as u32 & GENERATION, data as u32)
}
