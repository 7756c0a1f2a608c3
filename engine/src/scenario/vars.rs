//! What templates draw from: counters and feeders of all threads, and values of one user.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::cache::Cache;
use super::cookies::Jar;
use super::feeder::{Feeder, NO_ROW};
use crate::pace::share::Part;

/// Shared by all threads; only the counters change while the load runs.
#[derive(Debug, Default)]
pub struct Shared {
    /// How often each was drawn from.
    pub sequences: Vec<AtomicU64>,
    /// Which of their numbers, and of the rows of feeders, are this engine's.
    pub part: Part,
    pub feeders: Vec<Feeder>,
    pub run: RunKey,
}

/// Drawn anew for every run, whatever its seed: a UUID of one run must not come again in the next,
/// which may meet a server that still holds what the first one put there.
#[derive(Debug)]
pub struct RunKey(pub u128);

impl Default for RunKey {
    fn default() -> Self {
        Self(uuid::Uuid::new_v4().as_u128())
    }
}

/// The values of one user. A scenario that uses none of them has none of these.
#[derive(Debug, Default)]
pub struct Vars {
    pub captured: Box<[Option<Box<[u8]>>]>,
    pub counters: Box<[u64]>,
    /// The present row of each feeder.
    pub rows: Box<[u32]>,
    pub cookies: Jar,
    /// Made by its first request, where the plan has a cache.
    pub cache: Option<Box<Cache>>,
    /// The number of the user among all of its population, from 0.
    pub number: u64,
    /// Users of its thread that had started when it did.
    pub started: u64,
    /// Iterations that it has begun.
    pub iteration: u64,
    /// The wall clock, as the user of these values has set it before.
    pub unix_ns: u64,
}

/// How many values of each kind a user has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ValueCounts {
    pub captured: usize,
    /// The first so many of them are variables.
    pub variables: usize,
    pub counters: usize,
    pub feeders: usize,
}

impl Vars {
    pub fn new(shape: ValueCounts) -> Self {
        Self {
            captured: vec![None; shape.captured].into(),
            counters: vec![0; shape.counters].into(),
            rows: vec![NO_ROW; shape.feeders].into(),
            ..Self::default()
        }
    }

    /// Captured values belong to one iteration: a later one must not go on with those of a request
    /// that failed since. Variables are kept.
    pub fn forget_captured(&mut self, shape: ValueCounts) {
        self.captured[shape.variables..].fill(None);
    }

    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.unix_ns)
    }

    pub fn unix_ms(&self) -> i64 {
        (self.unix_ns / 1_000_000) as i64
    }

    pub fn set(&mut self, slot: usize, value: Vec<u8>) {
        if let Some(place) = self.captured.get_mut(slot) {
            *place = Some(value.into());
        }
    }
}
