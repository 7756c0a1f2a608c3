//! The places of an open load that no arrival holds at the moment: with a connection ready, with
//! one on its way, or without. Numbers in, numbers out; it knows nothing of connections.

use crate::user::Phase;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry {
    next: u32,
    previous: u32,
    /// `None`: an arrival holds it.
    free: Option<Phase>,
}

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    count: usize,
}

/// First in, first out within each state, so that arrivals are dealt out evenly over the open
/// connections, as independent users would be.
#[derive(Debug)]
pub struct Pool {
    places: Vec<Entry>,
    /// Of places that are ready, warming and cold.
    lists: [List; 3],
}

impl Pool {
    /// All places are cold.
    pub fn new(places: usize) -> Self {
        let empty = List {
            head: NONE,
            tail: NONE,
            count: 0,
        };
        let held = Entry {
            next: NONE,
            previous: NONE,
            free: None,
        };
        let mut pool = Self {
            places: vec![held; places],
            lists: [empty; 3],
        };
        for index in 0..places as u32 {
            pool.put(index, Phase::Cold);
        }
        pool
    }

    /// Puts a place at the end of a list, whatever it was before.
    pub fn put(&mut self, index: u32, free: Phase) {
        self.remove(index);
        let list = &mut self.lists[free as usize];
        let tail = std::mem::replace(&mut list.tail, index);
        list.count += 1;
        if tail == NONE {
            list.head = index;
        } else {
            self.places[tail as usize].next = index;
        }
        self.places[index as usize] = Entry {
            next: NONE,
            previous: tail,
            free: Some(free),
        };
    }

    fn remove(&mut self, index: u32) {
        let place = self.places[index as usize];
        let Some(free) = place.free else { return };
        let list = &mut self.lists[free as usize];
        list.count -= 1;
        if place.previous == NONE {
            list.head = place.next;
        }
        if place.next == NONE {
            list.tail = place.previous;
        }
        if place.previous != NONE {
            self.places[place.previous as usize].next = place.next;
        }
        if place.next != NONE {
            self.places[place.next as usize].previous = place.previous;
        }
        self.places[index as usize].free = None;
    }

    /// Takes the place that has waited longest among those in this state.
    pub fn take(&mut self, free: Phase) -> Option<u32> {
        let head = self.lists[free as usize].head;
        if head == NONE {
            return None;
        }
        self.remove(head);
        Some(head)
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
        self.places.len() - self.lists[Phase::Cold as usize].count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

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
