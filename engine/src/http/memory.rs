//! A memory budget for incomplete responses: a server that starts responses and never finishes them
//! must not exhaust the client's memory. Each thread has its own, so that the hot path has no contention.

use std::cell::Cell;
use std::rc::Rc;

/// What all responses of one thread may hold together.
#[derive(Debug, Clone)]
pub struct Budget(Rc<Bytes>);

#[derive(Debug)]
struct Bytes {
    held: Cell<usize>,
    max: usize,
}

/// The budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUp;

/// The memory of one incomplete response; dropping it returns the memory to the budget.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub fn new(max_bytes: u64) -> Self {
        Self(Rc::new(Bytes {
            held: Cell::new(0),
            max: usize::try_from(max_bytes).unwrap_or(usize::MAX),
        }))
    }

    /// Nothing of it yet.
    pub fn nothing(&self) -> Held {
        Held {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

impl Held {
    /// So many bytes in all from now on, or as before when the budget does not allow it.
    pub fn set(&mut self, bytes: usize) -> Result<(), UsedUp> {
        let Bytes { held, max } = &*self.budget.0;
        let all = held.get() - self.bytes + bytes;
        if bytes > self.bytes && all > *max {
            return Err(UsedUp);
        }
        held.set(all);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = &self.budget.0.held;
        held.set(held.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_holds_no_more_than_its_budget_and_gives_back_what_it_held() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (budget.nothing(), budget.nothing());
        assert_eq!((one.set(60), other.set(40)), (Ok(()), Ok(())));
        assert_eq!(one.set(61), Err(UsedUp));
        assert_eq!(one.set(50), Ok(()));
        assert_eq!(other.set(51), Err(UsedUp));
        drop(one);
        assert_eq!(other.set(100), Ok(()));
        drop(other);
        assert_eq!(budget.0.held.get(), 0);
    }
}
