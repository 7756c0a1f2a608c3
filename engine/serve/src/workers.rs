//! The limit of requests in service (`--workers`) and its queue, first come first served over all
//! threads.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

#[derive(Debug)]
pub struct Workers {
    free: Semaphore,
    queued: AtomicU64,
    longest_queue: AtomicU64,
}

impl Workers {
    pub fn new(count: u32) -> Self {
        Self {
            free: Semaphore::new(count as usize),
            queued: AtomicU64::new(0),
            longest_queue: AtomicU64::new(0),
        }
    }

    /// A worker, once one is free; dropped, it goes to the next in the queue.
    pub async fn acquire(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(worker) = self.free.try_acquire() {
            return Some(worker);
        }
        let _place = Place::take(self);
        self.free.acquire().await.ok()
    }

    /// The most requests that ever waited.
    pub fn longest_queue(&self) -> u64 {
        self.longest_queue.load(Ordering::Relaxed)
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicU64);

impl<'a> Place<'a> {
    fn take(workers: &'a Workers) -> Self {
        let queued = workers.queued.fetch_add(1, Ordering::Relaxed) + 1;
        workers.longest_queue.fetch_max(queued, Ordering::Relaxed);
        Self(&workers.queued)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
