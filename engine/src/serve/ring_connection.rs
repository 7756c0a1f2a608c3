//! A connection of the io_uring loop: what came and may not be read yet, what waits to be sent, TLS, and the state of the
//! exchange. It holds no descriptor: the ring does.

use std::sync::Arc;

use rustls::ServerConfig;

use super::machine::{Exchange, Step};
use super::tls::Session;

/// Bytes that have to wait.
#[derive(Debug, Default)]
struct Waiting {
    /// Received while nothing was to be read.
    unread: Vec<u8>,
    /// Made while a send was under way.
    backlog: Vec<u8>,
}

#[derive(Debug)]
pub struct RingConnection {
    session: Option<Box<Session>>,
    waiting: Option<Box<Waiting>>,
    pub exchange: Exchange,
    /// Told apart from earlier connections of the same slot.
    pub epoch: u32,
    /// The send that is under way.
    pub sending: Option<u32>,
    pub step: Step,
    pub open: bool,
    /// The ring receives; false also when it was told to stop and has stopped.
    pub receiving: bool,
    /// The ring was told to stop receiving.
    pub paused: bool,
    /// The client has ended its side.
    pub ended: bool,
}

impl RingConnection {
    /// A slot without a connection.
    pub fn vacant() -> Self {
        Self {
            session: None,
            waiting: None,
            exchange: Exchange::default(),
            epoch: 0,
            sending: None,
            step: Step::Read,
            open: false,
            receiving: false,
            paused: false,
            ended: false,
        }
    }

    /// Begins anew; false when TLS cannot.
    pub fn begin(&mut self, tls: Option<&Arc<ServerConfig>>) -> bool {
        self.open = true;
        self.step = Step::Read;
        self.ended = false;
        match tls.map(|config| Session::new(Arc::clone(config))) {
            None => true,
            Some(Ok(session)) => {
                self.session = Some(Box::new(session));
                true
            }
            Some(Err(_)) => false,
        }
    }

    /// Forgets everything but the state of the exchange, which is the machine's.
    pub fn end(&mut self) {
        self.session = None;
        self.waiting = None;
        self.sending = None;
        self.open = false;
        self.receiving = false;
        self.paused = false;
        self.epoch = self.epoch.wrapping_add(1);
    }

    pub fn session(&mut self) -> &mut Option<Box<Session>> {
        &mut self.session
    }

    /// Whether bytes that come now are to be read now.
    pub fn reads(&self) -> bool {
        self.sending.is_none()
            && self.waiting.is_none()
            && matches!(self.step, Step::Read | Step::Ignore)
    }

    /// Whether there is nothing to do after the present output but to read what is yet to come.
    pub fn only_reads_on(&self) -> bool {
        self.step == Step::Read && self.waiting.is_none() && !self.ended && self.receiving
    }

    /// Keeps bytes for later; returns how many are kept.
    pub fn keep(&mut self, bytes: &[u8]) -> usize {
        let unread = &mut self.waiting.get_or_insert_default().unread;
        unread.extend_from_slice(bytes);
        unread.len()
    }

    pub fn take_unread(&mut self) -> Option<Vec<u8>> {
        self.take(|waiting| &mut waiting.unread)
    }

    pub fn take_backlog(&mut self) -> Option<Vec<u8>> {
        self.take(|waiting| &mut waiting.backlog)
    }

    fn take(&mut self, which: fn(&mut Waiting) -> &mut Vec<u8>) -> Option<Vec<u8>> {
        let waiting = self.waiting.as_mut()?;
        let bytes = std::mem::take(which(waiting));
        if waiting.unread.is_empty() && waiting.backlog.is_empty() {
            self.waiting = None;
        }
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Moves what is to be sent to `wire`: `out`, through TLS if there is any. False when TLS refuses.
    pub fn seal(&mut self, out: &mut Vec<u8>, wire: &mut Vec<u8>) -> bool {
        match self.session.as_mut() {
            None => {
                if wire.is_empty() {
                    std::mem::swap(out, wire);
                } else {
                    wire.append(out);
                }
                true
            }
            Some(session) => {
                let sealed = session.seal(out, wire);
                out.clear();
                sealed.is_ok()
            }
        }
    }

    /// Whether TLS has something to say besides answers.
    pub fn has_more_to_send(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.wants_write())
    }

    /// Keeps bytes until the send under way has ended.
    pub fn queue(&mut self, wire: &mut Vec<u8>) {
        self.waiting.get_or_insert_default().backlog.append(wire);
    }

    /// Puts TLS's farewell into the output; false when there is none to be said (any more).
    pub fn announce_end(&mut self) -> bool {
        self.session
            .as_mut()
            .is_some_and(|session| session.announce_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_takes_less_than_100_bytes() {
        let size = std::mem::size_of::<RingConnection>();
        assert!(size <= 96, "{size}");
    }

    #[test]
    fn what_came_too_early_is_kept_in_order() {
        let mut connection = RingConnection::vacant();
        assert!(connection.begin(None) && connection.reads());
        connection.step = Step::Hold;
        assert!(!connection.reads());
        assert_eq!((connection.keep(b"GET "), connection.keep(b"/")), (4, 5));
        connection.step = Step::Read;
        assert!(!connection.reads());
        assert_eq!(connection.take_unread().unwrap(), b"GET /");
        assert!(connection.reads());
    }
}
