//! What unfinished answers may take together on one thread: a server that begins answers and never
//! ends them must not take the client's memory. Each thread counts for itself, so that nothing is
//! shared on the way of a request.

use std::cell::Cell;

std::thread_local! {
    static HELD_BYTES: Cell<usize> = const { Cell::new(0) };
    static MOST_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Sets the budget of the calling thread.
pub fn set_budget(bytes: u64) {
    MOST_BYTES.set(usize::try_from(bytes).unwrap_or(usize::MAX));
}

/// The budget of this thread is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUp;

/// The memory of one unfinished answer, given back with it.
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
