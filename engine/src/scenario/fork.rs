//! A block whose branches are walked in parallel: compiled, and where one user is in it.

/// Branches may be so many at once at the most.
pub const MAX_AT_ONCE: u32 = 256;

/// A captured value, where there is one.
type Value = Option<Box<[u8]>>;

/// A compiled block.
#[derive(Debug)]
pub struct Fork {
    /// So many branches at a time at the most.
    pub at_once: u32,
    pub branches: Branches,
    /// Where the user goes on when all have ended.
    pub after: usize,
    /// The numbers of the values that its branches may set.
    pub sets: Vec<usize>,
}

/// Where branches begin.
#[derive(Debug)]
pub enum Branches {
    Steps(Vec<usize>),
    /// One for each element of this list, which is set as that value.
    Each {
        list: usize,
        element: Option<usize>,
        as_json: bool,
        entry: usize,
    },
}

impl Fork {
    /// So many branches may be under way at once.
    pub fn width(&self) -> u32 {
        match &self.branches {
            Branches::Steps(entries) => self.at_once.min(entries.len() as u32),
            Branches::Each { .. } => self.at_once,
        }
    }
}

/// A fork that a user is in.
#[derive(Debug, Default)]
pub struct Forked {
    /// Its number in the program.
    pub fork: usize,
    /// The next branch to begin, and how many there are.
    next: usize,
    count: usize,
    /// Lanes that walk branches.
    pub lanes: u32,
    /// Those of them that still do.
    pub beside: u32,
    /// The user has no branch to walk and waits for those.
    pub waits: bool,
    /// A branch has sent something.
    pub sent: bool,
    /// The rest of the iteration is left out ...
    pub breaks: bool,
    /// ... and the user ends.
    pub ends: bool,
    /// Transactions that were open before.
    pub open: usize,
    /// Lanes begin then: pauses and a think time before the block are over.
    pub from_ns: u64,
    /// The user has not gone on since it came here.
    pub fresh: bool,
    /// The pauses at the ends of its branches are over then.
    pub until_ns: u64,
    /// What the values that its branches may set were before, in the order of `sets` ...
    before: Vec<Value>,
    /// ... and what branches that have ended have made of them.
    after: Vec<Option<Value>>,
}

impl Forked {
    /// Of so many branches, for a user with these values.
    pub fn new(number: usize, fork: &Fork, count: usize, captured: &[Value]) -> Self {
        let before = fork.sets.iter().map(|slot| captured[*slot].clone());
        let lanes = count.min(fork.at_once as usize).saturating_sub(1) as u32;
        Self {
            fork: number,
            count,
            lanes,
            beside: lanes,
            fresh: true,
            before: before.collect(),
            after: vec![None; fork.sets.len()],
            ..Self::default()
        }
    }

    /// The next branch, for a lane that is free.
    pub fn take(&mut self) -> Option<usize> {
        let next = self.next;
        (next < self.count).then(|| {
            self.next += 1;
            next
        })
    }

    /// No further branch begins.
    pub fn take_no_more(&mut self) {
        self.next = self.count;
    }

    /// A branch begins with the values from before the block.
    pub fn restore(&self, fork: &Fork, captured: &mut [Value]) {
        for (slot, before) in fork.sets.iter().zip(&self.before) {
            captured[*slot].clone_from(before);
        }
    }

    /// A branch has ended: what it has set is kept for when all have.
    pub fn keep(&mut self, fork: &Fork, captured: &[Value]) {
        for (place, slot) in fork.sets.iter().enumerate() {
            if captured[*slot] != self.before[place] {
                self.after[place] = Some(captured[*slot].clone());
            }
        }
    }

    /// All have ended: the user has what they have set.
    pub fn submit(&mut self, fork: &Fork, captured: &mut [Value]) {
        self.restore(fork, captured);
        for (slot, after) in fork.sets.iter().zip(&mut self.after) {
            if let Some(value) = after.take() {
                captured[*slot] = value;
            }
        }
    }
}
