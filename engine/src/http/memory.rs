//! A memory budget for incomplete responses, per thread: a server that starts responses and never
//! finishes them must not exhaust the client's memory. Threads do not share it, so that the hot path
//! has no contention.

use std::cell::Cell;

std::thread_local! {
    static HELD_BYTES: Cell<usize> = const { Cell::new(0) };
    static MOST_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Sets the budget of the calling thread.
pub fn set_budget(bytes: u64) {
    MOST_BYTES.set(usize::try_from(bytes).unwrap_or(usize::MAX));
}

/// The thread's budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUp;

/// The memory of one incomplete response; dropping it returns the memory to the budget.
#[derive(Debug, Default)]
pub struct Held {
    bytes: usize,
}

impl Held {
    /// So many bytes in all from now on, or as before when the budget does not allow it.
    pub fn set(&mut self, bytes: usize) -> Result<(), UsedUp> {
        let all = HELD_BYTES.get() - self.bytes + bytes;
        if bytes > self.bytes && all > MOST_BYTES.get() {
            return Err(UsedUp);
        }
        HELD_BYTES.set(all);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD_BYTES.set(HELD_BYTES.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_holds_no_more_than_its_budget_and_gives_back_what_it_held() {
        set_budget(100);
        let (mut one, mut other) = (Held::default(), Held::default());
        assert_eq!((one.set(60), other.set(40)), (Ok(()), Ok(())));
        assert_eq!(one.set(61), Err(UsedUp));
        assert_eq!(one.set(50), Ok(()));
        assert_eq!(other.set(51), Err(UsedUp));
        drop(one);
        assert_eq!(other.set(100), Ok(()));
        drop(other);
        assert_eq!(HELD_BYTES.get(), 0);
    }
}
