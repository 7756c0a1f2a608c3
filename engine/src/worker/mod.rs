//! One measuring thread: it waits for its driver, hands what happened to its users, and does what
//! they say. Sends, timers and the clock are its own. It shares nothing with other threads on the
//! hot path, and knows nothing of rows of all threads or output.

/// The present time, and where what happens now is recorded.
macro_rules! cx {
    ($worker:expr) => {
        &mut Context::new($worker.now_ns, &mut $worker.record)
    };
}

mod act;
mod arrivals;
mod clocks;
mod messages;
mod open;
mod pool;
mod send;
#[cfg(test)]
mod simulation;
mod start;

use std::io;
use std::sync::Arc;

use crate::fault::{Fault, LATE_NS, STALL, STALL_EVERY_NS};
use crate::job::Job;
use crate::measure::edges::AtEdge;
use crate::measure::rates::Rates;
use crate::measure::schedule::Schedule;
use crate::measure::segment::Cut;
use crate::measure::user_time::LifePart;
use crate::net::Driver;
use crate::net::sys::unix_ns;
use crate::pace::wheel::Wheel;
use crate::record::{Notice, Record};
use crate::user::{Context, Surroundings, Users};
use arrivals::OpenArrivals;
use clocks::Clocks;

pub use messages::{WorkerCommand, WorkerLink, WorkerMessage};
pub use start::run;

/// Users whose timers fired, who resume, or whose time is over are dealt with in portions of this
/// size, so that responses do not wait behind a crowd of them.
const USERS_PER_LOOP: usize = 256;

/// What should have been sent less than this before the end of a span is on its way, not left
/// behind: a hundred times the usual send lag.
const OVERDUE_NS: u64 = 10_000_000;

struct Worker<'a, D: Driver> {
    driver: D,
    job: Arc<Job>,
    link: &'a WorkerLink,
    users: Users,
    record: Record,
    clocks: Clocks,
    /// `None` in a closed load.
    open: Option<Box<OpenArrivals>>,
    wheel: Wheel,
    schedule: Schedule,
    /// Users whose request goes out with the next group.
    queued: Vec<u32>,
    /// So many go out together at most.
    send_group: usize,
    /// When what is handled now happened.
    now_ns: u64,
    /// The last reading of the clock, ahead of a batch of events that is being handled.
    read_ns: u64,
    /// A batch of events, which had all happened when it was fetched, is being handled.
    in_batch: bool,
    reported_finished: bool,
    stopped: bool,
    /// With [`Fault::StalledThread`], when this thread stands still next.
    stalls_ns: u64,
}

impl<'a, D: Driver> Worker<'a, D> {
    fn new(driver: D, job: Arc<Job>, link: &'a WorkerLink, users: usize, start_ns: u64) -> Self {
        let after = |after_ns| start_ns.saturating_add(after_ns);
        let stop_ns = job.after_ns.map_or(u64::MAX, after);
        let places = job.places(users);
        let mut wheel = Wheel::new(places, start_ns);
        let place = job.share(link.thread, link.threads);
        if job.open.is_none() {
            for index in 0..users {
                let number = place.number(index as u64) as u32;
                let population = job.populations.of(number.into());
                wheel.set(index as u32, start_ns + population.start_ns(number));
            }
        }
        let arrivals = |open| Box::new(OpenArrivals::new(&job, open, &place, users, start_ns));
        let surroundings = Surroundings {
            secures: D::SECURES,
            faults: driver.faults(),
            unix_offset_ns: unix_ns().wrapping_sub(driver.now_ns()),
        };
        Self {
            record: Record::new(&job, &place, places, start_ns),
            clocks: Clocks::new(driver.now_ns()),
            open: job.open.as_ref().map(arrivals),
            users: Users::new(&job, place, users, start_ns, surroundings),
            wheel,
            schedule: Schedule::new(start_ns, job.interval_ns, stop_ns),
            queued: Vec::with_capacity(D::SEND_GROUP),
            // Where the end of each send matters, none is made to wait for others.
            send_group: if job.parts { 1 } else { D::SEND_GROUP },
            now_ns: start_ns,
            read_ns: start_ns,
            in_batch: false,
            reported_finished: false,
            stopped: false,
            stalls_ns: start_ns + STALL_EVERY_NS,
            driver,
            job,
            link,
        }
    }

    fn run(mut self) -> io::Result<()> {
        self.warm()?;
        while !self.stopped {
            let (from_ns, until_ns) = (self.now_ns, self.wake_at_ns());
            self.driver.wait(Some(until_ns))?;
            self.stamp();
            let woke_ns = self.now_ns;
            if let Some(open) = &mut self.open {
                open.woke(from_ns, until_ns, woke_ns);
            }
            let mut dealt_with = false;
            self.in_batch = !D::STAMPS_EACH_READ;
            while !self.stopped {
                let Some(event) = self.driver.next() else {
                    break;
                };
                if self.driver.faults().has(Fault::StalledThread) && !dealt_with {
                    self.stall();
                }
                if D::STAMPS_EACH_READ {
                    self.stamp();
                }
                dealt_with = true;
                self.handle(event)?;
            }
            self.in_batch = false;
            self.catch_up();
            self.take_arrivals()?;
            self.fire_timers()?;
            self.resume()?;
            self.retire()?;
            if let Some(rates) = &mut self.record.recorder.rates {
                rates.sample(self.now_ns);
            }
            let sent = self.flush()?;
            // How late the next wait ends is measured from when it began; in a closed load nobody asks.
            if (!sent || self.open.is_some()) && !self.stopped {
                self.stamp();
            }
            let recorder = &mut self.record.recorder;
            if self.open.is_some() && !dealt_with && !sent && until_ns <= from_ns {
                recorder.polled_idle(self.now_ns - from_ns);
            }
            recorder.work.loops += 1;
            if dealt_with {
                recorder.work.loop_lag.record(self.now_ns - woke_ns);
            }
            if !self.record.notices.is_empty() {
                self.send_notices();
            }
            self.report_finished();
        }
        Ok(())
    }

    /// [`Fault::StalledThread`]: events have come, and nobody looks at them.
    fn stall(&mut self) {
        if self.link.thread == 0 && self.now_ns >= self.stalls_ns {
            self.stalls_ns += STALL_EVERY_NS;
            std::thread::sleep(STALL);
        }
    }

    /// When to look again at the latest.
    fn wake_at_ns(&self) -> u64 {
        let first_ns = self.wheel.next_ns().filter(|_| !self.reported_finished);
        let mut timer_ns = first_ns.unwrap_or(u64::MAX);
        if self.driver.faults().has(Fault::LateTimers) {
            timer_ns = timer_ns.saturating_add(LATE_NS);
        }
        let pace_ns = match &self.open {
            None if self.users.any_resumes() => 0,
            None => self.users.next_retirement_ns(),
            Some(open) => open.wake_at_ns(self.now_ns),
        };
        let rates = self.record.recorder.rates.as_ref();
        timer_ns
            .min(pace_ns)
            .min(self.schedule.next_ns())
            .min(rates.map_or(u64::MAX, Rates::next_ns))
    }

    /// Reads the clock, cutting what is due before anything that happens from now on.
    #[inline]
    fn stamp(&mut self) {
        self.read_ns = self.driver.now_ns();
        self.catch_up();
    }

    /// Goes on to the last reading of the clock.
    #[inline]
    fn catch_up(&mut self) {
        if self.read_ns >= self.schedule.next_ns() {
            self.cut_due(self.read_ns);
        }
        self.now_ns = self.read_ns;
    }

    /// Cuts at the instants that have passed.
    #[cold]
    fn cut_due(&mut self, now_ns: u64) {
        while !self.stopped
            && let Some((at_ns, cut)) = self.schedule.take(now_ns)
        {
            self.record.cut_passed_marks(self.now_ns);
            // A command may come late. All that is reported of an edge is of the same instant.
            let at_ns = at_ns.max(self.record.recorder.earliest_cut_ns());
            if let Some(open) = &mut self.open {
                self.record.counters().offered += open.count_due(at_ns);
            }
            let put_off = self.driver.take_put_off();
            self.record.counters().submissions_put_off += put_off;
            if let Some(figures) = self.driver.take_http2() {
                self.record.recorder.shared(&figures);
            }
            if cut == Cut::Stop {
                self.record.counters().abandoned += self.record.recorder.in_flight();
                self.stopped = true;
            }
            let at_edge = match cut {
                Cut::WindowOpens(_) | Cut::TurnOpens(_) => AtEdge {
                    in_flight_age_ns: self.users.in_flight_age_ns(at_ns),
                    ..AtEdge::default()
                },
                Cut::WindowCloses(_) | Cut::TurnCloses(_) | Cut::Stop => AtEdge {
                    in_flight_age_ns: self.users.in_flight_age_ns(at_ns),
                    overdue: self.overdue(at_ns),
                    ..self.record.recorder.at_edge(at_ns)
                },
                Cut::Row(_) | Cut::Mark(_) | Cut::Rests | Cut::Resumes => AtEdge::default(),
            };
            if matches!(cut, Cut::Rests | Cut::Resumes) {
                self.users.halt_all(cut == Cut::Rests);
            }
            self.record.cut(cut, at_ns, at_edge);
            self.send_notices();
        }
    }

    /// At the end of a span: requests that should have been sent some time ago and were not.
    fn overdue(&self, at_ns: u64) -> u64 {
        // After the last request none is to be sent.
        let Some(open) = self.open.as_ref().filter(|_| !self.reported_finished) else {
            return 0;
        };
        let limit_ns = at_ns.saturating_sub(OVERDUE_NS);
        // Where nobody connects and no timer is late, only those whose turn to send comes can be
        // held: a look at a million others would hold up the thread.
        let connecting = self.record.recorder.lives.users_in(LifePart::Connect) > 0;
        let held = if connecting || self.wheel.next_ns().is_some_and(|at_ns| at_ns < limit_ns) {
            self.users.overdue(limit_ns, 0..self.users.places())
        } else {
            self.users.overdue(limit_ns, self.queued.iter().copied())
        };
        open.waiting(limit_ns) + held
    }

    fn report(&mut self, message: WorkerMessage) {
        if !(self.link.messages)(message) {
            // The coordinator is gone, and with it everybody who could want to know.
            self.stopped = true;
        }
    }

    /// Sends what has come up in the record.
    fn send_notices(&mut self) {
        for mut notice in std::mem::take(&mut self.record.notices) {
            if let Notice::Segment(segment) = &mut notice {
                segment.costs = self.clocks.take(self.driver.now_ns());
            }
            self.report(WorkerMessage::Notice(notice));
        }
    }

    fn take_commands(&mut self) {
        while let Ok(command) = self.link.commands.try_recv() {
            match command {
                WorkerCommand::Start { .. } => {}
                WorkerCommand::Window(span) => self.schedule.set_window(span),
                WorkerCommand::Rest { at_ns } => self.schedule.rest(at_ns),
                WorkerCommand::Turns { id, turns } => self.schedule.set_turns(id, &turns),
                WorkerCommand::CloseWindow { id, at_ns } => self.schedule.close_window(id, at_ns),
                WorkerCommand::Stop { at_ns } => self.schedule.set_stop(at_ns),
            }
        }
    }

    /// Deals with the timers that are due; after the last request none has anything to begin.
    fn fire_timers(&mut self) -> io::Result<()> {
        let late_ns = match self.driver.faults().has(Fault::LateTimers) {
            true => LATE_NS,
            false => 0,
        };
        for _ in 0..USERS_PER_LOOP {
            if self.stopped || self.reported_finished {
                break;
            }
            let Some((user, due_ns)) = self.wheel.pop(self.now_ns.saturating_sub(late_ns)) else {
                break;
            };
            self.on_timer(user, due_ns)?;
        }
        Ok(())
    }

    /// Lets users go on who have halted.
    fn resume(&mut self) -> io::Result<()> {
        let mut left = USERS_PER_LOOP;
        while left > 0
            && !self.stopped
            && let Some(index) = self.users.next_resumed()
        {
            left -= 1;
            let action = self.users.resume(index, cx!(self));
            self.act(index, action)?;
        }
        Ok(())
    }

    /// Ends the users whose time has come.
    fn retire(&mut self) -> io::Result<()> {
        let mut left = USERS_PER_LOOP;
        while left > 0
            && !self.stopped
            && let Some(index) = self.users.next_retired(self.now_ns)
        {
            left -= 1;
            if let Some(action) = self.users.retire(index, cx!(self)) {
                self.act(index, action)?;
            }
        }
        Ok(())
    }

    /// This thread has nothing left to send when its users have ended and no more arrive, or when
    /// the total is used up: users who think then are not waited for.
    fn report_finished(&mut self) {
        if self.reported_finished {
            return;
        }
        let ended_ns = self.users.ended_ns();
        let nobody = self.users.alive() == 0;
        let at_ns = self.users.used_up_ns().or_else(|| match &self.open {
            Some(open) => open
                .ended_ns(self.now_ns)
                .filter(|_| nobody)
                .map(|at_ns| at_ns.max(ended_ns)),
            None => nobody.then_some(ended_ns),
        });
        if let Some(at_ns) = at_ns {
            self.reported_finished = true;
            self.report(WorkerMessage::Finished {
                thread: self.link.thread,
                at_ns,
            });
        }
    }
}
