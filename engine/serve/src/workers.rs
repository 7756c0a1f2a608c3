//! The limit of requests in service (`--workers`) and its queue, first come first served over all
//! threads. It knows nothing of what a request is.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A request that waits for a worker: the connection `key` of thread `thread`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub thread: usize,
    pub key: u64,
}

#[derive(Debug)]
struct State {
    free: u32,
    queue: VecDeque<Waiting>,
    longest_queue: usize,
}

#[derive(Debug)]
pub struct Workers(Mutex<State>);

impl Workers {
    pub fn new(count: u32) -> Self {
        Self(Mutex::new(State {
            free: count,
            queue: VecDeque::new(),
            longest_queue: 0,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when a worker was free and is now taken; else the request is queued.
    pub fn acquire(&self, waiting: Waiting) -> bool {
        let mut state = self.state();
        if state.free > 0 {
            state.free -= 1;
            return true;
        }
        state.queue.push_back(waiting);
        state.longest_queue = state.longest_queue.max(state.queue.len());
        false
    }

    /// Gives a worker back; the request that is returned has it now.
    pub fn release(&self) -> Option<Waiting> {
        let mut state = self.state();
        let next = state.queue.pop_front();
        if next.is_none() {
            state.free += 1;
        }
        next
    }

    pub fn longest_queue(&self) -> usize {
        self.state().longest_queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_are_in_service_and_the_rest_come_in_order() {
        let workers = Workers::new(2);
        let request = |key| Waiting { thread: 0, key };
        assert!(workers.acquire(request(1)) && workers.acquire(request(2)));
        assert!(!workers.acquire(request(3)) && !workers.acquire(request(4)));
        assert_eq!(workers.longest_queue(), 2);
        assert_eq!(workers.release(), Some(request(3)));
        assert_eq!(workers.release(), Some(request(4)));
        assert_eq!(workers.release(), None);
        assert_eq!(workers.release(), None);
        assert!(
            workers.acquire(request(5))
                && workers.acquire(request(6))
                && !workers.acquire(request(7))
        );
    }
}
