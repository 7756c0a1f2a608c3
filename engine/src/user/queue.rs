//! The requests that users have under way together: what was sent on a connection and is not
//! answered, in its order, and where a user goes from there when that was decided before its last
//! response. Only where several may be under way.

use std::collections::{HashMap, VecDeque};

use super::moves::Move;

/// A request that was sent.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub step: u16,
    /// Whether it is HEAD, where that is not the same for all requests of a step.
    pub head: Option<bool>,
    /// What it asked for, where the user keeps something of its response by that.
    pub target: Option<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Queues {
    users: Vec<VecDeque<Pending>>,
    /// By user: what comes after the requests under way.
    ahead: HashMap<u32, Move>,
}

impl Queues {
    pub(super) fn new(users: usize) -> Self {
        Self {
            users: vec![VecDeque::new(); users],
            ahead: HashMap::new(),
        }
    }

    /// The requests of a user, the one that is answered next first.
    pub(super) fn of(&self, index: u32) -> &VecDeque<Pending> {
        &self.users[index as usize]
    }

    pub(super) fn push(&mut self, index: u32, pending: Pending) {
        self.users[index as usize].push_back(pending);
    }

    /// The first request ended; the one that is answered next.
    pub(super) fn pop(&mut self, index: u32) -> Option<&Pending> {
        let queue = &mut self.users[index as usize];
        queue.pop_front();
        queue.front()
    }

    pub(super) fn decide(&mut self, index: u32, ahead: Move) {
        self.ahead.insert(index, ahead);
    }

    pub(super) fn take_ahead(&mut self, index: u32) -> Option<Move> {
        self.ahead.remove(&index)
    }
}
