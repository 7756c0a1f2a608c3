//! TLS on top of another driver: plain bytes above, TLS records below. What goes to servers without
//! TLS is passed on as it is.

mod sealing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rustls::ClientConfig;

use self::sealing::Unsealed;
use super::read_ahead::ReadAhead;
use super::sys::Waker;
use super::{
    Config, ConnId, Direction, Driver, NetEvent, Owners, Payload, Received, over_another_driver,
};
use crate::tls::config::ClientTls;
use crate::tls::session::TlsSession;
use crate::tls::store::SessionStore;

/// The driver `D`, with TLS on each of its connections whose server speaks it.
pub struct TlsDriver<D> {
    wire: D,
    config: Arc<ClientConfig>,
    /// Sessions that may be resumed.
    store: Option<Arc<SessionStore>>,
    owners: Owners,
    tls: Arc<ClientTls>,
    /// By connection: the address that it goes to.
    addresses: Vec<u16>,
    fixed: Arc<[Vec<u8>]>,
    read_ahead: ReadAhead,
    waker: Waker,
    conns: Vec<Option<Box<Conn>>>,
    /// Whose handshake has ended with something to send, which no request has taken along yet.
    unsent: Vec<ConnId>,
    /// Who has something to seal when the last piece has been sent.
    sealing: Vec<ConnId>,
    /// What is left to say of the last event of the driver beneath.
    pending: VecDeque<NetEvent>,
    /// Bytes of the wire while they are opened, and the plain ones of the last event.
    sealed: Vec<u8>,
    plain: Vec<u8>,
    /// Of the bytes of the wire that were opened last.
    arrived_ns: Option<u64>,
}

struct Conn {
    session: TlsSession,
    /// What TLS has to send, kept for the request that follows: it then costs no packet of its own.
    outgoing: Vec<u8>,
    /// The server has said that nothing more will come.
    ended: bool,
    said_farewell: bool,
    /// What of a payload has not been sealed.
    unsealed: Option<Box<Unsealed>>,
}

impl<D: Driver> TlsDriver<D> {
    fn is_securing(&self, conn: ConnId) -> bool {
        self.conns[conn as usize]
            .as_ref()
            .is_some_and(|conn| !conn.session.is_established())
    }

    fn is_sealing(&self, conn: ConnId) -> bool {
        let slot = self.conns[conn as usize].as_ref();
        slot.is_some_and(|slot| slot.unsealed.is_some())
    }

    /// Whether this connection goes to a server without TLS.
    fn is_plain(&self, conn: ConnId) -> bool {
        self.tls
            .name(usize::from(self.addresses[conn as usize]))
            .is_none()
    }

    /// What the library learns or asks from here on is of this connection.
    fn works_for(&self, conn: ConnId) {
        if let Some(store) = &self.store {
            store.works_for(self.owners.client(conn), self.addresses[conn as usize]);
        }
    }

    /// Connections that nobody has a request for are whole all the same.
    fn finish_handshakes(&mut self) {
        for conn in std::mem::take(&mut self.unsent) {
            if let Some(slot) = self.conns[conn as usize].as_mut()
                && !slot.outgoing.is_empty()
            {
                let outgoing = std::mem::take(&mut slot.outgoing);
                self.wire.send(conn, Payload::bytes(outgoing));
            }
        }
    }

    /// The driver beneath has connected: begins the handshake.
    fn begin(&mut self, conn: ConnId) -> NetEvent {
        let address = usize::from(self.addresses[conn as usize]);
        let Some(name) = self.tls.name(address) else {
            return NetEvent::Connected(conn);
        };
        let mut outgoing = self.wire.spare();
        outgoing.clear();
        self.works_for(conn);
        match TlsSession::begin(Arc::clone(&self.config), name.clone(), &mut outgoing) {
            Ok(session) => {
                self.conns[conn as usize] = Some(Box::new(Conn {
                    session,
                    outgoing: Vec::new(),
                    ended: false,
                    said_farewell: false,
                    unsealed: None,
                }));
                self.wire.send(conn, Payload::bytes(outgoing));
            }
            Err(error) => self.pending.push_back(unsecured(conn, error.to_string())),
        }
        NetEvent::Connected(conn)
    }

    fn received(&mut self, received: Received) -> Option<NetEvent> {
        let conn = received.conn;
        self.sealed.clear();
        self.sealed.extend_from_slice(self.wire.bytes(&received));
        self.arrived_ns = self.wire.arrived_ns(&received);
        self.wire.release(received);
        self.plain.clear();
        if self.is_plain(conn) {
            std::mem::swap(&mut self.plain, &mut self.sealed);
            let stamped = self.arrived_ns.is_some();
            return Some(NetEvent::Received(Received::new(
                conn,
                self.plain.len(),
                stamped,
            )));
        }
        self.works_for(conn);
        let slot = self.conns[conn as usize].as_mut()?;
        let was_established = slot.session.is_established();
        match slot
            .session
            .open(&mut self.sealed, &mut self.plain, &mut slot.outgoing)
        {
            Ok(opened) => {
                if opened.urgent && !slot.outgoing.is_empty() {
                    let outgoing = std::mem::take(&mut slot.outgoing);
                    self.wire.send(conn, Payload::bytes(outgoing));
                }
                if opened.secured {
                    let secured = slot.session.secured();
                    if !slot.outgoing.is_empty() {
                        self.unsent.push(conn);
                    }
                    self.pending.push_back(NetEvent::Secured(conn, secured));
                }
                if !self.plain.is_empty() {
                    let stamped = self.arrived_ns.is_some();
                    let received = Received::new(conn, self.plain.len(), stamped);
                    self.pending.push_back(NetEvent::Received(received));
                }
                if opened.ended {
                    slot.ended = true;
                    self.pending.push_back(NetEvent::Closed(conn));
                }
            }
            Err(error) => {
                // The alert that gives the server the reason must be on its way before the close.
                if !slot.outgoing.is_empty() {
                    let outgoing = std::mem::take(&mut slot.outgoing);
                    self.wire.send(conn, Payload::bytes(outgoing));
                    // A driver that cannot flush says so at its next wait.
                    let _ = self.wire.flush();
                }
                let reason = explain(&error, was_established);
                self.pending.push_back(unsecured(conn, reason));
            }
        }
        self.pending.pop_front()
    }

    /// TLS's close_notify, which must be on its way before the connection is closed.
    fn send_close_notify(&mut self, conn: ConnId) {
        let Some(slot) = self.conns[conn as usize].as_mut() else {
            return;
        };
        let sending = slot.unsealed.is_some() || self.wire.is_sending(conn);
        if !slot.session.is_established() || slot.said_farewell || sending {
            return;
        }
        let mut out = std::mem::take(&mut slot.outgoing);
        if slot.session.end(&mut out).is_ok() {
            self.wire.send(conn, Payload::bytes(out));
            // A driver that cannot flush says so at its next wait.
            let _ = self.wire.flush();
        }
    }
}

fn unsecured(conn: ConnId, reason: String) -> NetEvent {
    NetEvent::Unsecured(conn, Box::new(reason))
}

/// The library's words, and what they mean where they do not say it.
fn explain(error: &rustls::Error, was_established: bool) -> String {
    match error {
        rustls::Error::InvalidMessage(_) if !was_established => {
            format!("the response is not TLS; does the server speak https on this port? ({error})")
        }
        _ => error.to_string(),
    }
}

impl<D: Driver> Driver for TlsDriver<D> {
    const NAME: &'static str = D::NAME;
    const SEND_GROUP: usize = D::SEND_GROUP;
    const STAMPS_EACH_READ: bool = D::STAMPS_EACH_READ;
    const SECURES: bool = true;

    fn new(config: Config) -> io::Result<Self> {
        let tls = config.tls.clone().ok_or_else(|| {
            io::Error::other("a TLS driver was asked for without a configuration")
        })?;
        let (client, store) = tls.for_thread();
        let connections = config.connections.max(1);
        let wire = D::new(config.clone())?;
        Ok(Self {
            config: client,
            store,
            owners: config.owners,
            unsent: Vec::new(),
            sealing: Vec::new(),
            tls,
            read_ahead: config.read_ahead.clone(),
            addresses: vec![0; connections],
            fixed: Arc::clone(&config.fixed),
            conns: (0..connections).map(|_| None).collect(),
            pending: VecDeque::new(),
            sealed: Vec::new(),
            plain: Vec::new(),
            arrived_ns: None,
            waker: wire.waker(),
            wire,
        })
    }

    fn connect(&mut self, conn: ConnId, address: usize) {
        self.addresses[conn as usize] = address as u16;
        self.wire.connect(conn, address);
    }

    fn send(&mut self, conn: ConnId, payload: Payload) {
        if self.is_plain(conn) {
            return self.wire.send(conn, payload);
        }
        let mut unsealed = Unsealed { payload, at: 0 };
        if let Payload::Owned(outgoing) = &mut unsealed.payload {
            self.read_ahead.begin(outgoing, &self.waker);
        }
        if let Err(event) = self.seal(conn, unsealed, false) {
            self.pending.push_back(event);
        }
    }

    fn send_last(&mut self, conn: ConnId, payload: Payload) {
        if self.is_plain(conn) {
            return self.wire.send(conn, payload);
        }
        // What cannot be sent any more is closed with the rest.
        let _ = self.seal(conn, Unsealed { payload, at: 0 }, true);
    }

    fn forget_client(&mut self, conn: ConnId) {
        if let Some(store) = &self.store {
            store.forget(self.owners.client(conn));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wire.flush()
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.wire.is_sending(conn) || self.is_sealing(conn)
    }

    fn spare(&mut self) -> Vec<u8> {
        self.wire.spare()
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        let all_sealed = !self.is_sealing(conn);
        all_sealed.then(|| self.wire.accepted_ns(conn)).flatten()
    }

    fn close(&mut self, conn: ConnId) {
        self.send_close_notify(conn);
        self.conns[conn as usize] = None;
        self.sealing.retain(|of| *of != conn);
        self.pending.retain_mut(|event| !event.is_of(conn));
        self.wire.close(conn);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.finish_handshakes();
        let at_once = !self.sealing.is_empty() && self.seal_on();
        let until_ns = if at_once || !self.pending.is_empty() {
            Some(self.now_ns())
        } else {
            until_ns
        };
        self.wire.wait(until_ns)
    }

    fn next(&mut self) -> Option<NetEvent> {
        if let Some(event) = self.pending.pop_front() {
            return Some(event);
        }
        loop {
            let event = match self.wire.next()? {
                NetEvent::Connected(conn) => Some(self.begin(conn)),
                NetEvent::Received(received) => self.received(received),
                NetEvent::Closed(conn) if self.is_securing(conn) => Some(unsecured(
                    conn,
                    "the server closed the connection during the handshake".to_owned(),
                )),
                // The server should have said that it is the end.
                NetEvent::Closed(conn)
                    if self.conns[conn as usize]
                        .as_ref()
                        .is_some_and(|slot| !slot.ended) =>
                {
                    Some(NetEvent::Truncated(conn))
                }
                NetEvent::Broken(conn, direction, code) if self.is_securing(conn) => {
                    let what = match direction {
                        Direction::Read => "reading",
                        Direction::Write => "writing",
                    };
                    let error = io::Error::from_raw_os_error(code);
                    Some(unsecured(
                        conn,
                        format!("{what} failed during the handshake: {error}"),
                    ))
                }
                other => Some(other),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    over_another_driver!(plain);
}
