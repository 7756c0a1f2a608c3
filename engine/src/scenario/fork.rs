//! A block whose branches are walked side by side: as it is compiled, and where one user is in it. It
//! knows nothing of connections.

/// Branches may be so many at once at the most.
pub const MOST_AT_ONCE: u32 = 256;

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
#[derive(Debug)]
pub struct Forked {
    /// Its number in the program.
    pub fork: usize,
    /// The next branch that nobody walks yet, and how many there are.
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
    /// The pauses at the ends of its branches are over then.
    pub until_ns: u64,
    /// What the values that its branches may set were before.
    pub before: Vec<Option<Box<[u8]>>>,
}

impl Forked {
    pub fn new(fork: usize, count: usize, before: Vec<Option<Box<[u8]>>>) -> Self {
        Self {
            fork,
            next: 0,
            count,
            lanes: 0,
            beside: 0,
            waits: false,
            sent: false,
            breaks: false,
            ends: false,
            until_ns: 0,
            before,
        }
    }

    /// The next branch, for whoever is free.
    pub fn take(&mut self) -> Option<usize> {
        let next = self.next;
        (next < self.count).then(|| {
            self.next += 1;
            next
        })
    }

    /// No further branch begins.
    pub fn begin_no_more(&mut self) {
        self.next = self.count;
    }
}
