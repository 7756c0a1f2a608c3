//! Connections as bytes: connect, send, receive, close, wait. Two drivers behind one trait; nothing here knows of HTTP, users
//! or measurements. All `unsafe` of the engine's load side is in this folder.

pub mod address;
mod buffers;
pub mod epoll;
pub mod faulty;
pub mod probe;
pub mod rings;
mod send_times;
pub mod sys;
pub mod tls;
pub mod uring;

use std::io;
use std::sync::Arc;

use address::Address;

use crate::fault::Faults;
use crate::payload::Payload;
use crate::tls::Secured;
use crate::tls::config::ClientTls;

/// A connection, by the index that its user chose. There is at most one open connection per index.
pub type ConnId = u32;

/// What a driver needs to know before it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Connection indices are below this.
    pub connections: usize,
    pub addresses: Arc<[Address]>,
    /// Where connections come from, in turn by index; the kernel chooses when there are none.
    pub sources: Arc<[Address]>,
    /// Byte strings that are sent again and again, by index.
    pub fixed: Arc<[Vec<u8>]>,
    /// Whether [`Driver::accepted_ns`] is asked for.
    pub times_sends: bool,
    /// Of a thread that carries faults on request ([`faulty::Faulty`]).
    pub faults: Faults,
    /// For a driver that secures what it sends.
    pub tls: Option<Arc<ClientTls>>,
}

impl Config {
    /// Where a connection comes from.
    pub fn source(&self, conn: ConnId) -> Option<&Address> {
        source(&self.sources, conn)
    }
}

fn source(sources: &[Address], conn: ConnId) -> Option<&Address> {
    match sources.len() {
        0 => None,
        count => sources.get(conn as usize % count),
    }
}

/// Something that happened.
#[derive(Debug)]
pub enum NetEvent {
    Connected(ConnId),
    /// Of a driver that secures: the handshake ended well, and requests may be sent.
    Secured(ConnId, Secured),
    /// TLS failed, in the handshake or later, and why; the connection is of no more use.
    #[expect(
        clippy::box_collection,
        reason = "events are moved often and this one is rare"
    )]
    Unsecured(ConnId, Box<String>),
    /// With the `errno` of the attempt.
    ConnectFailed(ConnId, i32),
    Received(Received),
    /// The other side closed its direction.
    Closed(ConnId),
    /// The connection broke while reading or writing; with the `errno`.
    Broken(ConnId, Direction, i32),
    /// The client could not hand an operation of this connection to the kernel, with the `errno`: nothing that the server did.
    Refused(ConnId, i32),
    /// Another thread used the [`sys::Waker`].
    Woken,
}

impl NetEvent {
    /// The connection it is about.
    pub fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Connected(conn)
            | Self::Secured(conn, _)
            | Self::Unsecured(conn, _)
            | Self::ConnectFailed(conn, _)
            | Self::Closed(conn)
            | Self::Broken(conn, _, _)
            | Self::Refused(conn, _) => Some(*conn),
            Self::Received(received) => Some(received.conn),
            Self::Woken => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// Bytes that arrived; read them by [`Driver::bytes`] and give the buffer back by [`Driver::release`].
#[derive(Debug)]
pub struct Received {
    pub conn: ConnId,
    buffer: u16,
    length: u32,
}

#[cfg(test)]
impl Received {
    /// Bytes that a simulated driver keeps by itself.
    pub fn whole(conn: ConnId, bytes: &[u8]) -> Self {
        Self {
            conn,
            buffer: 0,
            length: bytes.len() as u32,
        }
    }
}

/// A way to the kernel. Calls between two waits only prepare; [`Driver::flush`] and [`Driver::wait`] let the kernel begin.
///
/// A closed index may be connected anew at once: events of the connection before are never delivered after [`Driver::close`].
pub trait Driver: Sized {
    /// As named in plans and events.
    const NAME: &'static str;
    /// How many sends are worth handing over together.
    const SEND_GROUP: usize;
    /// Whether bytes are fetched one connection at a time, so that each [`NetEvent::Received`] has a time of its own. Otherwise all
    /// events of a batch had happened when [`Driver::wait`] returned.
    const FETCHES_LATE: bool;
    /// Whether a connection must be secured before it is of use: [`NetEvent::Connected`] is then followed by [`NetEvent::Secured`].
    const SECURES: bool = false;

    fn new(config: Config) -> io::Result<Self>;

    /// The faults that the thread above it carries on request.
    #[inline(always)]
    fn faults(&self) -> Faults {
        Faults::NONE
    }

    /// Begins to connect to the address of this index.
    fn connect(&mut self, conn: ConnId, address: usize);

    /// Sends on an open connection, at the latest with the next [`Driver::flush`].
    fn send(&mut self, conn: ConnId, payload: Payload);

    /// Memory of an owned payload that was sent, to make the next one in.
    fn spare(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Hands everything prepared to the kernel without waiting. What the kernel does not take for the moment stays prepared.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether a send has not been taken by the kernel completely.
    fn is_sending(&self, conn: ConnId) -> bool;

    /// When the kernel had taken the last byte of the last send; `None` while it has not, or without [`Config::times_sends`].
    fn accepted_ns(&self, _conn: ConnId) -> Option<u64> {
        None
    }

    /// How often the kernel has put off taking operations since this was asked last: time that is the client's and not the server's.
    fn take_put_off(&mut self) -> u64 {
        0
    }

    /// Closes, whatever the state; does nothing on a closed index.
    fn close(&mut self, conn: ConnId);

    /// Hands everything prepared to the kernel and waits for a batch of events, until the given monotonic time at most.
    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()>;

    /// The next event of the batch.
    fn next(&mut self) -> Option<NetEvent>;

    fn bytes(&self, received: &Received) -> &[u8];

    fn release(&mut self, received: Received);

    fn waker(&self) -> sys::Waker;

    /// The clock that belongs to it: the monotonic one, unless a test drives time by itself.
    #[inline]
    fn now_ns(&self) -> u64 {
        sys::monotonic_ns()
    }
}
