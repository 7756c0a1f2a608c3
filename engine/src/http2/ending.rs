//! How connections that users share end, and what becomes of the users: notified at once where a request
//! was lost, sent elsewhere where it had not gone out.

use prony_h2::{ErrorCode, Tally};

use super::{Group, Http2Driver, Pending, PlaceState, SIDES, SideState};
use crate::measure::counters::ErrorKind;
use crate::measure::http2::Http2Figures;
use crate::net::{ConnId, Driver, Lost, NetEvent};
use crate::payload::Payload;

pub(super) fn add_tally(figures: &mut Http2Figures, tally: &Tally) {
    figures.streams_opened += tally.streams_opened;
    figures.pings_received += tally.pings;
    figures.settings_received += tally.settings;
    figures.header_list_bytes_sent += tally.header_list_bytes_sent;
    figures.header_block_bytes_sent += tally.header_block_bytes_sent;
    figures.header_list_bytes_received += tally.header_list_bytes_received;
    figures.header_block_bytes_received += tally.header_block_bytes_received;
    figures.header_fields_received += tally.header_fields_received;
    figures.receive_window_used_up += tally.receive_window_used_up;
}

/// How a connection ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The other side closed it.
    Closed,
    Broken(crate::net::Direction, i32),
    Unsecured(String),
    /// The client's kernel refused something.
    Refused(i32),
    /// The server broke the protocol.
    Fault(ErrorKind, String),
}

impl End {
    fn event(&self, conn: ConnId) -> NetEvent {
        match self {
            Self::Closed => NetEvent::Closed(conn),
            Self::Broken(direction, code) => NetEvent::Broken(conn, *direction, *code),
            Self::Unsecured(reason) => NetEvent::Unsecured(conn, Box::new(reason.clone())),
            Self::Refused(code) => NetEvent::Refused(conn, *code),
            Self::Fault(kind, reason) => lost(conn, *kind, reason.clone()),
        }
    }
}

/// A request ended without a response, and its connection stays.
pub(super) fn lost(conn: ConnId, kind: ErrorKind, reason: String) -> NetEvent {
    NetEvent::Lost(conn, Box::new(Lost { kind, reason }))
}

impl<D: Driver> Http2Driver<D> {
    pub(super) fn take_joining(&mut self, number: usize) -> Vec<ConnId> {
        let group = &mut self.groups[number];
        group.leader = None;
        let joining = std::mem::take(&mut group.joining);
        group.members -= joining.len() as u32;
        for conn in &joining {
            self.places[*conn as usize].state = PlaceState::Detached;
        }
        joining
    }

    /// Requests that wait for a stream get none.
    pub(super) fn lose_waiting(&mut self, number: usize, end: &End) {
        for conn in std::mem::take(&mut self.groups[number].waiting) {
            let place = &mut self.places[conn as usize];
            place.waiting = None;
            if place.state == PlaceState::Attached {
                place.state = PlaceState::Detached;
                self.groups[number].members -= 1;
            }
            self.push_end(conn, end);
        }
    }

    fn push_end(&mut self, conn: ConnId, end: &End) {
        self.push_event(end.event(conn));
        if let End::Fault(..) = end {
            // Its user takes the connection to be there still.
            self.push_event(NetEvent::Closed(conn));
        }
    }

    /// A connection has ended, and with it all that was under way on it.
    pub(super) fn end(&mut self, side: ConnId, end: &End) {
        let now_ns = self.wire.now_ns();
        let number = side as usize / SIDES;
        let (by_server, counted) = (
            matches!(end, End::Closed | End::Broken(..)),
            matches!(
                self.sides[side as usize].state,
                SideState::Securing | SideState::Open
            ),
        );
        if self.sides[side as usize].state != SideState::Open {
            let leader = self.groups[number].leader;
            for conn in self.take_joining(number) {
                self.push_event(match end {
                    // Only the leader is notified of the handshake.
                    End::Unsecured(reason) if leader != Some(conn) => {
                        lost(conn, ErrorKind::Tls, reason.clone())
                    }
                    _ => end.event(conn),
                });
            }
            self.lose_waiting(number, end);
        } else {
            for conn in self.on_side(side) {
                let place = &mut self.places[conn as usize];
                if place.waiting.is_some() {
                    continue;
                }
                let under_way = place.stream != 0;
                place.give_up(now_ns, &mut self.figures);
                if under_way {
                    // What came of a response that is not whole is of no use.
                    self.forget(conn);
                    self.detach(conn);
                    self.push_end(conn, end);
                } else {
                    self.pending.push_back(Pending::Leaves(conn));
                }
            }
            if self.groups[number].current == Some(side) {
                self.lose_waiting(number, end);
            }
        }
        if counted {
            self.count_closed(by_server);
        }
        self.shut(side);
        self.go_on(number);
    }

    pub(super) fn count_closed(&mut self, by_server: bool) {
        if by_server {
            self.figures.connections.closed_by_server += 1;
        } else {
            self.figures.connections.closed_by_client += 1;
        }
    }

    /// Closes the connection beneath; the next may use its side.
    pub(super) fn shut(&mut self, side: ConnId) {
        let slot = &mut self.sides[side as usize];
        if let Some(mut client) = slot.client.take() {
            add_tally(&mut self.figures, &client.take_tally());
        }
        slot.out.clear();
        slot.senders.clear();
        slot.last.clear();
        slot.sent_last = 0;
        slot.state = SideState::Closed;
        slot.draining = false;
        let group = &mut self.groups[side as usize / SIDES];
        if group.current == Some(side) {
            group.current = None;
        }
        self.wire.close(side);
    }

    /// The users of a group who need a connection get one.
    pub(super) fn go_on(&mut self, number: usize) {
        let Group {
            joining, waiting, ..
        } = &self.groups[number];
        if !joining.is_empty() || !waiting.is_empty() {
            self.open(number);
        }
    }

    /// The server goes away: requests that it has looked at end here, others go out elsewhere.
    pub(super) fn drain(&mut self, side: ConnId, reason: &str) {
        let number = side as usize / SIDES;
        let slot = &mut self.sides[side as usize];
        slot.draining = true;
        let useful = slot.completed > 0;
        if self.groups[number].current == Some(side) {
            self.groups[number].current = None;
        }
        for conn in self.on_side(side) {
            let place = &self.places[conn as usize];
            if place.stream == 0 && place.waiting.is_none() {
                self.pending.push_back(Pending::Leaves(conn));
            }
        }
        if !useful {
            // A server that goes away before the first response would do so again.
            let end = End::Fault(ErrorKind::GoAway, reason.to_owned());
            self.lose_waiting(number, &end);
        }
        self.finish_draining(side);
        self.go_on(number);
    }

    /// Closes a connection on which the server waits for nothing more.
    pub(super) fn finish_draining(&mut self, side: ConnId) {
        let slot = &self.sides[side as usize];
        let idle = slot
            .client
            .as_ref()
            .is_some_and(|client| client.open_streams() == 0);
        if slot.draining && idle {
            self.count_closed(true);
            self.shut(side);
            self.go_on(side as usize / SIDES);
        }
    }

    pub(super) fn close_group(&mut self, number: usize) {
        for side in number * SIDES..(number + 1) * SIDES {
            let slot = &mut self.sides[side];
            match slot.state {
                SideState::Closed => continue,
                SideState::Connecting => {}
                SideState::Securing => self.count_closed(false),
                SideState::Open => {
                    self.send_goaway(side as ConnId);
                    self.count_closed(false);
                }
            }
            self.shut(side as ConnId);
        }
    }

    /// GOAWAY, which must be on its way before the connection is closed.
    pub(super) fn send_goaway(&mut self, side: ConnId) {
        let slot = &mut self.sides[side as usize];
        if let Some(client) = &slot.client {
            client.leave(ErrorCode::NO_ERROR, &mut slot.out);
        }
        if self.wire.is_sending(side) {
            return;
        }
        let out = std::mem::take(&mut slot.out);
        self.figures.connections.bytes_sent += out.len() as u64;
        self.wire.send_last(side, Payload::bytes(out));
        // A driver that cannot flush says so at its next wait.
        let _ = self.wire.flush();
    }
}
