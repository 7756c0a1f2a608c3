//! A thread's part of the requests that may still be sent, and how many of them are under way.

use crate::job::Quota;

#[derive(Debug)]
pub(super) struct Allowance {
    /// Requests that may be sent without asking the quota of all threads.
    portion: u64,
    /// Requests that took their place in the quota and have not ended.
    outstanding: usize,
    /// When the last request ended.
    ended_ns: u64,
}

impl Allowance {
    pub(super) fn new(start_ns: u64) -> Self {
        Self {
            portion: 0,
            outstanding: 0,
            ended_ns: start_ns,
        }
    }

    /// Takes the place of one request; false when none is left.
    #[inline]
    pub(super) fn take(&mut self, quota: &Quota) -> bool {
        if self.portion == 0 {
            self.portion = quota.take();
        }
        let allowed = self.portion > 0;
        self.outstanding += usize::from(allowed);
        self.portion = self.portion.saturating_sub(1);
        allowed
    }

    /// Gives back the place of a request that is not sent.
    pub(super) fn give_back(&mut self) {
        self.outstanding -= 1;
        self.portion = self.portion.saturating_add(1);
    }

    /// A request was given up before it was sent; its place is lost.
    pub(super) fn drop_one(&mut self) {
        self.outstanding -= 1;
    }

    #[inline]
    pub(super) fn request_ended(&mut self, now_ns: u64) {
        self.outstanding -= 1;
        self.ended_ns = now_ns;
    }

    pub(super) fn ended_ns(&self) -> u64 {
        self.ended_ns
    }

    pub(super) fn is_used_up(&self, quota: &Quota) -> bool {
        self.portion == 0 && self.outstanding == 0 && quota.is_used_up()
    }
}
