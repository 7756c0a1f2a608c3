//! What the life of a user is made of. Each moment of it is one part and no other, so their sum is
//! ∫ users dt. Must not know of requests.

use super::running::Running;

/// What a moment of a user's life is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifePart {
    /// Residence, from a send to the end of its last response, think times and pauses.
    Cycle,
    /// From the begin of an attempt to connect until a request may be sent.
    Connect,
    /// The client's own time before a send: all that is none of the others.
    Turnaround,
    /// After a failed attempt to connect.
    BackOff,
}

/// Where the users are now, and how long they have been anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lives([Running; 4]);

impl Lives {
    /// A user comes to a part of its life.
    #[inline]
    pub fn enter(&mut self, part: LifePart, at_ns: u64) {
        self.0[part as usize].begin(at_ns);
    }

    /// A user leaves it.
    #[inline]
    pub fn leave(&mut self, part: LifePart, at_ns: u64) {
        self.0[part as usize].end(at_ns);
    }

    /// Users in a part at the moment.
    pub fn users_in(&self, part: LifePart) -> i64 {
        self.0[part as usize].count()
    }

    /// Time of all users up to this moment, of those who are still there too.
    pub fn until(&self, at_ns: u64) -> UserTime {
        UserTime(self.0.map(|part| part.until(at_ns)))
    }
}

/// Time of users, by part, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserTime([i128; 4]);

impl UserTime {
    pub fn of(&self, part: LifePart) -> i128 {
        self.0[part as usize]
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// What was added since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (mine, theirs) in since.0.iter_mut().zip(earlier.0) {
            *mine -= theirs;
        }
        since
    }

    /// Of all parts together.
    #[cfg(test)]
    pub fn total(&self) -> i128 {
        self.0.iter().sum()
    }
}
