//! Files are read by a thread of their own, one piece ahead of what is sent: a disk that is slow
//! holds up nobody but the request whose body it has.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::sys::{Waker, thread_cpu_ns};
use crate::payload::{Outgoing, Piece};

/// A piece that is to be read, and who waits for it.
struct Order {
    piece: Piece,
    to: Sender<io::Result<Vec<u8>>>,
    waker: Waker,
}

/// What came of asking for more of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refill {
    /// The next piece is in the place of the bytes.
    Piece,
    /// It is still being read; the thread is woken then.
    Later,
    /// Nothing follows.
    Nothing,
}

/// The way to the thread that reads; without one no payload may have a file.
#[derive(Debug, Clone, Default)]
pub struct ReadAhead {
    orders: Option<Sender<Order>>,
    cpu_ns: Arc<AtomicU64>,
}

/// What is to be read.
pub struct Orders {
    inbox: Receiver<Order>,
    cpu_ns: Arc<AtomicU64>,
}

impl ReadAhead {
    pub fn new() -> (Self, Orders) {
        let (orders, inbox) = channel();
        let cpu_ns = Arc::<AtomicU64>::default();
        let ahead = Self {
            orders: Some(orders),
            cpu_ns: Arc::clone(&cpu_ns),
        };
        (ahead, Orders { inbox, cpu_ns })
    }

    /// CPU time of the thread up to its last piece; `None` without one.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.orders.as_ref()?;
        Some(self.cpu_ns.load(Ordering::Relaxed))
    }

    /// Starts the thread, which ends with the last of those who may ask it.
    pub fn start() -> io::Result<Self> {
        let (ahead, orders) = Self::new();
        std::thread::Builder::new()
            .name("read-ahead".to_owned())
            .spawn(move || while orders.read_next() {})?;
        Ok(ahead)
    }

    /// Has the first piece of a file read, while what is before it goes out.
    #[inline]
    pub fn begin(&self, outgoing: &mut Outgoing, waker: &Waker) {
        if outgoing.rest.is_some() {
            self.order(outgoing, Vec::new(), waker);
        }
    }

    #[cold]
    fn order(&self, outgoing: &mut Outgoing, memory: Vec<u8>, waker: &Waker) {
        let rest = outgoing.rest.as_mut().filter(|rest| rest.read.is_none());
        if let Some(rest) = rest
            && let Some(piece) = rest.next_piece(memory)
        {
            let (to, from) = channel();
            rest.read = Some(from);
            if let Some(orders) = &self.orders {
                let waker = waker.clone();
                // A missing reader shows as a disconnected channel.
                let _ = orders.send(Order { piece, to, waker });
            }
        }
    }

    /// When all bytes were sent: puts the piece that follows in their place, and has the next one
    /// read. With the `errno` when the file cannot be read or has become shorter.
    pub fn refill(&self, outgoing: &mut Outgoing, waker: &Waker) -> Result<Refill, i32> {
        if !outgoing.follows() {
            return Ok(Refill::Nothing);
        }
        self.begin(outgoing, waker);
        let Some(rest) = &mut outgoing.rest else {
            return Ok(Refill::Nothing);
        };
        let read = match rest.read.as_ref().map(Receiver::try_recv) {
            Some(Ok(read)) => read.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?,
            Some(Err(std::sync::mpsc::TryRecvError::Empty)) => return Ok(Refill::Later),
            _ => return Err(libc::EIO),
        };
        rest.read = None;
        let sent = std::mem::replace(&mut outgoing.bytes, read);
        self.order(outgoing, sent, waker);
        Ok(Refill::Piece)
    }
}

impl Orders {
    /// Reads the next piece, waiting for one; false when there can be none any more.
    pub fn read_next(&self) -> bool {
        let Ok(Order { piece, to, waker }) = self.inbox.recv() else {
            return false;
        };
        let read = piece.read();
        self.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
        // The connection may have closed.
        if to.send(read).is_ok() {
            waker.wake();
        }
        true
    }
}

#[cfg(test)]
mod tests;
