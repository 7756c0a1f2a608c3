//! Timers for very many users: a hierarchical timing wheel (Varghese and Lauck, 1987) with one
//! timer per index, linked through plain arrays. Setting, removing and firing cost the same for ten
//! timers and for a million. No clock is read here.

/// 64 slots per level, seven levels of ticks of 1024 ns: a span of 2^52 ns, 52 days.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 7;
const TICK_BITS: u32 = 10;
const NONE: u32 = u32::MAX;
/// Slot number of timers that are due already.
const DUE: u16 = (SLOTS * LEVELS) as u16;
const UNSET: u16 = u16::MAX;

#[derive(Debug, Clone, Copy)]
struct Timer {
    due_ns: u64,
    next: u32,
    previous: u32,
    slot: u16,
}

/// One timer per index below the capacity.
#[derive(Debug)]
pub struct Wheel {
    timers: Vec<Timer>,
    heads: [u32; SLOTS * LEVELS + 1],
    /// Bit i of level l: slot i of level l is not empty.
    occupied: [u64; LEVELS],
    /// Everything due before this tick has fired or is in the list of the due.
    tick: u64,
    start_ns: u64,
}

impl Wheel {
    /// `start_ns`: no timer will be due before it.
    pub fn new(capacity: usize, start_ns: u64) -> Self {
        let unset = Timer {
            due_ns: 0,
            next: NONE,
            previous: NONE,
            slot: UNSET,
        };
        Self {
            timers: vec![unset; capacity],
            heads: [NONE; SLOTS * LEVELS + 1],
            occupied: [0; LEVELS],
            tick: 0,
            start_ns,
        }
    }

    /// Whether the timer of this index is set.
    #[inline]
    pub fn is_set(&self, index: u32) -> bool {
        self.timers[index as usize].slot != UNSET
    }

    /// Sets the timer of this index, replacing what it was.
    pub fn set(&mut self, index: u32, due_ns: u64) {
        self.unset(index);
        self.timers[index as usize].due_ns = due_ns;
        self.place(index);
    }

    pub fn unset(&mut self, index: u32) {
        let timer = self.timers[index as usize];
        if timer.slot == UNSET {
            return;
        }
        if timer.previous == NONE {
            self.heads[usize::from(timer.slot)] = timer.next;
            if timer.next == NONE && timer.slot != DUE {
                let slot = usize::from(timer.slot);
                self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
            }
        } else {
            self.timers[timer.previous as usize].next = timer.next;
        }
        if timer.next != NONE {
            self.timers[timer.next as usize].previous = timer.previous;
        }
        self.timers[index as usize].slot = UNSET;
    }

    /// When to look again: never later than the first timer, and earlier only a few times per timer.
    pub fn next_ns(&self) -> Option<u64> {
        if self.heads[usize::from(DUE)] != NONE {
            return Some(self.start_ns + (self.tick << TICK_BITS));
        }
        self.next_slot()
            .map(|(_, _, tick)| self.start_ns + (tick << TICK_BITS))
    }

    /// Takes one timer that is due at `now_ns`: its index and when it was due. Timers fire never
    /// early and, seen often enough, at most a tick late.
    pub fn pop(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        if now_ns < self.start_ns {
            return None;
        }
        let now = (now_ns - self.start_ns) >> TICK_BITS;
        loop {
            let index = self.heads[usize::from(DUE)];
            if index != NONE {
                self.unset(index);
                return Some((index, self.timers[index as usize].due_ns));
            }
            match self.next_slot() {
                Some((level, slot, tick)) if tick <= now => {
                    self.tick = tick;
                    self.empty_slot(level * SLOTS + slot);
                }
                _ => {
                    self.tick = self.tick.max(now);
                    return None;
                }
            }
        }
    }

    /// Moves the timers of a slot to lower levels or to the due.
    fn empty_slot(&mut self, slot: usize) {
        let mut index = self.heads[slot];
        self.heads[slot] = NONE;
        self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        while index != NONE {
            let next = self.timers[index as usize].next;
            self.place(index);
            index = next;
        }
    }

    /// The first slot that is not empty, by level, slot and the tick at which it begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        // A lower level always comes first: a timer sits on a higher level only when its tick
        // differs in higher digits.
        (0..LEVELS)
            .find(|level| self.occupied[*level] != 0)
            .map(|level| {
                let shift = level as u32 * SLOT_BITS;
                let position = (self.tick >> shift) as u32 & (SLOTS as u32 - 1);
                let ahead = self.occupied[level].rotate_right(position).trailing_zeros();
                let slot = (position + ahead) as usize & (SLOTS - 1);
                let tick = ((self.tick >> shift) + u64::from(ahead)) << shift;
                (level, slot, tick)
            })
    }

    fn place(&mut self, index: u32) {
        let due_ns = self.timers[index as usize].due_ns;
        // Rounded up: a timer must not fire early.
        let due = due_ns
            .saturating_sub(self.start_ns)
            .div_ceil(1 << TICK_BITS);
        let slot = if due <= self.tick {
            usize::from(DUE)
        } else {
            let digit = (63 - (due ^ self.tick).leading_zeros()) / SLOT_BITS;
            let level = (digit as usize).min(LEVELS - 1);
            let highest = self
                .tick
                .saturating_add((SLOTS as u64 - 1) << ((LEVELS as u32 - 1) * SLOT_BITS));
            level * SLOTS
                + ((due.min(highest) >> (level as u32 * SLOT_BITS)) as usize & (SLOTS - 1))
        };
        let next = self.heads[slot];
        if next != NONE {
            self.timers[next as usize].previous = index;
        }
        if slot != usize::from(DUE) {
            self.occupied[slot / SLOTS] |= 1 << (slot % SLOTS);
        }
        self.heads[slot] = index;
        let timer = &mut self.timers[index as usize];
        timer.next = next;
        timer.previous = NONE;
        timer.slot = slot as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Op {
        Set(u32, u64),
        Unset(u32),
        Advance(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0u32..20, 0u64..40)
                .prop_flat_map(|(index, bits)| (Just(index), 0u64..=1 << bits))
                .prop_map(|(i, d)| Op::Set(i, d)),
            (0u32..20).prop_map(Op::Unset),
            (0u64..42)
                .prop_flat_map(|bits| 0u64..=1 << bits)
                .prop_map(Op::Advance),
        ]
    }

    proptest! {
        /// The wheel does what a plain map does: nothing early, nothing lost, at most a tick late,
        /// and `next_ns` never late.
        #[test]
        fn agrees_with_a_plain_map(ops in proptest::collection::vec(op(), 1..200)) {
            let start = 1_000_000;
            let mut now = start;
            let mut wheel = Wheel::new(20, start);
            let mut map = std::collections::BTreeMap::new();
            for op in ops {
                match op {
                    Op::Set(index, delay) => {
                        wheel.set(index, now + delay);
                        map.insert(index, now + delay);
                    }
                    Op::Unset(index) => {
                        wheel.unset(index);
                        map.remove(&index);
                    }
                    Op::Advance(delay) => {
                        now += delay;
                        while let Some((index, due)) = wheel.pop(now) {
                            prop_assert!(due <= now);
                            prop_assert_eq!(map.remove(&index), Some(due));
                        }
                        for due in map.values() {
                            prop_assert!(*due + 1024 > now, "due {} left behind at {}", due, now);
                        }
                    }
                }
                if let Some(first) = map.values().min() {
                    prop_assert!(wheel.next_ns().unwrap() <= (*first).max(now) + 1024);
                }
                prop_assert_eq!(wheel.next_ns().is_some(), !map.is_empty());
            }
        }
    }

    #[test]
    fn nothing_fires_before_the_start() {
        let mut wheel = Wheel::new(1, 5000);
        wheel.set(0, 5000);
        assert_eq!(wheel.pop(4999), None);
        assert_eq!(wheel.pop(5000), Some((0, 5000)));
    }

    #[test]
    fn waiting_for_next_ns_again_and_again_reaches_a_far_timer_in_few_steps() {
        let mut wheel = Wheel::new(1, 0);
        let due = 3_600_000_000_123;
        wheel.set(0, due);
        let mut steps = 0;
        let fired = loop {
            let next = wheel.next_ns().unwrap();
            if let Some((_, due)) = wheel.pop(next) {
                break (next, due);
            }
            steps += 1;
        };
        assert!(fired.0 >= due && fired.0 < due + 1024);
        assert_eq!(fired.1, due);
        assert!(steps < 10, "{steps}");
    }
}
