//! Exact waiting: one timer descriptor per thread, as tokio's own timer counts in milliseconds.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::TcpStream;

use super::clock::Clock;
use super::ready::{clear_ready, pollable};

#[derive(Debug)]
pub struct Timers {
    clock: Clock,
    timer: TcpStream,
    /// By due time, and a number that tells equal times apart.
    waiting: RefCell<BTreeMap<(u64, u64), Waker>>,
    numbers: Cell<u64>,
}

impl Timers {
    pub fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self {
            clock,
            timer: pollable(timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::CLOEXEC,
            )?)?,
            waiting: RefCell::default(),
            numbers: Cell::default(),
        })
    }

    /// Wakes what is due; ends only when the timer fails.
    pub async fn run(&self) -> io::Result<()> {
        loop {
            // Reported once per expiry, so that the timer need never be read.
            self.timer.readable().await?;
            clear_ready(&self.timer);
            let now_ns = self.clock.now_ns();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(first) = waiting.first_entry() {
                if first.key().0 > now_ns {
                    self.arm(first.key().0)?;
                    break;
                }
                first.remove().wake();
            }
        }
    }

    fn arm(&self, due_ns: u64) -> io::Result<()> {
        let absolute_ns = self.clock.absolute_ns(due_ns);
        let at = |ns: u64| Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let setting = Itimerspec {
            it_interval: at(0),
            it_value: at(absolute_ns),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }

    /// Waits until this time of the clock.
    pub fn until(self: &Rc<Self>, due_ns: u64) -> Until {
        let number = self.numbers.replace(self.numbers.get() + 1);
        Until {
            timers: Rc::clone(self),
            key: (due_ns, number),
        }
    }
}

#[derive(Debug)]
pub struct Until {
    timers: Rc<Timers>,
    key: (u64, u64),
}

impl Until {
    pub fn due_ns(&self) -> u64 {
        self.key.0
    }
}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let timers = &self.timers;
        if timers.clock.now_ns() >= self.key.0 {
            return Poll::Ready(());
        }
        let mut waiting = timers.waiting.borrow_mut();
        waiting.insert(self.key, context.waker().clone());
        let is_first = waiting.keys().next() == Some(&self.key);
        // A timer that cannot be set ends the wait early rather than never.
        match is_first && timers.arm(self.key.0).is_err() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        self.timers.waiting.borrow_mut().remove(&self.key);
    }
}
