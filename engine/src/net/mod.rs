//! Connections as bytes: connect, send, receive, close, wait. Two drivers implement one trait.
//! Nothing here knows HTTP, users or measurements.

pub mod address;
mod arrival;
mod buffers;
pub mod epoll;
pub mod probe;
pub mod reach;
pub mod read_ahead;
pub mod rings;
mod send_times;
pub mod sys;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod uring;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;

use address::Address;
use buffers::Filled;
use read_ahead::ReadAhead;

use crate::fault::Faults;
use crate::measure::counters::ErrorKind;
use crate::measure::http2::Http2Figures;
use crate::payload::Payload;
use crate::tls::Secured;
use crate::tls::config::ClientTls;

/// A connection, by the index that its user chose. At most one connection is open per index.
pub type ConnId = u32;

/// The configuration of a driver.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Connection indices are below this.
    pub connections: usize,
    pub addresses: Arc<[Address]>,
    /// Source addresses, used in turn by connection index; empty: the kernel chooses.
    pub sources: Arc<[Address]>,
    /// Requests that are sent unchanged, by index.
    pub fixed: Arc<[Vec<u8>]>,
    /// Whether [`Driver::accepted_ns`] is asked for.
    pub times_sends: bool,
    /// Whether the kernel is asked when it took in what it delivers ([`Driver::arrived_ns`]).
    pub receive_stamps: bool,
    /// Of a thread that carries faults on request ([`Driver::faults`]).
    pub faults: Faults,
    /// For the TLS driver.
    pub tls: Option<Arc<ClientTls>>,
    /// Whose connections are whose.
    pub owners: Owners,
    /// Draws which connections are stamped.
    pub seed: u64,
    /// Connections end by a reset.
    pub resets: bool,
    /// For the driver of HTTP/2: which of the users' connections are one.
    pub http2: Option<Sharing>,
    /// Reads the files that bodies are.
    pub read_ahead: ReadAhead,
}

impl Config {
    /// So many connections to these addresses in plain, and nothing else that is asked for.
    pub fn new(connections: usize, addresses: Vec<Address>) -> Self {
        Self {
            connections,
            addresses: Arc::from(addresses),
            seed: 1,
            ..Self::default()
        }
    }

    /// Where a connection comes from.
    fn source(&self, conn: ConnId) -> Option<&Address> {
        match self.sources.len() {
            0 => None,
            count => self.sources.get(conn as usize % count),
        }
    }

    /// A socket for a connection to this address.
    fn socket(&self, conn: ConnId, to: &Address) -> io::Result<OwnedFd> {
        let socket = sys::stream_socket(to, self.source(conn))?;
        if self.resets && !to.is_unix() {
            sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        }
        Ok(socket)
    }
}

/// Which client a connection is of: `sides` in a row are of one, round after round of `clients`.
#[derive(Debug, Clone, Copy)]
pub struct Owners {
    pub sides: usize,
    pub clients: usize,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            sides: 1,
            clients: 1,
        }
    }
}

impl Owners {
    pub fn client(self, conn: ConnId) -> usize {
        conn as usize / self.sides % self.clients.max(1)
    }
}

/// How connections are shared and opened.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Connections to each server that users share; user u has connection u mod this.
    pub connections: usize,
    /// Users of this thread.
    pub users: usize,
    pub client: prony_h2::Config,
}

/// What happened to a connection.
#[derive(Debug)]
pub enum NetEvent {
    Connected(ConnId),
    /// TLS driver: the handshake is complete, requests may be sent.
    Secured(ConnId, Secured),
    /// TLS failed, in the handshake or later, and why; the connection is no longer usable.
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
    /// The other side closed without TLS's close_notify: what has come may not be all.
    Truncated(ConnId),
    /// The connection broke while reading or writing; with the `errno`.
    Broken(ConnId, Direction, i32),
    /// The kernel refused an operation, with the `errno`: a failure of the client.
    Refused(ConnId, i32),
    /// The connection is open, and others use it too; its opener gets an event of its own.
    Joined(ConnId),
    /// The request under way ended without a response, and its connection stays.
    Lost(ConnId, Box<Lost>),
    /// Another thread used the [`sys::Waker`].
    Woken,
}

/// How a request ended whose connection stays.
#[derive(Debug)]
pub struct Lost {
    pub kind: ErrorKind,
    pub reason: String,
}

impl NetEvent {
    /// The connection it is about.
    pub fn conn(&mut self) -> Option<&mut ConnId> {
        match self {
            Self::Connected(conn)
            | Self::Secured(conn, _)
            | Self::Unsecured(conn, _)
            | Self::ConnectFailed(conn, _)
            | Self::Received(Received { conn, .. })
            | Self::Closed(conn)
            | Self::Truncated(conn)
            | Self::Broken(conn, _, _)
            | Self::Joined(conn)
            | Self::Lost(conn, _)
            | Self::Refused(conn, _) => Some(conn),
            Self::Woken => None,
        }
    }

    /// Whether it is about this connection.
    pub fn is_of(&mut self, conn: ConnId) -> bool {
        self.conn().is_some_and(|of| *of == conn)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// Bytes that arrived ([`Driver::bytes`]); [`Driver::release`] gives their buffer back.
#[derive(Debug)]
pub struct Received {
    pub conn: ConnId,
    /// Where a ring has them; `None`: the driver keeps them by itself.
    buffer: Option<Filled>,
    /// The kernel was asked when it took these bytes in.
    stamped: bool,
    length: u32,
}

impl Received {
    /// Bytes that a driver keeps by itself.
    pub fn new(conn: ConnId, length: usize, stamped: bool) -> Self {
        Self {
            conn,
            buffer: None,
            stamped,
            length: length as u32,
        }
    }
}

/// What a driver over another one leaves to that: the clock, the way to wake it, what the kernel put off;
/// and its own bytes, of which nothing is to be given back.
macro_rules! over_another_driver {
    ($bytes:ident) => {
        fn take_put_off(&mut self) -> u64 {
            self.wire.take_put_off()
        }

        #[inline]
        fn bytes(&self, _received: &Received) -> &[u8] {
            &self.$bytes
        }

        #[inline]
        fn arrived_ns(&self, _received: &Received) -> Option<u64> {
            self.arrived_ns
        }

        #[inline]
        fn release(&mut self, _received: Received) {}

        fn waker(&self) -> Waker {
            self.waker.clone()
        }

        #[inline]
        fn now_ns(&self) -> u64 {
            self.wire.now_ns()
        }
    };
}
pub(crate) use over_another_driver;

/// Network I/O. Calls between two waits only queue; [`Driver::flush`] and [`Driver::wait`] submit.
///
/// A closed index may be reconnected at once: no event of the connection before follows.
pub trait Driver: Sized {
    /// As named in plans and events.
    const NAME: &'static str;
    /// How many sends are submitted together.
    const SEND_GROUP: usize;
    /// Whether each [`NetEvent::Received`] has a time of its own. Otherwise all events of a batch
    /// had happened when [`Driver::wait`] returned.
    const STAMPS_EACH_READ: bool;
    /// Whether [`NetEvent::Secured`] follows [`NetEvent::Connected`]: a TLS handshake.
    const SECURES: bool = false;

    fn new(config: Config) -> io::Result<Self>;

    /// The faults that the thread above it carries on request: a constant for all drivers but one, so
    /// that a run without faults pays nothing.
    #[inline(always)]
    fn faults(&self) -> Faults {
        Faults::NONE
    }

    /// Starts connecting to the address of this index.
    fn connect(&mut self, conn: ConnId, address: usize);

    /// Sends on an open connection, at the latest with the next [`Driver::flush`].
    fn send(&mut self, conn: ConnId, payload: Payload);

    /// A buffer of a payload that has been sent, for reuse.
    fn spare(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Submits everything queued without waiting. What the kernel refuses for now stays queued.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether part of a send is still to be taken by the kernel.
    fn is_sending(&self, conn: ConnId) -> bool;

    /// When the kernel had taken the last byte of the last send ([`Config::times_sends`]).
    fn accepted_ns(&self, _conn: ConnId) -> Option<u64> {
        None
    }

    /// How often the kernel refused submissions since the last call: a delay of the client.
    fn take_put_off(&mut self) -> u64 {
        0
    }

    /// What happened on connections that users share, since the last call.
    fn take_http2(&mut self) -> Option<Box<Http2Figures>> {
        None
    }

    /// Closes in any state; no effect on a closed index.
    fn close(&mut self, conn: ConnId);

    /// Who had this connection is gone; the next one knows nothing of it.
    fn forget_client(&mut self, _conn: ConnId) {}

    /// Sends what is to be followed by [`Driver::close`].
    fn send_last(&mut self, conn: ConnId, payload: Payload) {
        self.send(conn, payload);
    }

    /// Submits everything queued and waits for events, at most until this monotonic time.
    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()>;

    /// The next event of the batch.
    fn next(&mut self) -> Option<NetEvent>;

    fn bytes(&self, received: &Received) -> &[u8];

    /// When the kernel had taken in the last packet of these bytes, by the driver's clock; asked of
    /// one connection in 16. `None`: not asked, or not known. Asked before [`Driver::release`].
    #[inline]
    fn arrived_ns(&self, _received: &Received) -> Option<u64> {
        None
    }

    fn release(&mut self, received: Received);

    /// Ends a wait from another thread.
    fn waker(&self) -> sys::Waker;

    /// The driver's clock: monotonic time, or virtual time in a simulation.
    #[inline]
    fn now_ns(&self) -> u64 {
        sys::monotonic_ns()
    }
}
