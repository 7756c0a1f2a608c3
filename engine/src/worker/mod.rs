//! One measuring thread: its driver, its users, its timers, its record. It shares nothing with other threads on the hot path and
//! talks to the coordinator by messages. It knows nothing of rows of all threads, windows' results or output.

mod chains;
mod cuts;
mod logging;
mod open;
mod outcome;
mod parts;
mod pipeline;
mod pool;
mod receive;
mod retire;
mod scenes;
mod scripted;
#[cfg(test)]
mod simulation;
mod walk;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::check::ms_to_ns;
use crate::fault::{Fault, LATE_NS};
use crate::http::head::Recent;
use crate::job::Job;
use crate::measure::rates::Rates;
use crate::measure::recorder::{Recorder, Segment};
use crate::measure::schedule::{Schedule, Span};
use crate::net::sys::{Waker, ask_for_exact_timers, thread_cpu_ns};
use crate::net::{Config, Driver, Event};
use crate::pace::arrivals::Share;
use crate::pace::wheel::Wheel;
use crate::user::{Phase, User};
use chains::Chains;
use logging::Logging;
use open::Open;
use parts::Parts;
use pipeline::Pipeline;
use retire::Retirement;
use scenes::Scenes;
use scripted::Scripted;

/// Users whose timers fired are dealt with in portions of this size, so that answers do not wait behind a crowd of starters.
const TIMERS_PER_LOOP: usize = 256;

/// Sends handed over together from this number on are timed before and after.
const TIMED_GROUP: usize = 4;

/// From the coordinator.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    Start { at_ns: u64, window: Option<Span> },
    Window(Span),
    Stop { at_ns: u64 },
}

/// To the coordinator.
#[derive(Debug)]
pub enum News {
    Ready {
        thread: usize,
        waker: Waker,
    },
    Segment(Box<Segment>),
    /// The completed request that this mark waits for ended in this thread.
    MarkReached {
        mark: usize,
        at_ns: u64,
    },
    /// This thread has nothing left to send.
    Finished {
        thread: usize,
        at_ns: u64,
    },
    /// The script made an error, which it keeps.
    ScriptFailed,
    Failed(String),
}

/// A thread's place among the others and its line to the coordinator.
pub struct Post {
    pub thread: usize,
    pub threads: usize,
    pub orders: Receiver<Order>,
    pub news: NewsLine,
}

/// Takes news to the coordinator; false when it is gone.
pub type NewsLine = Box<dyn Fn(News) -> bool + Send>;

/// Runs a thread to its end; what goes wrong is told to the coordinator.
pub fn run<D: Driver>(job: &Arc<Job>, post: Post) {
    let thread = post.thread;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| start::<D>(job, &post)));
    let message = match result {
        Ok(Ok(())) => return,
        Ok(Err(error)) => format!("thread {thread} cannot go on: {error}"),
        Err(_) => format!("thread {thread} panicked; this is a defect of the engine"),
    };
    // Without a coordinator nobody is left to be told.
    let _ = (post.news)(News::Failed(message));
}

/// Where locked memory is limited, the kernel takes a moment to take back what the probe had: a second is given to it.
const SET_UP_ATTEMPTS: u32 = 50;
const SET_UP_PAUSE: Duration = Duration::from_millis(20);

fn set_up<D: Driver>(config: &Config) -> io::Result<D> {
    let mut attempt = 1;
    let error = loop {
        match D::new(config.clone()) {
            Ok(driver) => return Ok(driver),
            Err(error)
                if error.raw_os_error() == Some(libc::ENOMEM) && attempt < SET_UP_ATTEMPTS =>
            {
                attempt += 1;
                std::thread::sleep(SET_UP_PAUSE);
            }
            Err(error) => break error,
        }
    };
    let advice = match error.raw_os_error() {
        Some(libc::ENOMEM) => "; raise the limit of locked memory (ulimit -l) or use epoll",
        Some(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files (ulimit -n)",
        _ => "",
    };
    let (driver, users) = (D::NAME, config.connections);
    Err(io::Error::new(
        error.kind(),
        format!("{driver} cannot be set up for {users} users: {error}{advice}"),
    ))
}

fn start<D: Driver>(job: &Arc<Job>, post: &Post) -> io::Result<()> {
    let users = job.users_of_thread(post.thread, post.threads);
    let config = Config {
        connections: users,
        addresses: Arc::clone(&job.addresses),
        sources: Arc::clone(&job.sources),
        fixed: Arc::clone(&job.fixed),
        times_sends: job.parts,
        faults: job.faults,
        tls: job.tls.clone(),
    };
    let driver = set_up::<D>(&config)?;
    let ready = News::Ready {
        thread: post.thread,
        waker: driver.waker(),
    };
    if !(post.news)(ready) {
        return Ok(());
    }
    let Ok(Order::Start { at_ns, window }) = post.orders.recv() else {
        return Ok(());
    };
    if job.open.is_some() {
        ask_for_exact_timers();
    }
    let mut worker = Worker::new(driver, Arc::clone(job), post, users, at_ns);
    if let Some(span) = window {
        worker.schedule.set_window(span);
    }
    worker.run()
}

/// What a thread keeps per step.
#[derive(Default)]
struct StepState {
    recent: Recent,
    /// Of answers to HEAD, where one step has them beside others.
    recent_of_heads: Recent,
}

impl StepState {
    #[inline]
    fn recent(&mut self, head: Option<bool>) -> &mut Recent {
        if head == Some(true) {
            &mut self.recent_of_heads
        } else {
            &mut self.recent
        }
    }
}

struct Worker<'a, D: Driver> {
    driver: D,
    job: Arc<Job>,
    post: &'a Post,
    users: Vec<User>,
    steps: Vec<StepState>,
    scenes: Scenes,
    chains: Chains,
    wheel: Wheel,
    schedule: Schedule,
    recorder: Recorder,
    rng: SmallRng,
    /// Users whose request goes out with the next group.
    queued: Vec<u32>,
    /// So many go out together at most.
    send_group: usize,
    /// `None` unless the plan asks for the parts of its requests' times.
    parts: Option<Box<Parts>>,
    /// `None` unless the plan asks for a log of its requests.
    logging: Option<Box<Logging>>,
    /// `None` unless several requests go out together.
    pipeline: Option<Box<Pipeline>>,
    /// Requests that may be sent without asking the quota.
    portion: u64,
    /// Of the target: where the next connection goes.
    next_address: usize,
    next_mark: usize,
    /// Of the load.
    start_ns: u64,
    /// When the event that is being handled had happened. Never goes back.
    now_ns: u64,
    /// The last reading of the clock: ahead of `now_ns` while requests go out in the middle of a batch.
    read_ns: u64,
    /// The events of a batch are being handled, which had all happened when it was fetched.
    in_batch: bool,
    /// Requests that took their place in the quota and have not ended.
    outstanding: usize,
    /// When the last request ended.
    ended_ns: u64,
    /// Users that have not ended; in an open load those that have arrived and not gone.
    alive: usize,
    /// `None` in a closed load.
    open: Option<Box<Open>>,
    retirement: Retirement,
    /// `None` without a script, and with one that always sends the same single request.
    scripted: Option<Scripted>,
    told_finished: bool,
    /// The last request of a user ended so that its iteration ends with it.
    ends_iteration: bool,
    /// The first answer's head was noted.
    head_told: bool,
    stopped: bool,
}

impl<'a, D: Driver> Worker<'a, D> {
    fn new(driver: D, job: Arc<Job>, post: &'a Post, users: usize, start: u64) -> Self {
        let stop_ns = job
            .after_ns
            .map_or(u64::MAX, |after| start.saturating_add(after));
        let mut wheel = Wheel::new(users, start);
        let place = Share {
            thread: post.thread,
            threads: post.threads,
        };
        let open = job
            .open
            .as_ref()
            .map(|open| Box::new(Open::new(&job, open, place, users, start)));
        if open.is_none() {
            for index in 0..users {
                let number = (index * post.threads + post.thread) as u32;
                let population = job.populations.of(number.into());
                wheel.set(index as u32, start + population.start_ns(number));
            }
        }
        let phase = if open.is_some() {
            Phase::Idle
        } else {
            Phase::Waiting
        };
        let mut recorder = Recorder::new(post.thread, start, thread_cpu_ns(), driver.now_ns())
            .with_steps(job.scenarios.figures.len())
            .with_addresses(job.addresses.len());
        recorder.rates = job.rates.map(|rates| {
            let groups = place.of(rates.groups);
            Rates::new(groups, ms_to_ns(rates.every_ms), start)
        });
        let user = |index: usize| {
            let mut user = User::new(phase);
            user.step = job.script_thread(index, post.thread, post.threads);
            user
        };
        Self {
            scripted: Scripted::new(&job, users),
            users: (0..users).map(user).collect(),
            steps: job.steps.iter().map(|_| StepState::default()).collect(),
            scenes: Scenes::new(&job, users, post.thread, post.threads),
            chains: Chains::default(),
            wheel,
            schedule: Schedule::new(start, job.interval_ns, stop_ns),
            recorder,
            rng: SmallRng::seed_from_u64(
                job.seed
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .wrapping_add(post.thread as u64),
            ),
            queued: Vec::with_capacity(D::SEND_GROUP),
            // Where the end of each send matters, none is made to wait for others.
            send_group: if job.parts { 1 } else { D::SEND_GROUP },
            pipeline: (job.pipeline > 1).then(|| Box::new(Pipeline::new(users))),
            parts: job.parts.then(|| Box::new(Parts::new(users))),
            logging: job
                .log
                .is_some()
                .then(|| Box::new(Logging::new(users, post.thread))),
            portion: 0,
            next_address: post.thread % job.addresses.len(),
            next_mark: 0,
            start_ns: start,
            now_ns: start,
            read_ns: start,
            in_batch: false,
            outstanding: 0,
            ended_ns: start,
            alive: if open.is_some() { 0 } else { users },
            retirement: Retirement::new(&job, place, users, start),
            open,
            told_finished: false,
            ends_iteration: false,
            head_told: false,
            stopped: false,
            driver,
            job,
            post,
        }
    }

    fn run(mut self) -> io::Result<()> {
        self.warm();
        while !self.stopped {
            let (from_ns, until_ns) = (self.now_ns, self.look_ns());
            self.driver.wait(Some(until_ns))?;
            self.stamp();
            let woke_ns = self.now_ns;
            if let Some(open) = &mut self.open {
                open.woke(from_ns, until_ns, woke_ns);
            }
            let mut dealt_with = false;
            self.in_batch = !D::FETCHES_LATE;
            while !self.stopped {
                let Some(event) = self.driver.next() else {
                    break;
                };
                if D::FETCHES_LATE {
                    self.stamp();
                }
                dealt_with = true;
                self.handle(event)?;
            }
            self.in_batch = false;
            self.catch_up();
            self.take_arrivals()?;
            self.fire_timers()?;
            self.retire();
            if let Some(rates) = &mut self.recorder.rates {
                rates.sample(self.now_ns);
            }
            let sent = self.flush()?;
            // How late the next wait ends is told from when it began; in a closed load nobody asks.
            if (!sent || self.open.is_some()) && !self.stopped {
                self.stamp();
            }
            if self.open.is_some() && !dealt_with && !sent && until_ns <= from_ns {
                self.recorder.looked_in_vain(self.now_ns - from_ns);
            }
            self.recorder.loops += 1;
            if dealt_with {
                self.recorder.loop_lag.record(self.now_ns - woke_ns);
            }
            self.tell_finished();
        }
        Ok(())
    }

    /// When to look again at the latest.
    fn look_ns(&self) -> u64 {
        let mut timer_ns = self.wheel.next_ns().unwrap_or(u64::MAX);
        if self.driver.faults().has(Fault::LateTimers) {
            timer_ns = timer_ns.saturating_add(LATE_NS);
        }
        let pace_ns = match &self.open {
            None => self.retirement.next_ns(),
            Some(open) => open.look_ns(self.now_ns),
        };
        let rates = self.recorder.rates.as_ref();
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

    fn tell(&mut self, news: News) {
        if !(self.post.news)(news) {
            // The coordinator is gone, and with it everybody who could want to know.
            self.stopped = true;
        }
    }

    fn take_orders(&mut self) {
        while let Ok(order) = self.post.orders.try_recv() {
            match order {
                Order::Start { .. } => {}
                Order::Window(span) => self.schedule.set_window(span),
                Order::Stop { at_ns } => self.schedule.set_stop(at_ns),
            }
        }
    }

    fn fire_timers(&mut self) -> io::Result<()> {
        let late_ns = match self.driver.faults().has(Fault::LateTimers) {
            true => LATE_NS,
            false => 0,
        };
        for _ in 0..TIMERS_PER_LOOP {
            if self.stopped {
                break;
            }
            let Some((user, due_ns)) = self.wheel.pop(self.now_ns.saturating_sub(late_ns)) else {
                break;
            };
            self.on_timer(user, due_ns)?;
        }
        Ok(())
    }

    /// Sends the requests that are queued. Returns whether there were any.
    ///
    /// In the middle of a batch the clock of events stands still: answers that are handled after a group of sends had come before
    /// it. Where the sends would fall behind a cut that those answers belong before, they wait for the end of the batch.
    fn flush(&mut self) -> io::Result<bool> {
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
        self.queued = queued;
        if !self.in_batch {
            // A cut that came due meanwhile is made at the next reading.
            self.now_ns = self.read_ns;
        }
        Ok(true)
    }

    /// Hands a group over to the driver, and empties it.
    ///
    /// The kernel sends a group one after the other, a few microseconds each. A small group is timed by the clock just before it;
    /// a larger one also by the clock just after it, and its requests are spread evenly over the time between. So a send is timed
    /// to within the time of [`TIMED_GROUP`] sends, whatever the size of the group.
    fn send_group(&mut self, group: &mut Vec<u32>) -> io::Result<()> {
        group.retain(|user| self.send(*user));
        let from_ns = self.read_ns.min(self.schedule.next_ns());
        if group.len() >= TIMED_GROUP || self.parts.is_some() {
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

    /// This thread has nothing left to send when its users have ended and no more arrive, or when the total is used up: users who
    /// think then are not waited for.
    fn tell_finished(&mut self) {
        if self.told_finished {
            return;
        }
        let used_up = self.portion == 0 && self.outstanding == 0 && self.job.quota.is_used_up();
        let nobody = self.alive == 0;
        let at_ns = match &self.open {
            _ if used_up => Some(self.ended_ns),
            Some(open) => open
                .ended_ns(self.now_ns)
                .filter(|_| nobody)
                .map(|at_ns| at_ns.max(self.ended_ns)),
            None => nobody.then_some(self.ended_ns),
        };
        if let Some(at_ns) = at_ns {
            self.told_finished = true;
            self.tell(News::Finished {
                thread: self.post.thread,
                at_ns,
            });
        }
    }

    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Received(received) => self.on_received(received),
            Event::Connected(conn) => self.on_connected(conn),
            Event::Secured(conn, secured) => self.on_secured(conn, secured),
            Event::Unsecured(conn, reason) => self.on_unsecured(conn, *reason),
            Event::ConnectFailed(conn, code) => self.on_connect_failed(conn, code),
            Event::Closed(conn) => self.on_closed(conn),
            Event::Broken(conn, direction, _) => self.on_broken(conn, direction),
            Event::Refused(conn, code) => self.on_refused(conn, code),
            Event::Woken => {
                self.take_orders();
                Ok(())
            }
        }
    }
}
