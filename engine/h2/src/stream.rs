//! One request and its response as a connection knows them, and the ids of those that are over.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Streams of which we said that we are done with them are distinguished from those that the server
/// ended, among so many of the last.
const REMEMBERED_RESETS: usize = 1024;

#[derive(Debug)]
pub struct Stream {
    /// Whose it is, as the caller numbers them.
    pub key: u32,
    /// What we may send; below 0 after the server took back some of it.
    pub send_window: i64,
    /// What the server may send.
    pub receive_window: i64,
    /// Of the body that was announced; `None`: it was not.
    pub body_left: Option<u64>,
    pub head_request: bool,
    /// The final head has come.
    pub has_head: bool,
    /// All of our message was sent.
    pub sent: bool,
}

/// Ids are odd numbers that rise: a multiplication spreads them well.
#[derive(Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        let product = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// The streams that are open.
#[derive(Debug, Default)]
pub struct Streams {
    open: HashMap<u32, Stream, BuildHasherDefault<IdHasher>>,
    /// Ids that we reset, rising in time; and the highest that is no longer among them.
    reset: VecDeque<u32>,
    forgotten: u32,
}

impl Streams {
    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn insert(&mut self, id: u32, stream: Stream) {
        self.open.insert(id, stream);
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.open.get_mut(&id)
    }

    pub fn get(&self, id: u32) -> Option<&Stream> {
        self.open.get(&id)
    }

    /// It is over for both sides.
    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        self.open.remove(&id)
    }

    /// We end it; the other side may not know yet.
    pub fn remove_reset(&mut self, id: u32) -> Option<Stream> {
        let stream = self.open.remove(&id)?;
        self.pass_over(id);
        Some(stream)
    }

    /// Frames that still come on a stream mean nothing.
    pub fn pass_over(&mut self, id: u32) {
        if self.reset.len() == REMEMBERED_RESETS
            && let Some(oldest) = self.reset.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest);
        }
        self.reset.push_back(id);
    }

    /// Whether frames may still come on a stream that is over, because we ended it.
    pub fn may_be_late(&self, id: u32) -> bool {
        id <= self.forgotten || self.reset.contains(&id)
    }

    /// Those above an id, which the server says it has not looked at.
    pub fn take_above(&mut self, id: u32) -> Vec<Stream> {
        let mut above: Vec<u32> = self
            .open
            .keys()
            .copied()
            .filter(|open| *open > id)
            .collect();
        above.sort_unstable();
        above
            .into_iter()
            .filter_map(|open| self.remove_reset(open))
            .collect()
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        self.open.iter_mut().map(|(id, stream)| (*id, stream))
    }
}
