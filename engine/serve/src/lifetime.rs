//! One connection from its socket to its end. What is well behaved is left to hyper and h2; a fault
//! takes the connection away from them and writes to it as it is.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use super::connection::{Connection, Ending, unless};
use super::io::Io;
use super::ready::pollable;
use super::thread::Thread;
use super::{bare, http1, http2};

/// How long a closed connection is still read, so that the client sees the end and not a reset.
const LINGER_NS: u64 = 1_000_000_000;
const GARBAGE_BYTES: usize = 64;
/// The endless head comes as some lines every millisecond: no end, and no flood.
const ENDLESS_EVERY_NS: u64 = 1_000_000;

/// An open connection, while it is counted as one.
struct Open<'a>(&'a Thread);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.counters.connections_open.subtract(1);
    }
}

pub async fn serve(thread: Rc<Thread>, socket: OwnedFd) {
    let _open = Open(&thread);
    let Ok(socket) = pollable(socket).map(Rc::new) else {
        return;
    };
    let connection = Rc::new(Connection::new(&thread));
    let answering = Box::pin(answer(&connection, &socket));
    match thread.shared.bare {
        true => answering.await,
        // hyper reads nothing while a response is due: a reset is noticed here.
        false => {
            unless(socket.ready(Interest::ERROR), answering).await;
        }
    }
}

async fn answer(connection: &Rc<Connection>, socket: &Rc<TcpStream>) {
    let Some(mut io) = Box::pin(Io::open(connection, socket)).await else {
        return;
    };
    // What an idle connection of the bare loop does not need is not a part of it.
    let ending = if connection.thread.shared.bare {
        bare::serve(connection, &mut io).await
    } else if connection.thread.shared.http2.is_some() && Box::pin(io.speaks_http2()).await {
        Box::pin(http2::serve(connection, &mut io)).await
    } else {
        Box::pin(http1::serve(connection, &mut io)).await
    };
    Box::pin(end(connection, socket, io, ending)).await;
}

async fn end(connection: &Connection, socket: &TcpStream, mut io: Io, ending: Ending) {
    connection.drip_ns.set(None);
    match ending {
        Ending::Close | Ending::Leave => close(connection, &mut io).await,
        Ending::Reset => {
            // A linger time of zero makes the close a reset. Refused, it stays an orderly close.
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
        Ending::Garbage => {
            let mut bytes = [0; GARBAGE_BYTES];
            connection.thread.random.borrow_mut().garbage(&mut bytes);
            if io.write_all(&bytes).await.is_ok() {
                close(connection, &mut io).await;
            }
        }
        Ending::Mute => discard(&mut io).await,
        Ending::Endless(stream) => endless(connection, &mut io, stream).await,
    }
}

async fn close(connection: &Connection, io: &mut Io) {
    if io.shutdown().await.is_err() {
        return;
    }
    let thread = &connection.thread;
    let until_ns = thread.shared.clock.now_ns() + LINGER_NS;
    unless(thread.timers.until(until_ns), discard(io)).await;
}

/// Reads to the client's end.
async fn discard(io: &mut Io) {
    let mut unused = vec![0; 4096];
    while io.read(&mut unused).await.is_ok_and(|length| length > 0) {}
}

async fn endless(connection: &Connection, io: &mut Io, stream: Option<u32>) {
    let (begin, lines) = match stream {
        None => http1::endless_head(),
        Some(id) => http2::endless_head(id),
    };
    let thread = &connection.thread;
    let mut due_ns = thread.shared.clock.now_ns();
    let mut sent = io.write_all(&begin).await;
    while sent.is_ok() {
        sent = io.write_all(&lines).await;
        due_ns = thread.shared.clock.now_ns().max(due_ns + ENDLESS_EVERY_NS);
        thread.timers.until(due_ns).await;
    }
}
