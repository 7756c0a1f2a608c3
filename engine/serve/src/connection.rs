//! A socket with its backlog of output, its TLS session and its HTTP state. It moves bytes and
//! knows nothing of what they mean or of when the kernel is ready.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use rustls::ServerConfig;

use super::counters::Counters;
use super::http2::Http2;
use super::machine::{Action, HttpState};
use super::tls::{self, Session, Unwrapped};

const READ_BYTES: usize = 64 * 1024;

/// The buffers of a thread; a connection that waits needs none.
#[derive(Debug)]
pub struct Buffers {
    pub raw: Vec<u8>,
    /// Decrypted input.
    pub plain: Vec<u8>,
    /// Output of the machine.
    pub out: Vec<u8>,
    /// Of a stream's body, on its way into frames.
    pub made: Vec<u8>,
    /// Encrypted output.
    wire: Vec<u8>,
}

impl Buffers {
    pub fn new() -> Self {
        Self {
            raw: vec![0; READ_BYTES],
            plain: Vec::new(),
            out: Vec::with_capacity(READ_BYTES),
            made: Vec::new(),
            wire: Vec::new(),
        }
    }
}

/// What became of an attempt to send.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    All,
    Blocked,
    Failed,
}

/// What became of an attempt to read.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes are in `Buffers::raw`.
    Raw(usize),
    /// There are bytes in `Buffers::plain`.
    Plain,
    /// Only bytes of the TLS protocol itself.
    Handshake,
    /// There is nothing to read now.
    Dry,
    /// The client does not speak TLS, or broke it: send the alert and close.
    Broken,
    Gone,
}

#[derive(Debug)]
struct Backlog {
    bytes: Vec<u8>,
    sent: usize,
}

#[derive(Debug)]
pub struct Connection {
    socket: Option<OwnedFd>,
    session: Option<Box<Session>>,
    backlog: Option<Box<Backlog>>,
    pub http: HttpState,
    /// Once its first bytes say that it speaks HTTP/2.
    pub http2: Option<Box<Http2>>,
    /// So many bytes of HTTP/2's preface have come, which may still go on; `None`: it is decided.
    pub preface_seen: Option<u8>,
    /// Distinguishes it from earlier connections of the same slot.
    pub epoch: u32,
    pub action: Action,
    /// There may be bytes to read.
    pub readable: bool,
    /// The client has ended its side: reading must go on until the kernel says so.
    pub ended: bool,
    /// The kernel was asked to say when the socket takes bytes again.
    pub waits_to_write: bool,
    /// It has had its turns and goes on after the other connections.
    pub goes_on: bool,
}

impl Connection {
    /// A slot without a connection.
    pub fn vacant() -> Self {
        Self {
            socket: None,
            session: None,
            backlog: None,
            http: HttpState::default(),
            http2: None,
            preface_seen: None,
            epoch: 0,
            action: Action::Read,
            readable: false,
            ended: false,
            waits_to_write: false,
            goes_on: false,
        }
    }

    /// Takes a new socket; false when TLS cannot begin.
    pub fn begin(&mut self, socket: OwnedFd, tls: Option<&Arc<ServerConfig>>) -> bool {
        self.socket = Some(socket);
        self.action = Action::Read;
        self.readable = false;
        self.ended = false;
        self.waits_to_write = false;
        self.goes_on = false;
        match tls.map(|config| Session::new(Arc::clone(config))) {
            None => true,
            Some(Ok(session)) => {
                self.session = Some(Box::new(session));
                true
            }
            Some(Err(_)) => false,
        }
    }

    pub fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// Closes the socket; false when there is none.
    pub fn end(&mut self) -> bool {
        self.session = None;
        self.backlog = None;
        self.http2 = None;
        self.socket.take().is_some()
    }

    /// Whether there is something to do that others wait for: bytes to read, or more of a body.
    pub fn wants_turn(&self) -> bool {
        match self.action {
            Action::Read | Action::Ignore => self.readable,
            Action::Drain => true,
            Action::Hold | Action::Close | Action::Drop | Action::Reset => false,
        }
    }

    pub fn has_backlog(&self) -> bool {
        self.backlog.is_some()
    }

    /// Whether there is anything to send besides `out`.
    pub fn has_more_to_send(&self) -> bool {
        self.backlog.is_some()
            || self
                .session
                .as_ref()
                .is_some_and(|session| session.wants_write())
    }

    /// Sends the backlog and `Buffers::out`; what the kernel does not take becomes the backlog.
    pub fn send(&mut self, buffers: &mut Buffers, counters: &Counters) -> Sent {
        let Buffers { out, wire, .. } = buffers;
        let fresh = match self.session.as_mut() {
            None => &mut *out,
            Some(session) => {
                wire.clear();
                let sealed = session.seal(out, wire);
                out.clear();
                if sealed.is_err() {
                    return Sent::Failed;
                }
                wire
            }
        };
        let outcome = Self::push(self.socket.as_ref(), &mut self.backlog, fresh, counters);
        fresh.clear();
        outcome
    }

    fn push(
        socket: Option<&OwnedFd>,
        backlog: &mut Option<Box<Backlog>>,
        fresh: &[u8],
        counters: &Counters,
    ) -> Sent {
        let Some(socket) = socket else {
            return Sent::Failed;
        };
        let (bytes, mut sent) = match backlog.as_mut() {
            Some(backlog) => {
                backlog.bytes.extend_from_slice(fresh);
                (backlog.bytes.as_slice(), backlog.sent)
            }
            None => (fresh, 0),
        };
        while sent < bytes.len() {
            match send(socket, &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(length) => {
                    counters.bytes_sent.add(length as u64);
                    sent += length;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Sent::Failed,
            }
        }
        if sent == bytes.len() {
            *backlog = None;
            return Sent::All;
        }
        match backlog.as_mut() {
            Some(backlog) => backlog.sent = sent,
            None => {
                let bytes = fresh[sent..].to_vec();
                *backlog = Some(Box::new(Backlog { bytes, sent: 0 }));
            }
        }
        Sent::Blocked
    }

    /// Reads once.
    pub fn receive(&mut self, buffers: &mut Buffers, counters: &Counters) -> Received {
        let Some(socket) = self.socket.as_ref() else {
            return Received::Gone;
        };
        let length = loop {
            match rustix::io::read(socket, &mut buffers.raw[..]) {
                Ok(0) => return Received::Gone,
                Ok(length) => break length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return Received::Dry;
                }
                Err(_) => return Received::Gone,
            }
        };
        // Less than was asked for: the kernel has no more, and will say when it has.
        self.readable = length == buffers.raw.len() || self.ended;
        counters.bytes_received.add(length as u64);
        let Buffers {
            raw, plain, out, ..
        } = buffers;
        match tls::unwrap(&mut self.session, &raw[..length], plain, out, counters) {
            Unwrapped::NoTls => Received::Raw(length),
            Unwrapped::Plain => Received::Plain,
            Unwrapped::Handshake => Received::Handshake,
            Unwrapped::Broken => Received::Broken,
            Unwrapped::Gone => Received::Gone,
        }
    }

    /// Puts `close_notify` into the output; false without TLS, or when it was sent before.
    pub fn announce_end(&mut self) -> bool {
        self.session
            .as_mut()
            .is_some_and(|session| session.announce_end())
    }

    /// Ends the sending side; false when the connection is gone.
    pub fn end_sending(&self) -> bool {
        self.socket
            .as_ref()
            .is_some_and(|socket| shutdown(socket, Shutdown::Write).is_ok())
    }

    /// Makes the next close a reset.
    pub fn arm_reset(&self) {
        if let Some(socket) = &self.socket {
            // A linger time of zero makes the close a reset. Refused, it stays an orderly close.
            let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_takes_less_than_100_bytes() {
        let size = std::mem::size_of::<Connection>();
        assert!(size <= 96, "{size}");
    }
}
