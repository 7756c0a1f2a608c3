//! Requests that wait for their turn go out together, and each is given the time of its send.

use std::io;

use super::Worker;
use crate::net::Driver;

/// Sends handed over together from this number on are timed before and after.
const TIMED_GROUP: usize = 4;

impl<D: Driver> Worker<'_, D> {
    /// Sends the requests that are queued. Returns whether there were any.
    ///
    /// In the middle of a batch the clock of events stands still: responses that are handled after a
    /// group of sends had come before it. Where the sends would fall behind a cut that those
    /// responses belong before, they wait for the end of the batch.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        if self.queued.is_empty() || self.stopped {
            return Ok(false);
        }
        if self.in_batch {
            self.read_ns = self.driver.now_ns();
            if self.read_ns >= self.schedule.next_ns() {
                return Ok(true);
            }
        } else {
            self.stamp();
        }
        let mut queued = std::mem::take(&mut self.queued);
        while !self.stopped && !queued.is_empty() {
            let behind = queued.split_off(self.send_group.min(queued.len()));
            self.send_group(&mut queued)?;
            if behind.is_empty() {
                break;
            }
            queued = behind;
        }
        queued.append(&mut self.queued);
        self.queued = queued;
        if !self.in_batch {
            // A cut that came due meanwhile is made at the next reading.
            self.now_ns = self.read_ns;
        }
        Ok(true)
    }

    /// Hands a group over to the driver, and empties it.
    ///
    /// The kernel sends a group one after the other, a few microseconds each. A small group is
    /// timed by the clock just before it; a larger one also by the clock just after it, and its
    /// requests are spread evenly over the time between. So a send is timed to within the time of
    /// [`TIMED_GROUP`] sends, whatever the size of the group.
    fn send_group(&mut self, group: &mut Vec<u32>) -> io::Result<()> {
        let mut kept = 0;
        for place in 0..group.len() {
            let index = group[place];
            if self.send(index)? {
                group[kept] = index;
                kept += 1;
            }
        }
        group.truncate(kept);
        let from_ns = self.read_ns.min(self.schedule.next_ns());
        if group.len() >= TIMED_GROUP || self.job.parts {
            self.driver.flush()?;
            self.read_ns = self.driver.now_ns();
        }
        // What was sent before an instant at which segments are cut belongs before it.
        let to_ns = self.read_ns.min(self.schedule.next_ns());
        let (span_ns, count) = (to_ns - from_ns, group.len() as u64);
        for (index, user) in group.drain(..).enumerate() {
            self.sent(user, from_ns + span_ns * index as u64 / count);
        }
        Ok(())
    }
}
