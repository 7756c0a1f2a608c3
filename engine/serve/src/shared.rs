//! What the threads share: the behaviour, the counters, the workers, and mailboxes to wake each
//! other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustls::ServerConfig;

use super::behaviour::Behaviour;
use super::clock::{self, Clock};
use super::counters::{Counters, Totals};
use super::options::Http2Limits;
use super::recorder::Recorder;
use super::workers::Workers;

/// Messages to a thread: connections that were given a worker. Writing wakes the thread.
#[derive(Debug)]
pub struct Mailbox {
    posts: Mutex<Vec<u64>>,
    wake: OwnedFd,
}

impl Mailbox {
    fn new() -> std::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self {
            posts: Mutex::new(Vec::new()),
            wake,
        })
    }

    pub fn post(&self, key: u64) {
        self.posts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(key);
        self.wake();
    }

    pub fn wake(&self) {
        // The only failure is a counter that is full, and then the thread is awake already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    pub fn take(&self) -> Vec<u64> {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        std::mem::take(&mut *self.posts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[derive(Debug)]
pub struct Shared {
    pub behaviour: Behaviour,
    pub clock: Clock,
    /// By thread.
    pub counters: Vec<Arc<Counters>>,
    pub mailboxes: Vec<Mailbox>,
    pub workers: Option<Workers>,
    pub tls: Option<Arc<ServerConfig>>,
    /// HTTP/2 is spoken beside HTTP/1.1.
    pub http2: Option<Http2Limits>,
    pub recorder: Option<Recorder>,
    /// The server is to end.
    pub stop: AtomicBool,
}

impl Shared {
    pub fn new(
        behaviour: Behaviour,
        threads: usize,
        tls: Option<Arc<ServerConfig>>,
        http2: Option<Http2Limits>,
        recorder: Option<Recorder>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            workers: behaviour.workers.map(Workers::new),
            behaviour,
            clock: Clock::start(),
            counters: (0..threads).map(|_| Arc::default()).collect(),
            mailboxes: (0..threads)
                .map(|_| Mailbox::new())
                .collect::<Result<_, _>>()?,
            tls,
            http2,
            recorder,
            stop: AtomicBool::new(false),
        })
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub fn totals(&self) -> Totals {
        Totals {
            cpu_s: clock::process_cpu_ns() as f64 / 1e9,
            longest_queue: self
                .workers
                .as_ref()
                .map_or(0, |workers| workers.longest_queue() as u64),
            ..Totals::over(self.counters.iter().map(AsRef::as_ref))
        }
    }

    /// The totals as one line of JSON.
    pub fn totals_json(&self) -> String {
        serde_json::to_string(&self.totals()).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_arrives_once() {
        let mailbox = Mailbox::new().unwrap();
        mailbox.post(7);
        mailbox.post(8);
        assert_eq!(mailbox.take(), [7, 8]);
        assert!(mailbox.take().is_empty());
    }
}
