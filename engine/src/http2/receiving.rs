//! What comes on connections that users share, passed to each of them as its response.

use prony_h2::{Client, ErrorCode, Event};

use super::ending::{End, lost};
use super::{Http2Driver, Pending, SideState};
use crate::measure::counters::ErrorKind;
use crate::measure::http2::{Http2Figures, smallest};
use crate::net::{ConnId, Driver, NetEvent, Received};

/// What is written in return may wait for a server that does not read up to this.
const MAX_UNREAD_BYTES: usize = 16 * 1024 * 1024;

/// What is to be done when the bytes that came are used up.
#[derive(Default)]
struct Follows {
    goaway: Option<ErrorCode>,
    /// The server may take more streams, or more of bodies.
    more: bool,
}

impl<D: Driver> Http2Driver<D> {
    /// Something has happened to a connection beneath.
    pub(super) fn on_wire(&mut self, event: NetEvent) {
        match event {
            NetEvent::Connected(side) => self.on_connected(side),
            NetEvent::Secured(side, secured) => self.on_secured(side, secured),
            NetEvent::ConnectFailed(side, code) => self.on_connect_failed(side, code),
            NetEvent::Received(received) => self.on_received(received),
            NetEvent::Closed(side) | NetEvent::Truncated(side) => self.end(side, &End::Closed),
            NetEvent::Broken(side, direction, code) => {
                self.end(side, &End::Broken(direction, code));
            }
            NetEvent::Unsecured(side, reason) => self.end(side, &End::Unsecured(*reason)),
            NetEvent::Refused(side, code) => self.end(side, &End::Refused(code)),
            // No driver beneath shares connections, and this one hands wakings on.
            NetEvent::Joined(_) | NetEvent::Lost(..) | NetEvent::Woken => {}
        }
    }

    fn on_received(&mut self, received: Received) {
        let side = received.conn;
        self.arrived_ns = self.wire.arrived_ns(&received);
        let Some(mut client) = self.sides[side as usize].client.take() else {
            return self.wire.release(received);
        };
        // Asked for only where a body may have waited.
        let now_ns = match self.sides[side as usize].senders.is_empty() {
            true => 0,
            false => self.wire.now_ns(),
        };
        let mut follows = Follows::default();
        let mut touched = Vec::new();
        let mut out = std::mem::take(&mut self.sides[side as usize].out);
        let before = out.len();
        let mut input = self.wire.bytes(&received);
        self.figures.connections.bytes_received += input.len() as u64;
        let mut view = View {
            places: &mut self.places,
            pending: &mut self.pending,
            figures: &mut self.figures,
            now_ns,
            completed: 0,
            draining: self.sides[side as usize].draining,
        };
        let result = loop {
            match client.read(&mut input, &mut out) {
                Ok(Some(event)) => view.take(event, &mut touched, &mut follows),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let completed = view.completed;
        for conn in touched {
            let place = &mut self.places[conn as usize];
            if std::mem::take(&mut place.touched) {
                place.text.show();
                self.pending.push_back(Pending::Text(conn));
            }
        }
        self.wire.release(received);
        let wrote = out.len() > before;
        let slot = &mut self.sides[side as usize];
        slot.out = out;
        slot.completed += completed;
        let overflows = slot.out.len() > MAX_UNREAD_BYTES;
        if let Some(limit) = client.max_streams() {
            smallest(&mut self.figures.max_concurrent_streams, &Some(limit));
        }
        let used_up = client.is_closing() && follows.goaway.is_none() && !slot.draining;
        match result {
            Ok(()) if overflows => {
                let reason = "the server does not read what it asks for";
                self.fail(side, client, ErrorCode::ENHANCE_YOUR_CALM, reason);
                return;
            }
            Ok(()) => slot.client = Some(client),
            Err(error) => return self.fail(side, client, error.code, error.reason),
        }
        if wrote || follows.more {
            self.mark_dirty(side);
        }
        if let Some(code) = follows.goaway {
            self.drain(side, &format!("GOAWAY: {code}"));
        } else if used_up {
            self.drain(side, "the ids of streams are used up");
        } else if completed > 0 || follows.more {
            self.finish_draining(side);
            self.let_wait_on(side as usize / super::SIDES);
        }
    }

    /// The server broke the protocol: it is sent the reason, and the connection closed.
    fn fail(&mut self, side: ConnId, client: Box<Client>, code: ErrorCode, reason: &str) {
        let slot = &mut self.sides[side as usize];
        client.leave(code, &mut slot.out);
        slot.client = Some(client);
        *self.figures.connection_errors.entry(code.0).or_default() += 1;
        if slot.state == SideState::Open {
            slot.senders.clear();
            self.submit_side(side);
            // A driver that cannot flush says so at its next wait.
            let _ = self.wire.flush();
        }
        let reason = format!("{code}: {reason}");
        self.end(side, &End::Fault(ErrorKind::Protocol, reason));
    }
}

/// What an event of a connection changes.
struct View<'a> {
    places: &'a mut [super::Place],
    pending: &'a mut std::collections::VecDeque<Pending>,
    figures: &'a mut Http2Figures,
    now_ns: u64,
    /// Responses that came whole.
    completed: u64,
    draining: bool,
}

impl View<'_> {
    fn take(&mut self, event: Event<'_>, touched: &mut Vec<ConnId>, follows: &mut Follows) {
        match event {
            Event::Interim { key, head } => {
                self.places[key as usize].text.head(head, true);
                self.touch(key, touched);
            }
            Event::Head { key, head, end } => {
                let place = &mut self.places[key as usize];
                let bodiless = place.head_request || matches!(head.status, 204 | 304);
                place.text.head(head, bodiless);
                self.came(key, end, touched);
            }
            Event::Data { key, bytes, end } => {
                self.places[key as usize].text.body(bytes);
                self.came(key, end, touched);
            }
            Event::Trailers { key } => self.came(key, true, touched),
            Event::Reset { key, code } => {
                self.figures.was_reset(code);
                follows.more = true;
                self.lose(key, ErrorKind::StreamReset, format!("RST_STREAM: {code}"));
            }
            Event::Broken { key, code, reason } => {
                *self.figures.stream_errors.entry(code.0).or_default() += 1;
                follows.more = true;
                self.lose(key, ErrorKind::Protocol, format!("{code}: {reason}"));
            }
            Event::HeadTooLong { key } => {
                let code = ErrorCode::ENHANCE_YOUR_CALM.0;
                *self.figures.stream_errors.entry(code).or_default() += 1;
                follows.more = true;
                let reason = "the header list is longer than limits.header_bytes".to_owned();
                self.lose(key, ErrorKind::HeaderTooLong, reason);
            }
            Event::GoAway { code } => {
                *self.figures.goaways_received.entry(code.0).or_default() += 1;
                follows.goaway = Some(code);
            }
            Event::Unprocessed { key } => {
                self.figures.streams_unprocessed += 1;
                let reason = "GOAWAY: the server did not look at the request".to_owned();
                self.lose(key, ErrorKind::GoAway, reason);
            }
            Event::Settings | Event::Window => follows.more = true,
        }
    }

    fn touch(&mut self, conn: ConnId, touched: &mut Vec<ConnId>) {
        let place = &mut self.places[conn as usize];
        if !std::mem::replace(&mut place.touched, true) {
            touched.push(conn);
        }
    }

    /// Something of a response has come, or with it all of it.
    fn came(&mut self, conn: ConnId, end: bool, touched: &mut Vec<ConnId>) {
        if !end {
            return self.touch(conn, touched);
        }
        let place = &mut self.places[conn as usize];
        place.text.end();
        place.touched = false;
        place.give_up(self.now_ns, self.figures);
        self.completed += 1;
        self.pending.push_back(Pending::Text(conn));
        if self.draining {
            self.pending.push_back(Pending::Leaves(conn));
        }
    }

    fn lose(&mut self, conn: ConnId, kind: ErrorKind, reason: String) {
        let place = &mut self.places[conn as usize];
        place.text.clear();
        place.touched = false;
        place.give_up(self.now_ns, self.figures);
        self.pending
            .push_back(Pending::Net(lost(conn, kind, reason)));
        if self.draining {
            self.pending.push_back(Pending::Leaves(conn));
        }
    }
}
