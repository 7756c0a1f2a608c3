//! HTTP/2 below the users: each of them has a connection of its own, as ever, on which it writes and
//! reads messages in the form of HTTP/1.1; here these become streams of connections that several
//! users share. It is a driver on top of another one, so that users, timers, expectations, captures
//! and records are those of every load. It must not know what users do.

mod connections;
mod ending;
mod message;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use prony_h2::{Client, Fields};

use crate::measure::http2::Http2Figures;
use crate::net::read_ahead::ReadAhead;
use crate::net::sys::Waker;
use crate::net::{
    Config, ConnId, Driver, NetEvent, Owners, Received, Sharing, over_another_driver,
};
use crate::payload::{Outgoing, Payload};
use crate::tls::config::ClientTls;
use message::Text;

/// While the server goes away on one connection, the next is opened on the other.
const SIDES: usize = 2;

/// Requests of this many users go out together.
const SEND_GROUP: usize = 32;

/// The place of one user: what it takes for its connection.
#[derive(Debug, Default)]
struct Place {
    state: PlaceState,
    /// The connection beneath, while it has one.
    side: ConnId,
    /// Its request under way; 0: none, or it waits.
    stream: u32,
    /// Its request is HEAD.
    head_request: bool,
    text: Text,
    /// Something of `text` is to be shown when the bytes that came are used up.
    touched: bool,
    /// The rest of a request's body.
    body: Option<Box<Body>>,
    /// A request that waits for a stream.
    waiting: Option<Box<Waiting>>,
    /// When the kernel had taken its request, where that is asked for.
    accepted_ns: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PlaceState {
    #[default]
    Detached,
    /// Waits for the connection that it is to share.
    Joining,
    Attached,
}

impl Place {
    /// Its request is over, or given up. A wait that this ends counts as any other.
    fn give_up(&mut self, now_ns: u64, figures: &mut Http2Figures) {
        let body = self.body.take();
        if let Some(since_ns) = body.and_then(|body| body.blocked_ns) {
            figures.was_blocked(now_ns.saturating_sub(since_ns));
        }
        if let Some(waiting) = self.waiting.take() {
            figures.waited_for_stream(now_ns.saturating_sub(waiting.since_ns));
        }
        self.stream = 0;
    }
}

#[derive(Debug)]
struct Body {
    outgoing: Outgoing,
    /// So much of [`Outgoing::bytes`] has gone out.
    at: usize,
    left: u64,
    /// The next piece of its file is being read.
    unread: bool,
    /// Since when the server's windows are used up.
    blocked_ns: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    payload: Payload,
    since_ns: u64,
}

/// What users share: one connection, or the one that goes away and the one that takes its place.
#[derive(Debug, Default)]
struct Group {
    /// The side on which requests go out.
    current: Option<ConnId>,
    address: usize,
    /// The user who is notified how the connection comes about.
    leader: Option<ConnId>,
    joining: Vec<ConnId>,
    /// Users whose requests wait for a stream, the first first.
    waiting: VecDeque<ConnId>,
    /// Users who are attached or joining.
    members: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SideState {
    #[default]
    Closed,
    Connecting,
    /// In the TLS handshake.
    Securing,
    Open,
}

/// One connection of the driver beneath.
#[derive(Debug, Default)]
struct Side {
    state: SideState,
    client: Option<Box<Client>>,
    out: Vec<u8>,
    /// It is among [`Http2Driver::dirty`].
    dirty: bool,
    /// Users whose bodies have not gone out whole.
    senders: VecDeque<ConnId>,
    /// Responses that came whole.
    completed: u64,
    /// The server goes away.
    draining: bool,
    /// Users whose requests were in the last send, and behind them those of the next.
    last: Vec<ConnId>,
    sent_last: usize,
}

/// What users are still to be notified of.
#[derive(Debug)]
enum Pending {
    Net(NetEvent),
    /// Something of a response has come.
    Text(ConnId),
    /// Its connection goes away, if it has nothing under way by then.
    Leaves(ConnId),
}

/// A request that is sent unchanged.
#[derive(Debug)]
struct Prepared {
    request: [Fields; 2],
    body_from: usize,
}

/// The driver `D`, with HTTP/2 on each of its connections.
pub struct Http2Driver<D> {
    wire: D,
    sharing: Sharing,
    tls: Option<Arc<ClientTls>>,
    fixed: Arc<[Vec<u8>]>,
    /// Of `fixed`, once a request was sent.
    prepared: Vec<Option<Box<Prepared>>>,
    places: Vec<Place>,
    groups: Vec<Group>,
    sides: Vec<Side>,
    pending: VecDeque<Pending>,
    /// The bytes of the last [`NetEvent::Received`].
    shown: Vec<u8>,
    /// Of the bytes of the wire that were read last.
    arrived_ns: Option<u64>,
    /// Sides with something to send.
    dirty: Vec<ConnId>,
    /// The request that is being read, and memory to write the next.
    request: Fields,
    spare: Vec<u8>,
    figures: Http2Figures,
    times_sends: bool,
    read_ahead: ReadAhead,
    waker: Waker,
}

impl<D: Driver> Http2Driver<D> {
    fn group_of(&self, conn: ConnId) -> usize {
        let (server, user) = (
            conn as usize / self.sharing.users,
            conn as usize % self.sharing.users,
        );
        server * self.sharing.connections + user % self.sharing.connections
    }

    /// The places whose connection this group is.
    fn members_of(&self, group: usize) -> impl Iterator<Item = ConnId> + use<D> {
        let Sharing {
            connections, users, ..
        } = self.sharing;
        let first = group / connections * users;
        (group % connections..users)
            .step_by(connections)
            .map(move |user| (first + user) as ConnId)
    }

    /// The places that have a stream, or nothing under way, on this side.
    fn on_side(&self, side: ConnId) -> Vec<ConnId> {
        self.members_of(side as usize / SIDES)
            .filter(|conn| {
                let place = &self.places[*conn as usize];
                place.state == PlaceState::Attached && place.side == side
            })
            .collect()
    }

    fn is_secure(&self, group: usize) -> bool {
        let address = self.groups[group].address;
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.name(address).is_some())
    }

    fn push_event(&mut self, event: NetEvent) {
        self.pending.push_back(Pending::Net(event));
    }

    fn mark_dirty(&mut self, side: ConnId) {
        let slot = &mut self.sides[side as usize];
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push(side);
        }
    }

    /// What came for a user and was not returned concerns a connection that it has given up.
    fn forget(&mut self, conn: ConnId) {
        self.places[conn as usize].text.clear();
        if !self.pending.is_empty() {
            self.pending.retain_mut(|pending| match pending {
                Pending::Net(event) => !event.is_of(conn),
                Pending::Text(of) | Pending::Leaves(of) => *of != conn,
            });
        }
    }
}

impl<D: Driver> Driver for Http2Driver<D> {
    const NAME: &'static str = D::NAME;
    const SEND_GROUP: usize = SEND_GROUP;
    const STAMPS_EACH_READ: bool = D::STAMPS_EACH_READ;
    const SECURES: bool = D::SECURES;

    fn new(config: Config) -> io::Result<Self> {
        let sharing = config
            .http2
            .ok_or_else(|| io::Error::other("HTTP/2 was asked for without a configuration"))?;
        let servers = config.connections / sharing.users.max(1);
        let groups = servers * sharing.connections;
        let prepared = config.fixed.iter().map(|_| None).collect();
        let wire = D::new(Config {
            connections: groups * SIDES,
            fixed: Arc::from([]),
            http2: None,
            owners: Owners {
                sides: SIDES,
                clients: sharing.connections,
            },
            ..config.clone()
        })?;
        Ok(Self {
            sharing,
            tls: config.tls.clone(),
            fixed: Arc::clone(&config.fixed),
            prepared,
            places: (0..config.connections).map(|_| Place::default()).collect(),
            groups: (0..groups).map(|_| Group::default()).collect(),
            sides: (0..groups * SIDES).map(|_| Side::default()).collect(),
            pending: VecDeque::new(),
            shown: Vec::new(),
            arrived_ns: None,
            dirty: Vec::new(),
            request: Fields::default(),
            spare: Vec::new(),
            figures: Http2Figures::default(),
            times_sends: config.times_sends,
            read_ahead: config.read_ahead.clone(),
            waker: wire.waker(),
            wire,
        })
    }

    fn connect(&mut self, conn: ConnId, address: usize) {
        self.join(conn, address);
    }

    fn send(&mut self, conn: ConnId, payload: Payload) {
        self.send_request(conn, payload);
    }

    fn spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.submit();
        self.wire.flush()
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        let place = &self.places[conn as usize];
        place.body.is_some() || place.waiting.is_some()
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        let place = &self.places[conn as usize];
        if self.sides[place.side as usize].last.contains(&conn) {
            return self.wire.accepted_ns(place.side);
        }
        place.accepted_ns
    }

    fn take_http2(&mut self) -> Option<Box<Http2Figures>> {
        for side in &mut self.sides {
            if let Some(client) = &mut side.client {
                ending::add_tally(&mut self.figures, &client.take_tally());
            }
        }
        Some(Box::new(std::mem::take(&mut self.figures)))
    }

    fn close(&mut self, conn: ConnId) {
        self.leave(conn);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.submit();
        let until_ns = if self.pending.is_empty() {
            until_ns
        } else {
            Some(self.now_ns())
        };
        self.wire.wait(until_ns)
    }

    fn next(&mut self) -> Option<NetEvent> {
        loop {
            match self.pending.pop_front() {
                Some(Pending::Net(event)) => return Some(event),
                Some(Pending::Text(conn)) => {
                    let place = &mut self.places[conn as usize];
                    if !place.text.is_empty() {
                        place.text.take(&mut self.shown);
                        let length = self.shown.len();
                        let stamped = self.arrived_ns.is_some();
                        return Some(NetEvent::Received(Received::new(conn, length, stamped)));
                    }
                }
                Some(Pending::Leaves(conn)) => {
                    let place = &self.places[conn as usize];
                    let idle = place.stream == 0 && place.waiting.is_none();
                    if idle && place.state == PlaceState::Attached {
                        self.detach(conn);
                        return Some(NetEvent::Closed(conn));
                    }
                }
                None => match self.wire.next() {
                    Some(NetEvent::Woken) => return Some(NetEvent::Woken),
                    Some(event) => self.on_wire(event),
                    None => {
                        // Sends that the kernel has taken by now may be followed by others.
                        if !self.dirty.is_empty() {
                            self.submit();
                        }
                        if self.pending.is_empty() {
                            return None;
                        }
                    }
                },
            }
        }
    }

    over_another_driver!(shown);
}
