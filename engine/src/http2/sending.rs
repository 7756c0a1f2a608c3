//! Requests on their way: written as streams, held back while the server takes no more of them, and
//! their bodies sent as its windows allow.

use prony_h2::{ErrorCode, Fields};

use super::message::{Written, read_request};
use super::{Body, Http2Driver, Prepared, SideState, Waiting};
use crate::net::read_ahead::Refill;
use crate::net::{ConnId, Direction, Driver, NetEvent};
use crate::payload::{Outgoing, Payload};

/// Bodies wait in the client when so much is on its way to the kernel.
const MAX_UNSENT_BYTES: usize = 256 * 1024;

/// What of a body goes out now.
enum Progress {
    Whole,
    /// The server's windows are used up.
    Blocked,
    /// More follows after the next send.
    Later,
    /// The next piece of its file is being read.
    Unread,
    /// The file cannot be read.
    Failed(i32),
}

impl<D: Driver> Http2Driver<D> {
    pub(super) fn send_request(&mut self, conn: ConnId, payload: Payload) {
        let number = self.group_of(conn);
        let group = &self.groups[number];
        let free = group.current.filter(|side| {
            let client = self.sides[*side as usize].client.as_ref();
            group.waiting.is_empty() && client.is_some_and(|client| client.may_open())
        });
        match free {
            Some(side) => self.begin_stream(conn, side, payload),
            None => {
                let since_ns = self.wire.now_ns();
                let waiting = Waiting { payload, since_ns };
                self.places[conn as usize].waiting = Some(Box::new(waiting));
                self.groups[number].waiting.push_back(conn);
                self.open_again(number);
            }
        }
    }

    /// A connection that has used up its ids is followed by another.
    fn open_again(&mut self, number: usize) {
        if let Some(side) = self.groups[number].current
            && let Some(client) = &self.sides[side as usize].client
            && client.is_closing()
        {
            return self.drain(side, "the ids of streams are used up");
        }
        self.open(number);
    }

    /// Requests that wait go out as far as the server takes more.
    pub(super) fn let_wait_on(&mut self, number: usize) {
        while let Some(side) = self.groups[number].current
            && let Some(client) = &self.sides[side as usize].client
            && client.may_open()
            && let Some(conn) = self.groups[number].waiting.pop_front()
        {
            if let Some(waiting) = self.places[conn as usize].waiting.take() {
                let now_ns = self.wire.now_ns();
                let waited_ns = now_ns.saturating_sub(waiting.since_ns);
                self.figures.waited_for_stream(waited_ns);
                self.begin_stream(conn, side, waiting.payload);
            }
        }
    }

    fn begin_stream(&mut self, conn: ConnId, side: ConnId, payload: Payload) {
        match payload {
            Payload::Fixed(fixed) => self.begin_fixed(conn, side, fixed),
            Payload::Owned(outgoing) => self.begin_owned(conn, side, outgoing),
        }
        self.mark_dirty(side);
        if self.times_sends {
            self.places[conn as usize].accepted_ns = None;
            self.sides[side as usize].last.push(conn);
        }
    }

    fn begin_fixed(&mut self, conn: ConnId, side: ConnId, fixed: u32) {
        let secure = self.is_secure(side as usize / super::SIDES);
        let prepared = &mut self.prepared[fixed as usize];
        let bytes = &self.fixed[fixed as usize];
        let prepared = prepared.get_or_insert_with(|| prepare(bytes, fixed));
        let request = &prepared.request[usize::from(secure)];
        let body = &bytes[prepared.body_from..];
        let (place, slot) = (
            &mut self.places[conn as usize],
            &mut self.sides[side as usize],
        );
        let Some(client) = &mut slot.client else {
            return;
        };
        place.side = side;
        place.head_request = request.is_head();
        place.stream = client.open(conn, request, body.is_empty(), &mut slot.out);
        if body.is_empty() {
            return;
        }
        let taken = client.send(place.stream, body, true, &mut slot.out);
        if taken < body.len() {
            let rest = Outgoing::new(body[taken..].to_vec(), None);
            let left = (body.len() - taken) as u64;
            self.keep_body(conn, side, rest, 0, left);
        }
    }

    fn begin_owned(&mut self, conn: ConnId, side: ConnId, outgoing: Outgoing) {
        let scheme = scheme(self.is_secure(side as usize / super::SIDES));
        let read = read_request(outgoing.bytes(), scheme, false, &mut self.request);
        let (place, slot) = (
            &mut self.places[conn as usize],
            &mut self.sides[side as usize],
        );
        let (Some(written), Some(client)) = (read, &mut slot.client) else {
            return self.push_event(NetEvent::Refused(conn, libc::EINVAL));
        };
        let Written {
            head_bytes,
            body_bytes,
        } = written;
        let end = body_bytes == 0;
        place.side = side;
        place.head_request = self.request.is_head();
        place.stream = client.open(conn, &self.request, end, &mut slot.out);
        if end {
            self.spare = outgoing.into_spare();
        } else {
            self.keep_body(conn, side, outgoing, head_bytes, body_bytes);
        }
    }

    fn keep_body(
        &mut self,
        conn: ConnId,
        side: ConnId,
        mut outgoing: Outgoing,
        at: usize,
        left: u64,
    ) {
        self.read_ahead.begin(&mut outgoing, &self.waker);
        let body = Body {
            outgoing,
            at,
            left,
            unread: false,
            blocked_ns: None,
        };
        self.places[conn as usize].body = Some(Box::new(body));
        if self.send_body(conn, side) {
            self.sides[side as usize].senders.push_back(conn);
        }
    }

    /// Sends of a body what can go out; whether more is left.
    fn send_body(&mut self, conn: ConnId, side: ConnId) -> bool {
        let Some(mut body) = self.places[conn as usize].body.take() else {
            return false;
        };
        let stream = self.places[conn as usize].stream;
        let slot = &mut self.sides[side as usize];
        let Some(client) = &mut slot.client else {
            return false;
        };
        let before = body.left;
        let progress = loop {
            if slot.out.len() > MAX_UNSENT_BYTES {
                break Progress::Later;
            }
            let bytes = &body.outgoing.bytes()[body.at..];
            if bytes.is_empty() {
                match self.read_ahead.refill(&mut body.outgoing, &self.waker) {
                    Ok(Refill::Piece) => {
                        body.at = 0;
                        continue;
                    }
                    Ok(Refill::Later) => break Progress::Unread,
                    Ok(Refill::Nothing) => break Progress::Failed(libc::EIO),
                    Err(code) => break Progress::Failed(code),
                }
            }
            let bytes = &bytes[..bytes
                .len()
                .min(usize::try_from(body.left).unwrap_or(usize::MAX))];
            let end = bytes.len() as u64 == body.left;
            let taken = client.send(stream, bytes, end, &mut slot.out);
            body.at += taken;
            body.left -= taken as u64;
            if body.left == 0 {
                break Progress::Whole;
            }
            if taken < bytes.len() {
                break Progress::Blocked;
            }
        };
        if body.left < before
            && let Some(since_ns) = body.blocked_ns.take()
        {
            let blocked_ns = self.wire.now_ns().saturating_sub(since_ns);
            self.figures.was_blocked(blocked_ns);
        }
        body.unread = matches!(progress, Progress::Unread);
        match progress {
            Progress::Whole => return false,
            Progress::Later | Progress::Unread => {}
            Progress::Blocked => {
                let now_ns = self.wire.now_ns();
                body.blocked_ns.get_or_insert(now_ns);
            }
            Progress::Failed(code) => {
                client.reset(stream, ErrorCode::CANCEL, &mut slot.out);
                self.places[conn as usize].stream = 0;
                self.push_event(NetEvent::Broken(conn, Direction::Write, code));
                return false;
            }
        }
        self.places[conn as usize].body = Some(body);
        true
    }

    /// Hands over what is to go out, as far as the driver beneath takes it.
    pub(super) fn submit(&mut self) {
        for side in std::mem::take(&mut self.dirty) {
            self.sides[side as usize].dirty = false;
            if !self.submit_side(side) {
                self.mark_dirty(side);
            }
        }
    }

    /// Whether nothing is left that could go out now.
    pub(super) fn submit_side(&mut self, side: ConnId) -> bool {
        loop {
            if self.sides[side as usize].state != SideState::Open {
                return true;
            }
            if self.wire.is_sending(side) {
                return false;
            }
            self.send_bodies(side);
            if self.sides[side as usize].out.is_empty() {
                return !self.reads(side);
            }
            if self.times_sends {
                self.note_accepted(side);
            }
            let mut spare = self.wire.spare();
            spare.clear();
            let slot = &mut self.sides[side as usize];
            let out = std::mem::replace(&mut slot.out, spare);
            self.figures.connections.bytes_sent += out.len() as u64;
            self.wire.send(side, Payload::bytes(out));
            // What the windows allow of bodies follows when the kernel has taken this.
            if !self.can_send_more(side) {
                return !self.reads(side);
            }
        }
    }

    /// Whether the next piece of a body is being read.
    fn reads(&self, side: ConnId) -> bool {
        let bodies = self.sides[side as usize].senders.iter();
        let bodies = bodies.filter_map(|conn| self.places[*conn as usize].body.as_ref());
        bodies.into_iter().any(|body| body.unread)
    }

    fn send_bodies(&mut self, side: ConnId) {
        for _ in 0..self.sides[side as usize].senders.len() {
            if self.sides[side as usize].out.len() > MAX_UNSENT_BYTES {
                return;
            }
            if let Some(conn) = self.sides[side as usize].senders.pop_front()
                && self.send_body(conn, side)
            {
                self.sides[side as usize].senders.push_back(conn);
            }
        }
    }

    fn can_send_more(&self, side: ConnId) -> bool {
        let slot = &self.sides[side as usize];
        let Some(client) = &slot.client else {
            return false;
        };
        slot.senders
            .iter()
            .any(|conn| !client.is_blocked(self.places[*conn as usize].stream))
    }

    /// Keeps of the last send when it was taken, before the next one.
    fn note_accepted(&mut self, side: ConnId) {
        let slot = &mut self.sides[side as usize];
        // The requests of this send were noted behind those of the last.
        let accepted_ns = self.wire.accepted_ns(side);
        for conn in slot.last.drain(..slot.sent_last) {
            self.places[conn as usize].accepted_ns = accepted_ns;
        }
        slot.sent_last = slot.last.len();
    }
}

fn scheme(secure: bool) -> &'static [u8] {
    if secure { b"https" } else { b"http" }
}

fn prepare(bytes: &[u8], number: u32) -> Box<Prepared> {
    let mut request = [Fields::default(), Fields::default()];
    let mut body_from = bytes.len();
    for (secure, request) in [false, true].into_iter().zip(&mut request) {
        if let Some(written) = read_request(bytes, scheme(secure), true, request) {
            body_from = written.head_bytes;
        }
        request.set_number(number);
    }
    Box::new(Prepared { request, body_from })
}
