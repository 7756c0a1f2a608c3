//! Arrivals of an open load become users, and its connections are kept ready.

use std::io;

use super::Worker;
use crate::net::Driver;
use crate::user::{Context, Phase};

/// Arrivals taken in one turn, so that responses do not wait behind a crowd of them.
const ARRIVALS_PER_LOOP: usize = 64;

impl<D: Driver> Worker<'_, D> {
    /// Deals with the arrivals that are due.
    pub(super) fn take_arrivals(&mut self) -> io::Result<()> {
        for _ in 0..ARRIVALS_PER_LOOP {
            let Some(open) = &self.open else {
                return Ok(());
            };
            let due_ns = open.due_ns();
            // What is due after a cut waits for it, though the clock may have been read since.
            let held = open.held;
            if held || due_ns > self.now_ns || due_ns >= self.schedule.next_ns() || self.stopped {
                return Ok(());
            }
            self.arrive(due_ns)?;
        }
        Ok(())
    }

    fn arrive(&mut self, due_ns: u64) -> io::Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let alive = self.users.alive();
        let Some(index) = open.place(due_ns, self.now_ns, alive, &mut self.record) else {
            return Ok(());
        };
        if !self.users.may_send() {
            // Counted at a cut or not: it was never meant to be sent.
            open.exhausted = true;
            open.put(index, self.users.phase(index));
            return Ok(());
        }
        self.record.counters().offered += open.take();
        let action = self.users.arrive(index, due_ns, cx!(self));
        self.act(index, action)
    }

    /// Opens connections until there are as many as are to be kept ready.
    pub(super) fn warm(&mut self) -> io::Result<()> {
        while let Some(open) = &mut self.open
            && let Some(index) = open.take_cold()
        {
            self.warm_place(index)?;
        }
        Ok(())
    }

    /// The timer of a free place: another attempt to connect, or left by a request.
    pub(super) fn warm_again(&mut self, index: u32) -> io::Result<()> {
        let open = self.open.as_ref();
        let lacking = open.is_some_and(|open| open.lacks_connections());
        match lacking && self.users.phase(index) == Phase::Cold {
            true => self.warm_place(index),
            false => Ok(()),
        }
    }

    fn warm_place(&mut self, index: u32) -> io::Result<()> {
        if let Some(open) = &mut self.open {
            open.put(index, Phase::Warming);
        }
        let action = self.users.warm(index, cx!(self));
        self.act(index, action)
    }
}
