//! The rings of one thread: a ring has only so many slots as the process may have files, and when all are full there is another.
//! The first waits for all: the others ring its bell. It knows nothing of what connections are for.

use std::io;
use std::ops::{Index, IndexMut};
use std::os::fd::BorrowedFd;

use crate::net::acceptor::Acceptor;
use crate::net::sys::Waker;

/// Submissions of the first ring and of the others, which come when there are very many connections, most of them idle.
const QUEUE: u32 = 1024;
const FURTHER_QUEUE: u32 = 256;
/// With fewer free slots connections are accepted one by one: of many at a time, some would come to a full table and be lost.
const SPARE_SLOTS: u32 = 8192;

/// One ring with its place among the connections of its thread.
#[derive(Debug)]
pub struct Ring {
    pub acceptor: Acceptor,
    /// Connections in it.
    pub open: u32,
    /// Number of its first connection.
    pub base: u32,
}

impl Ring {
    pub fn has_room(&self) -> bool {
        self.open < self.acceptor.slots()
    }

    pub fn has_much_room(&self) -> bool {
        self.open + SPARE_SLOTS < self.acceptor.slots()
    }

    /// Submits what is prepared and fetches what has happened, without waiting.
    fn fetch(&mut self) -> io::Result<()> {
        if self.acceptor.has_work() {
            self.acceptor.wait(Some(0))?;
        }
        Ok(())
    }
}

/// See the module.
#[derive(Debug)]
pub struct Rings {
    list: Vec<Ring>,
    /// With more than one ring.
    bell: Option<Waker>,
}

impl Rings {
    /// One ring, which also says when `mail` is readable.
    pub fn new(mail: BorrowedFd<'_>) -> io::Result<Self> {
        let mut acceptor = Acceptor::new(QUEUE)?;
        acceptor.watch(mail);
        Ok(Self {
            list: vec![Ring {
                acceptor,
                open: 0,
                base: 0,
            }],
            bell: None,
        })
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Submits what is prepared and waits until something has happened in any ring, until the given monotonic time at most.
    pub fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let Some((first, others)) = self.list.split_first_mut() else {
            return Ok(());
        };
        let mut happened = false;
        for ring in &mut *others {
            ring.fetch()?;
            happened |= ring.acceptor.has_happened();
        }
        first
            .acceptor
            .wait(if happened { Some(0) } else { until_ns })?;
        // What happens after this look rings the bell, and the next wait is short.
        others.iter_mut().try_for_each(Ring::fetch)
    }

    /// A ring that can take another connection, a new one if need be; `None` when the kernel gives no more.
    pub fn with_room(&mut self) -> Option<usize> {
        let found = self.list.iter().position(Ring::has_room);
        found.or_else(|| self.add().ok())
    }

    fn add(&mut self) -> io::Result<usize> {
        let acceptor = Acceptor::new(FURTHER_QUEUE)?;
        let bell = match &self.bell {
            Some(bell) => bell,
            None => {
                let bell = Waker::new()?;
                self.list[0].acceptor.wait_for_bell(bell.clone());
                self.bell.insert(bell)
            }
        };
        acceptor.ring_when_happened(bell)?;
        let base = self
            .list
            .last()
            .map_or(0, |last| last.base + last.acceptor.slots());
        self.list.push(Ring {
            acceptor,
            open: 0,
            base,
        });
        Ok(self.list.len() - 1)
    }

    /// The ring of the connection of this number.
    pub fn of(&self, connection: usize) -> usize {
        if self.list.len() == 1 {
            return 0;
        }
        self.list
            .partition_point(|ring| ring.base as usize <= connection)
            .saturating_sub(1)
    }
}

impl Index<usize> for Rings {
    type Output = Ring;

    fn index(&self, ring: usize) -> &Ring {
        &self.list[ring]
    }
}

impl IndexMut<usize> for Rings {
    fn index_mut(&mut self, ring: usize) -> &mut Ring {
        &mut self.list[ring]
    }
}
