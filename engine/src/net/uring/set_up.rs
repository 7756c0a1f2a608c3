//! Sets up a ring, and lets several rings of one thread work together.

use std::collections::VecDeque;
use std::io;

use io_uring::IoUring;

use super::receive::StampedRead;
use super::{BUFFER_GROUP, Conn, MAX_DIRECT, QUEUE, Uring};
use crate::net::Config;
use crate::net::buffers::BufferRing;
use crate::net::send_times::{CompletionTimes, SendTimes};
use crate::net::sys::{Waker, kernel_version};
use prony_common::process::raise_file_limit;

/// Before Linux 6.13 a ring frees what it held in the order in which that was given up: a connection that
/// only receives, and that nothing comes on, holds back the end of every other (axboe/liburing#1192).
pub(super) fn ends_late(kernel: (u32, u32)) -> bool {
    kernel < (6, 13)
}

impl Uring {
    /// One of several rings says without being asked whether it has work; its queues are shorter.
    pub(in crate::net) fn set_up(config: Config, one_of_many: bool) -> io::Result<Self> {
        let connections = config.connections.max(1);
        let mut builder = IoUring::builder();
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp();
        if one_of_many {
            builder.setup_taskrun_flag();
        }
        let queue = if one_of_many { QUEUE / 4 } else { QUEUE };
        builder.setup_cqsize(
            (2 * connections as u32)
                .next_power_of_two()
                .clamp(2 * queue, 64 * queue),
        );
        // Saves an indirection per entry; not there before Linux 6.6.
        let ring = builder
            .clone()
            .setup_no_sqarray()
            .build(queue)
            .or_else(|_| builder.build(queue))?;
        let direct = connections.min(MAX_DIRECT).min(raise_file_limit() as usize);
        ring.submitter().register_files_sparse(direct as u32)?;
        let accepted = SendTimes::new(&config);
        let buffers = BufferRing::new(&ring.submitter(), BUFFER_GROUP)?;
        let mut driver = Self {
            ring,
            buffers,
            wake_buffer: Box::new([0; 8]),
            stamped_read: StampedRead::new(),
            config,
            reported: Vec::new(),
            free: Vec::new(),
            unread: Vec::new(),
            spare: Vec::new(),
            waker: Waker::new()?,
            eventfd: None,
            conns: vec![Conn::default(); connections],
            sockets: Vec::new(),
            direct,
            completions: Vec::with_capacity(1024),
            at: 0,
            drained: Vec::new(),
            backlog: VecDeque::new(),
            put_off: 0,
            refused_waits: 0,
            #[cfg(test)]
            refusals: VecDeque::new(),
            waits_by_clock: true,
            grew: false,
            local: VecDeque::new(),
            accepted,
            completion_times: CompletionTimes::default(),
        };
        if kernel_version().is_none_or(ends_late) {
            driver.keep_sockets();
        }
        driver.arm_waker();
        Ok(driver)
    }

    pub(super) fn keep_sockets(&mut self) {
        self.sockets = self.conns.iter().map(|_| None).collect();
    }

    /// Lets [`Driver::wait`](crate::net::Driver::wait) return also when `eventfd` is signalled.
    pub(in crate::net) fn wait_for_eventfd(&mut self, eventfd: Waker) {
        self.eventfd = Some(eventfd);
        self.arm_eventfd();
    }

    /// Signals `eventfd` when something has completed. (To poll the ring itself would not do: with
    /// deferred task run the kernel wakes no poller.)
    pub(in crate::net) fn signal_completions_to(&self, eventfd: &Waker) -> io::Result<()> {
        self.ring.submitter().register_eventfd(eventfd.fd())
    }

    /// Whether there is something to submit or to fetch, without asking the kernel.
    pub(in crate::net) fn has_work(&mut self) -> bool {
        let queue = self.ring.submission();
        if !queue.is_empty() || queue.taskrun() || queue.cq_overflow() {
            return true;
        }
        drop(queue);
        self.has_kept() || !self.ring.completion().is_empty()
    }

    /// Whether there is something to return or to hand over that the ring does not hold.
    pub(super) fn has_kept(&self) -> bool {
        !(self.local.is_empty() && self.drained.is_empty() && self.backlog.is_empty())
    }

    /// Whether there is something that [`Driver::next`](crate::net::Driver::next) has not reported yet.
    pub(in crate::net) fn has_fetched(&self) -> bool {
        self.at < self.completions.len() || !self.local.is_empty()
    }

    /// Whether something waits to be submitted.
    pub(in crate::net) fn has_prepared(&mut self) -> bool {
        !self.backlog.is_empty() || !self.ring.submission().is_empty()
    }
}
