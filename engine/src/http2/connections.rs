//! Connections that users share: who waits for one, who has it, and who gives it up.

use prony_h2::{Client, ErrorCode};

use super::ending::End;
use super::{Http2Driver, PlaceState, SIDES, Side, SideState};
use crate::net::{ConnId, Driver, NetEvent};
use crate::tls::{PROTOCOLS, Secured};

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
            return self.push_event(NetEvent::Joined(conn));
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
        self.figures.connections.attempts += 1;
        self.wire.connect(side as ConnId, group.address);
    }

    pub(super) fn on_connected(&mut self, side: ConnId) {
        let number = side as usize / SIDES;
        self.figures.connections.opened += 1;
        let group = &mut self.groups[number];
        if group.leader.is_none() {
            group.leader = group.joining.first().copied();
        }
        if let Some(leader) = group.leader {
            self.push_event(NetEvent::Connected(leader));
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
                    self.push_event(NetEvent::Secured(conn, secured))
                }
                None if leader == Some(conn) => {}
                _ => self.push_event(NetEvent::Joined(conn)),
            }
        }
        self.mark_dirty(side);
        self.let_wait_on(number);
    }

    pub(super) fn on_connect_failed(&mut self, side: ConnId, code: i32) {
        self.shut(side);
        let number = side as usize / SIDES;
        for conn in self.take_joining(number) {
            self.push_event(NetEvent::ConnectFailed(conn, code));
        }
        let broken = End::Broken(crate::net::Direction::Write, code);
        self.lose_waiting(number, &broken);
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
        let now_ns = self.wire.now_ns();
        let place = &mut self.places[conn as usize];
        let (side, stream, waited) = (place.side, place.stream, place.waiting.is_some());
        place.give_up(now_ns, &mut self.figures);
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
}
