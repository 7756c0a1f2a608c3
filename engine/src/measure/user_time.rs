//! What the life of a user is made of. Each moment of it is one part and no other, so their sum is
//! ∫ users dt. Must not know of requests.

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

/// Time of users, by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserTime([u128; 4]);

impl UserTime {
    #[inline]
    pub fn spend(&mut self, part: LifePart, ns: u64) {
        self.0[part as usize] += u128::from(ns);
    }

    pub fn of(&self, part: LifePart) -> u128 {
        self.0[part as usize]
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Of all parts together.
    #[cfg(test)]
    pub fn total(&self) -> u128 {
        self.0.iter().sum()
    }
}
