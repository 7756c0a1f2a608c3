//! The deadlines of one thread's connections, earliest first. It knows nothing of clocks: times are
//! numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A deadline of a connection. A connection has at most one that is valid: the one with its current
/// `ticket`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    pub due_ns: u64,
    pub key: u64,
    pub ticket: u32,
}

/// A heap. A cancelled deadline stays until it is due; its owner then ignores it.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<Deadline>>);

impl Timers {
    pub fn arm(&mut self, deadline: Deadline) {
        self.0.push(Reverse(deadline));
    }

    pub fn next_due_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse(deadline)| deadline.due_ns)
    }

    /// The earliest deadline that is due at `now_ns`.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Deadline> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        self.0.pop().map(|Reverse(deadline)| deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_order_and_never_early() {
        let mut timers = Timers::default();
        for (due_ns, key) in [(30, 3), (10, 1), (20, 2), (10, 4)] {
            timers.arm(Deadline {
                due_ns,
                key,
                ticket: 0,
            });
        }
        assert_eq!(timers.next_due_ns(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        let order: Vec<u64> = std::iter::from_fn(|| timers.pop_due(25))
            .map(|deadline| deadline.key)
            .collect();
        assert_eq!(order, [1, 4, 2]);
        assert_eq!(timers.next_due_ns(), Some(30));
    }
}
