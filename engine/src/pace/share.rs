//! Who has which of the things that are counted over all: users, arrivals, numbers of a sequence,
//! rows. Threads of an engine take turns; engines of several hosts have slots. Pure.

use std::sync::Arc;

use crate::plan::Plan;

/// The part of one engine in a load that several offer together: of every `of` things in a row
/// those with its slots. Whatever the slots are, engines that have all of them between them lose
/// nothing and double nothing.
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
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A thread of the only engine.
    pub fn one_of(thread: usize, threads: usize) -> Share {
        Share {
            thread,
            threads,
            part: Part::default(),
        }
    }

    /// Parts of several engines, which have all slots between them.
    pub fn parts() -> impl Strategy<Value = Vec<Part>> {
        proptest::collection::vec(0usize..4, 1..12).prop_map(|owners| {
            let of = owners.len() as u32;
            let slots = |engine| -> Vec<u32> {
                let own = owners
                    .iter()
                    .zip(0..)
                    .filter(|(owner, _)| **owner == engine);
                own.map(|(_, slot)| slot).collect()
            };
            let parts = (0..4).map(slots).filter(|slots| !slots.is_empty());
            parts.map(|slots| Part::new(&slots, of)).collect()
        })
    }

    /// The threads of all engines, the first with one, the next with two.
    pub fn shares(parts: &[Part]) -> Vec<Share> {
        let of = |(place, part): (usize, &Part)| {
            let part = part.clone();
            (0..=place).map(move |thread| Share {
                thread,
                threads: place + 1,
                part: part.clone(),
            })
        };
        parts.iter().enumerate().flat_map(of).collect()
    }

    proptest! {
        #[test]
        fn each_thing_belongs_to_one_thread_of_one_engine(parts in parts(), things in 0u32..300) {
            let mut all: Vec<u64> = shares(&parts)
                .iter()
                .flat_map(|share| (0..share.of(things) as u64).map(|index| share.number(index)).collect::<Vec<_>>())
                .collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..u64::from(things)).collect::<Vec<_>>());
        }

        #[test]
        fn numbers_of_an_engine_rise_and_are_as_many_as_it_counts(parts in parts(), things in 0u64..300) {
            for part in &parts {
                let count = part.count(things);
                prop_assert!((1..count).all(|here| part.number(here - 1) < part.number(here)));
                prop_assert!(count == 0 || part.number(count - 1) < things);
                prop_assert!(part.number(count) >= things);
            }
        }

        #[test]
        fn parts_add_up_to_one_and_no_two_threads_draw_the_same(parts in parts()) {
            let shares = shares(&parts);
            prop_assert!((shares.iter().map(|share| share.one_in().recip()).sum::<f64>() - 1.0).abs() < 1e-12);
            let mut streams: Vec<u64> = shares.iter().map(Share::stream).collect();
            streams.sort_unstable();
            streams.dedup();
            prop_assert_eq!(streams.len(), shares.len());
        }
    }

    #[test]
    fn alone_an_engine_has_everything() {
        let part = Part::new(&[0], 1);
        assert_eq!(part, Part::default());
        assert_eq!((part.count(7), part.number(7)), (7, 7));
    }
}
