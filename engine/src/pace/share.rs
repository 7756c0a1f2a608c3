//! Who has which of the things that are counted over all: users, arrivals, numbers of a sequence,
//! rows. Threads of an engine take turns; engines of several hosts have slots. Pure.

use std::sync::Arc;

use crate::plan::Plan;

/// The part of one engine in a load that several offer together: of every `of` things in a row those with its
/// slots. Whatever the slots are, engines that have all of them between them lose nothing and double nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Rising, each below `of`; `None`: everything, the only part of one.
    slots: Option<Arc<[u32]>>,
    of: u64,
}

impl Default for Part {
    fn default() -> Self {
        Self { slots: None, of: 1 }
    }
}

impl Part {
    pub fn of(plan: &Plan) -> Self {
        let share = plan.share.as_ref();
        share.map_or_else(Self::default, |share| Self::new(&share.slots, share.of))
    }

    /// `slots`: rising, at least one, each below `of`.
    pub fn new(slots: &[u32], of: u32) -> Self {
        match of {
            1 => Self::default(),
            _ => Self {
                slots: Some(slots.into()),
                of: of.into(),
            },
        }
    }

    /// How many of so many things belong to this engine.
    pub fn count(&self, things: u64) -> u64 {
        let Some(slots) = &self.slots else {
            return things;
        };
        let rest = things % self.of;
        things / self.of * slots.len() as u64
            + slots.partition_point(|slot| u64::from(*slot) < rest) as u64
    }

    /// The number among all of the thing with this number among those of the engine.
    #[inline]
    pub fn number(&self, here: u64) -> u64 {
        match &self.slots {
            None => here,
            Some(slots) => {
                let count = slots.len() as u64;
                here / count * self.of + u64::from(slots[(here % count) as usize])
            }
        }
    }

    /// Things of all for one of this engine's.
    pub fn one_in(&self) -> f64 {
        match &self.slots {
            None => 1.0,
            Some(slots) => self.of as f64 / slots.len() as f64,
        }
    }

    /// A number that no other engine has; 0 for the first, or the only one.
    fn first(&self) -> u64 {
        self.slots.as_ref().map_or(0, |slots| slots[0].into())
    }
}

/// A thread's place among those of its engine, and the engine's part.
#[derive(Debug, Clone)]
pub struct Share {
    pub thread: usize,
    pub threads: usize,
    pub part: Part,
}

impl Share {
    /// How many of so many things this thread has: thing `i` of the engine belongs to thread
    /// `i mod threads`.
    pub fn of(&self, things: u32) -> usize {
        let here = self.part.count(things.into()) as usize;
        (here + self.threads - 1 - self.thread) / self.threads
    }

    /// The number among all of the thing with this number among those of the thread.
    #[inline]
    pub fn number(&self, index: u64) -> u64 {
        self.part
            .number(index * self.threads as u64 + self.thread as u64)
    }

    /// Things of all for one of this thread's.
    pub fn one_in(&self) -> f64 {
        self.threads as f64 * self.part.one_in()
    }

    /// Distinct from every other thread of all engines, for what each draws by itself.
    pub fn stream(&self) -> u64 {
        (self.part.first() << 32) + self.thread as u64
    }
}

#[cfg(test)]
#[path = "share_tests.rs"]
pub mod tests;
