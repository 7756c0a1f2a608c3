//! The places of an open load that no arrival holds at the moment: with a connection ready, with
//! one on its way, or without. Numbers in, numbers out; it knows nothing of connections.

use std::collections::VecDeque;

use crate::user::Phase;

/// First in, first out within each state, so that arrivals are dealt out evenly over the open
/// connections, as independent users would be.
#[derive(Debug)]
pub struct Pool {
    /// By place: how it is free (`None`: an arrival holds it), and how often that has changed.
    places: Vec<(Option<Phase>, u32)>,
    /// Of ready, warming and cold places, each with its change; later ones void it.
    lists: [VecDeque<(u32, u32)>; 3],
    /// Places that are cold.
    cold: usize,
}

impl Pool {
    /// All places are cold.
    pub fn new(places: usize) -> Self {
        let mut pool = Self {
            places: vec![(None, 0); places],
            lists: Default::default(),
            cold: 0,
        };
        for index in 0..places as u32 {
            pool.put(index, Phase::Cold);
        }
        pool
    }

    /// Puts a place at the end of a list, whatever it was before.
    pub fn put(&mut self, index: u32, free: Phase) {
        self.change(index, Some(free));
        let change = self.places[index as usize].1;
        let list = &mut self.lists[free as usize];
        list.push_back((index, change));
        if list.len() > 2 * self.places.len() + 64 {
            list.retain(|(index, change)| self.places[*index as usize].1 == *change);
        }
    }

    fn change(&mut self, index: u32, free: Option<Phase>) {
        let (known, changes) = &mut self.places[index as usize];
        *changes = changes.wrapping_add(1);
        self.cold -= usize::from(*known == Some(Phase::Cold));
        self.cold += usize::from(free == Some(Phase::Cold));
        *known = free;
    }

    /// Takes the place that has waited longest among those in this state.
    pub fn take(&mut self, free: Phase) -> Option<u32> {
        while let Some((index, change)) = self.lists[free as usize].pop_front() {
            if self.places[index as usize].1 == change {
                self.change(index, None);
                return Some(index);
            }
        }
        None
    }

    /// Takes a place for an arrival: the readiest there is.
    #[inline]
    pub fn take_any(&mut self) -> Option<u32> {
        self.take(Phase::Ready)
            .or_else(|| self.take(Phase::Warming))
            .or_else(|| self.take(Phase::Cold))
    }

    /// Places that have a connection or will have one: all but the cold.
    pub fn not_cold(&self) -> usize {
        self.places.len() - self.cold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The pool does what three plain queues do.
        #[test]
        fn agrees_with_plain_queues(ops in proptest::collection::vec((0u32..8, 0usize..5), 1..200)) {
            let mut pool = Pool::new(8);
            let states = [Phase::Ready, Phase::Warming, Phase::Cold];
            let mut queues = [VecDeque::new(), VecDeque::new(), (0..8u32).collect::<VecDeque<_>>()];
            for (index, op) in ops {
                if op < 3 {
                    pool.put(index, states[op]);
                    queues.iter_mut().for_each(|queue| queue.retain(|other| *other != index));
                    queues[op].push_back(index);
                } else {
                    let expected = queues.iter_mut().find_map(VecDeque::pop_front);
                    prop_assert_eq!(pool.take_any(), expected);
                }
                prop_assert_eq!(pool.not_cold(), 8 - queues[2].len());
            }
        }
    }

    #[test]
    fn places_with_a_connection_come_first_and_take_turns() {
        let mut pool = Pool::new(3);
        pool.put(2, Phase::Ready);
        pool.put(1, Phase::Ready);
        assert_eq!(
            [
                pool.take_any(),
                pool.take_any(),
                pool.take_any(),
                pool.take_any()
            ],
            [Some(2), Some(1), Some(0), None]
        );
        pool.put(1, Phase::Ready);
        assert_eq!(pool.take_any(), Some(1));
    }
}
