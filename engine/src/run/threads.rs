//! The load threads: which driver they use, where they run, how they are reached.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::Message;
use crate::check::PlanError;
use crate::fault::Faults;
use crate::http2::Http2Driver;
use crate::job::Job;
use crate::net::Driver;
use crate::net::epoll::Epoll;
use crate::net::probe::round_trip;
use crate::net::read_ahead::ReadAhead;
use crate::net::rings::{Rings, max_per_ring};
use crate::net::sys::{Waker, set_realtime};
use crate::net::tls::TlsDriver;
use crate::net::uring::Uring;
use crate::plan::{DriverChoice, Threads};
use crate::report::ThreadReady;
use crate::worker::{WorkerCommand, WorkerLink, run};
use prony_common::process::{set_affinity, set_exact_timers};

/// The driver of a run and why it is this one.
#[derive(Debug, Clone)]
pub struct ChosenDriver {
    pub name: &'static str,
    pub reason: String,
}

impl ChosenDriver {
    /// A thread with injected faults exists for one driver.
    pub fn for_faults() -> Self {
        Self {
            name: <Epoll>::NAME,
            reason: "the plan injects faults, which run on epoll".to_owned(),
        }
    }
}

/// Chooses by probing; a driver that was asked for and does not work is a plan that cannot be run.
pub fn choose_driver(choice: DriverChoice) -> Result<ChosenDriver, PlanError> {
    let found = match choice {
        DriverChoice::Epoll => round_trip::<Epoll>(),
        DriverChoice::IoUring | DriverChoice::Auto => round_trip::<Uring>(),
    };
    let (name, reason) = match (choice, found) {
        (DriverChoice::Epoll, Ok(())) => (<Epoll>::NAME, "asked for by the plan".to_owned()),
        (DriverChoice::IoUring, Ok(())) => (Uring::NAME, "asked for by the plan".to_owned()),
        (DriverChoice::Auto, Ok(())) => (Uring::NAME, "probe succeeded".to_owned()),
        (DriverChoice::Auto, Err(why)) => {
            let reason = format!("io_uring does not work on this host: {why}");
            (<Epoll>::NAME, reason)
        }
        (DriverChoice::Epoll, Err(why)) => {
            refuse! { "driver is epoll, which does not work on this host: {why}" }
        }
        (DriverChoice::IoUring, Err(why)) => {
            refuse! { "driver is io_uring, which does not work on this host: {why}; use epoll or auto" }
        }
    };
    Ok(ChosenDriver { name, reason })
}

/// A way to each thread.
pub struct LoadThreads {
    threads: Vec<LoadThread>,
    pub read_ahead: ReadAhead,
}

struct LoadThread {
    commands: Sender<WorkerCommand>,
    waker: Option<Waker>,
}

/// What a thread says before anything else: where it runs.
type Placed = Receiver<Place>;

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    pinned: bool,
    realtime: bool,
}

impl Place {
    /// Puts the calling thread there.
    fn take(cpu: Option<usize>, realtime: bool) -> Self {
        let pinned = cpu.is_some_and(|cpu| set_affinity(&[cpu]).is_ok());
        Self {
            pinned,
            realtime: pinned && realtime && set_realtime(),
        }
    }
}

impl LoadThreads {
    /// Starts the threads; each then sets up its driver and says that it is ready.
    pub fn start(
        job: &Arc<Job>,
        driver: &ChosenDriver,
        plan: &Threads,
        coordinator: &Sender<Message>,
    ) -> Result<(Self, Vec<ThreadReady>), String> {
        let cpus: Vec<Option<usize>> = if plan.cpus.is_empty() {
            vec![None]
        } else {
            plan.cpus.iter().copied().map(Some).collect()
        };
        // Where these threads are not: it must not take their time.
        let read_ahead = match job.reads_files {
            true => ReadAhead::start().map_err(no_thread)?,
            false => ReadAhead::default(),
        };
        let mut threads = Vec::new();
        let mut ready = Vec::new();
        for (thread, cpu) in cpus.iter().enumerate() {
            let (commands, inbox) = channel();
            let coordinator = coordinator.clone();
            let link = WorkerLink {
                read_ahead: read_ahead.clone(),
                thread,
                threads: cpus.len(),
                commands: inbox,
                messages: Box::new(move |message| {
                    coordinator.send(Message::Worker(message)).is_ok()
                }),
            };
            let pin = cpu.filter(|_| plan.pin);
            let placed = spawn(Arc::clone(job), link, driver.name, pin, plan.realtime)?;
            threads.push(LoadThread {
                commands,
                waker: None,
            });
            let place = placed.recv().unwrap_or_default();
            ready.push(ThreadReady {
                cpu: *cpu,
                pinned: place.pinned,
                realtime: place.realtime,
            });
        }
        Ok((
            Self {
                threads,
                read_ahead,
            },
            ready,
        ))
    }

    pub fn len(&self) -> usize {
        self.threads.len()
    }

    pub fn set_waker(&mut self, thread: usize, waker: Waker) {
        self.threads[thread].waker = Some(waker);
    }

    pub fn send_all(&self, command: &WorkerCommand) {
        for thread in &self.threads {
            // A thread that has ended needs no commands.
            let _ = thread.commands.send(command.clone());
            if let Some(waker) = &thread.waker {
                waker.wake();
            }
        }
    }
}

fn no_thread(error: std::io::Error) -> String {
    format!("a thread cannot be started: {error}")
}

fn spawn(
    job: Arc<Job>,
    link: WorkerLink,
    driver: &'static str,
    pin: Option<usize>,
    realtime: bool,
) -> Result<Placed, String> {
    let (place_sender, placed) = channel();
    std::thread::Builder::new()
        .name(format!("load-{}", link.thread))
        .spawn(move || {
            let _ = place_sender.send(Place::take(pin, realtime));
            set_exact_timers();
            if job.http2.is_some() {
                return match (driver == Uring::NAME, job.tls.is_some()) {
                    (true, false) => run::<Http2Driver<Rings>>(&job, link),
                    (true, true) => run::<Http2Driver<TlsDriver<Rings>>>(&job, link),
                    (false, false) => run::<Http2Driver<Epoll>>(&job, link),
                    (false, true) => run::<Http2Driver<TlsDriver<Epoll>>>(&job, link),
                };
            }
            let users = job.share(link.thread, link.threads).of(job.users);
            let several = driver == Uring::NAME && job.connections(users) > max_per_ring();
            match (driver == Uring::NAME, job.tls.is_some()) {
                (true, false) if several => run::<Rings>(&job, link),
                (true, true) if several => run::<TlsDriver<Rings>>(&job, link),
                (true, false) => run::<Uring>(&job, link),
                (true, true) => run::<TlsDriver<Uring>>(&job, link),
                (false, false) if job.faults != Faults::NONE => run::<Epoll<true>>(&job, link),
                (false, false) => run::<Epoll>(&job, link),
                (false, true) => run::<TlsDriver<Epoll>>(&job, link),
            }
        })
        .map_err(no_thread)?;
    Ok(placed)
}
