//! Connections that users share: who waits for one, who has it, and what becomes of them when it
//! ends.

use prony_h2::{Client, ErrorCode};

use super::{Group, Http2Driver, PlaceState, SIDES, Side, SideState, Told};
use crate::measure::counters::ErrorKind;
use crate::net::{ConnId, Driver, Lost, NetEvent};
use crate::tls::{PROTOCOLS, Secured};

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
    /// A user wants a connection.
    pub(super) fn join(&mut self, conn: ConnId, address: usize) {
        self.forget(conn);
        let number = self.group_of(conn);
        let place = &mut self.places[conn as usize];
        let group = &mut self.groups[number];
        if place.state == PlaceState::Detached {
            group.members += 1;
        }
        if let Some(side) = group.current
            && self.sides[side as usize]
                .client
                .as_ref()
                .is_some_and(|client| !client.is_closing())
        {
            place.state = PlaceState::Attached;
            place.side = side;
            return self.tell(NetEvent::Joined(conn));
        }
        place.state = PlaceState::Joining;
        group.joining.push(conn);
        group.address = address;
        self.open(number);
    }

    /// Opens the connection of a group, when it has none and one can be.
    pub(super) fn open(&mut self, number: usize) {
        let sides = number * SIDES..(number + 1) * SIDES;
        let coming =
            |side: &Side| matches!(side.state, SideState::Connecting | SideState::Securing);
        let group = &mut self.groups[number];
        if group.current.is_some() || self.sides[sides.clone()].iter().any(coming) {
            return;
        }
        // Without a free side both go away: the first to end makes room.
        let Some(side) = sides
            .clone()
            .find(|side| self.sides[*side].state == SideState::Closed)
        else {
            return;
        };
        group.leader = group.joining.first().copied();
        self.sides[side].state = SideState::Connecting;
        self.figures.connect_attempts += 1;
        self.wire.connect(side as ConnId, group.address);
    }

    pub(super) fn on_connected(&mut self, side: ConnId) {
        let number = side as usize / SIDES;
        self.figures.connections_opened += 1;
        let group = &mut self.groups[number];
        if group.leader.is_none() {
            group.leader = group.joining.first().copied();
        }
        if let Some(leader) = group.leader {
            self.tell(NetEvent::Connected(leader));
        }
        if self.is_secure(number) {
            self.sides[side as usize].state = SideState::Securing;
        } else {
            self.begin(side, None);
        }
    }

    pub(super) fn on_secured(&mut self, side: ConnId, secured: Secured) {
        let chosen = usize::from(secured.alpn)
            .checked_sub(1)
            .map(|place| PROTOCOLS[place]);
        if chosen == Some("h2") {
            return self.begin(side, Some(secured));
        }
        let chose = chosen.map_or("no protocol".to_owned(), |name| format!("\"{name}\""));
        let reason = format!("the server chose {chose} by ALPN, expected \"h2\" (HTTP/2)");
        self.end(side, &End::Unsecured(reason));
    }

    /// Requests may go out.
    fn begin(&mut self, side: ConnId, secured: Option<Secured>) {
        let number = side as usize / SIDES;
        let slot = &mut self.sides[side as usize];
        slot.state = SideState::Open;
        slot.draining = false;
        slot.completed = 0;
        slot.client = Some(Box::new(Client::new(self.sharing.client, &mut slot.out)));
        let group = &mut self.groups[number];
        group.current = Some(side);
        let leader = group.leader.take();
        for conn in std::mem::take(&mut group.joining) {
            let place = &mut self.places[conn as usize];
            place.state = PlaceState::Attached;
            place.side = side;
            match secured {
                Some(secured) if leader == Some(conn) => {
                    self.tell(NetEvent::Secured(conn, secured))
                }
                None if leader == Some(conn) => {}
                _ => self.tell(NetEvent::Joined(conn)),
            }
        }
        self.mark_dirty(side);
        self.let_wait_on(number);
    }

    pub(super) fn on_connect_failed(&mut self, side: ConnId, code: i32) {
        self.shut(side);
        let number = side as usize / SIDES;
        for conn in self.take_joining(number) {
            self.tell(NetEvent::ConnectFailed(conn, code));
        }
        let broken = End::Broken(crate::net::Direction::Write, code);
        self.lose_waiting(number, &broken);
    }

    fn take_joining(&mut self, number: usize) -> Vec<ConnId> {
        let group = &mut self.groups[number];
        group.leader = None;
        let joining = std::mem::take(&mut group.joining);
        group.members -= joining.len() as u32;
        for conn in &joining {
            self.places[*conn as usize].state = PlaceState::Detached;
        }
        joining
    }

    /// Requests that wait for a stream do so in vain.
    fn lose_waiting(&mut self, number: usize, end: &End) {
        for conn in std::mem::take(&mut self.groups[number].waiting) {
            let place = &mut self.places[conn as usize];
            place.waiting = None;
            if place.state == PlaceState::Attached {
                place.state = PlaceState::Detached;
                self.groups[number].members -= 1;
            }
            self.tell_end(conn, end);
        }
    }

    fn tell_end(&mut self, conn: ConnId, end: &End) {
        self.tell(end.event(conn));
        if let End::Fault(..) = end {
            // Its user takes the connection to be there still.
            self.tell(NetEvent::Closed(conn));
        }
    }

    /// A connection has ended, and with it all that was under way on it.
    pub(super) fn end(&mut self, side: ConnId, end: &End) {
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
                self.tell(match end {
                    // Only the leader is told of the handshake.
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
                let under_way = std::mem::take(&mut place.stream) != 0;
                place.body = None;
                if under_way {
                    // What came of a response that is not whole is of no use.
                    self.forget(conn);
                    self.detach(conn);
                    self.tell_end(conn, end);
                } else {
                    self.told.push_back(Told::Leaves(conn));
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

    fn count_closed(&mut self, by_server: bool) {
        if by_server {
            self.figures.connections_closed_by_server += 1;
        } else {
            self.figures.connections_closed_by_client += 1;
        }
    }

    /// Closes the connection beneath; the next may use its side.
    fn shut(&mut self, side: ConnId) {
        let slot = &mut self.sides[side as usize];
        if let Some(mut client) = slot.client.take() {
            super::receiving::add_tally(&mut self.figures, &client.take_tally());
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
    fn go_on(&mut self, number: usize) {
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
                self.told.push_back(Told::Leaves(conn));
            }
        }
        if !useful {
            // Whoever goes away before the first response would do so again.
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

    pub(super) fn detach(&mut self, conn: ConnId) {
        let number = self.group_of(conn);
        let place = &mut self.places[conn as usize];
        if place.state != PlaceState::Detached {
            place.state = PlaceState::Detached;
            self.groups[number].members -= 1;
        }
    }

    /// A user gives its connection up, and what was under way on it. The last one closes it.
    pub(super) fn leave(&mut self, conn: ConnId) {
        let number = self.group_of(conn);
        self.forget(conn);
        let place = &mut self.places[conn as usize];
        place.body = None;
        let (side, stream) = (place.side, std::mem::take(&mut place.stream));
        let waited = place.waiting.take().is_some();
        if stream != 0 {
            let slot = &mut self.sides[side as usize];
            slot.senders.retain(|sender| *sender != conn);
            if let Some(client) = &mut slot.client {
                client.reset(stream, ErrorCode::CANCEL, &mut slot.out);
            }
            self.mark_dirty(side);
        }
        let group = &mut self.groups[number];
        if waited {
            group.waiting.retain(|waiting| *waiting != conn);
        }
        if self.places[conn as usize].state == PlaceState::Joining {
            group.joining.retain(|joining| *joining != conn);
            if group.leader == Some(conn) {
                group.leader = None;
            }
        }
        self.detach(conn);
        if self.groups[number].members == 0 {
            self.close_group(number);
        } else if stream != 0 {
            self.finish_draining(side);
            self.let_wait_on(number);
        }
    }

    fn close_group(&mut self, number: usize) {
        for side in number * SIDES..(number + 1) * SIDES {
            let slot = &mut self.sides[side];
            match slot.state {
                SideState::Closed => continue,
                SideState::Connecting => {}
                SideState::Securing => self.count_closed(false),
                SideState::Open => {
                    self.say_farewell(side as ConnId);
                    self.count_closed(false);
                }
            }
            self.shut(side as ConnId);
        }
    }

    /// GOAWAY, which must be on its way before the connection is closed.
    pub(super) fn say_farewell(&mut self, side: ConnId) {
        let slot = &mut self.sides[side as usize];
        if let Some(client) = &slot.client {
            client.leave(ErrorCode::NO_ERROR, &mut slot.out);
        }
        self.hand_over_side(side);
        // A driver that cannot flush says so at its next wait.
        let _ = self.wire.flush();
    }
}
