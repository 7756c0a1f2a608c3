//! Several rings as one driver: a ring cannot hold more direct descriptors than the process may
//! open files. The first one waits for all: the others signal an eventfd that it polls.

use std::io;

use super::sys::Waker;
use super::uring::Uring;
use super::{Config, ConnId, Driver, NetEvent, Payload, Received};
use prony_common::process::raise_file_limit;

/// The kernel allows more per ring; tables of this size are found at once.
const MAX_PER_RING: usize = 1 << 16;

/// How many connections one ring can have.
pub fn max_per_ring() -> usize {
    (raise_file_limit() as usize).clamp(1, MAX_PER_RING)
}

/// Rings that share the connections of one thread out in equal ranges of their indices.
pub struct Rings {
    rings: Vec<Uring>,
    per_ring: u32,
    /// The ring whose events are being returned.
    at: usize,
}

impl Rings {
    fn ring(&mut self, conn: ConnId) -> (&mut Uring, ConnId) {
        let ring = &mut self.rings[(conn / self.per_ring) as usize];
        (ring, conn % self.per_ring)
    }

    /// Submits what is prepared and fetches what has happened; whether there is an event to return.
    fn fetch(ring: &mut Uring) -> io::Result<bool> {
        if !ring.has_fetched() && ring.has_work() {
            ring.wait(Some(0))?;
        }
        Ok(ring.has_fetched())
    }
}

impl Driver for Rings {
    const NAME: &'static str = Uring::NAME;
    const SEND_GROUP: usize = Uring::SEND_GROUP;
    const STAMPS_EACH_READ: bool = Uring::STAMPS_EACH_READ;

    fn new(config: Config) -> io::Result<Self> {
        let most = max_per_ring();
        let mut rings = Vec::new();
        let completed = Waker::new()?;
        let mut left = config.connections.max(1);
        while left > 0 {
            let connections = left.min(most);
            left -= connections;
            let config = Config {
                connections,
                ..config.clone()
            };
            let mut ring = Uring::set_up(config, true)?;
            if rings.is_empty() {
                ring.wait_for_eventfd(completed.clone());
            } else {
                ring.signal_completions_to(&completed)?;
            }
            rings.push(ring);
        }
        Ok(Self {
            rings,
            per_ring: most as u32,
            at: 0,
        })
    }

    fn connect(&mut self, conn: ConnId, address: usize) {
        let (ring, conn) = self.ring(conn);
        ring.connect(conn, address);
    }

    fn send(&mut self, conn: ConnId, payload: Payload) {
        let (ring, conn) = self.ring(conn);
        ring.send(conn, payload);
    }

    fn spare(&mut self) -> Vec<u8> {
        let last = self.rings.len() - 1;
        self.rings[self.at.min(last)].spare()
    }

    fn flush(&mut self) -> io::Result<()> {
        for ring in &mut self.rings {
            if ring.has_prepared() {
                ring.flush()?;
            }
        }
        Ok(())
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.rings[(conn / self.per_ring) as usize].is_sending(conn % self.per_ring)
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        self.rings[(conn / self.per_ring) as usize].accepted_ns(conn % self.per_ring)
    }

    fn take_put_off(&mut self) -> u64 {
        self.rings.iter_mut().map(Uring::take_put_off).sum()
    }

    fn close(&mut self, conn: ConnId) {
        let (ring, conn) = self.ring(conn);
        ring.close(conn);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.at = 0;
        let Some((first, others)) = self.rings.split_first_mut() else {
            return Ok(());
        };
        let mut happened = false;
        for ring in &mut *others {
            // What the kernel put off is still in its queue, and nothing signals that it may go on.
            happened |= Self::fetch(ring)? || ring.has_prepared();
        }
        first.wait(if happened { Some(0) } else { until_ns })?;
        // What happens after this look signals the eventfd, and the next wait is short.
        for ring in others {
            Self::fetch(ring)?;
        }
        Ok(())
    }

    fn next(&mut self) -> Option<NetEvent> {
        loop {
            let ring = self.rings.get_mut(self.at)?;
            let Some(mut event) = ring.next() else {
                self.at += 1;
                continue;
            };
            if let Some(conn) = event.conn() {
                *conn += self.at as u32 * self.per_ring;
            }
            return Some(event);
        }
    }

    fn bytes(&self, received: &Received) -> &[u8] {
        self.rings[(received.conn / self.per_ring) as usize].bytes(received)
    }

    fn arrived_ns(&self, received: &Received) -> Option<u64> {
        self.rings[(received.conn / self.per_ring) as usize].arrived_ns(received)
    }

    fn release(&mut self, received: Received) {
        let (ring, _) = self.ring(received.conn);
        ring.release(received);
    }

    fn waker(&self) -> Waker {
        self.rings[0].waker()
    }
}
