//! A measuring thread from its driver's set-up to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use super::messages::{WorkerCommand, WorkerLink, WorkerMessage};
use crate::job::Job;
use crate::net::{Config, Driver, Owners, Sharing};
use crate::plan::Close;

/// Runs a thread to its end; what goes wrong is reported to the coordinator.
pub fn run<D: Driver>(job: &Arc<Job>, link: WorkerLink) {
    let thread = link.thread;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| start::<D>(job, &link)));
    let message = match result {
        Ok(Ok(())) => return,
        Ok(Err(error)) => format!("thread {thread} cannot go on: {error}"),
        Err(_) => format!("thread {thread} panicked; this is a defect of the engine"),
    };
    // Without a coordinator nobody is left to notify.
    let _ = (link.messages)(WorkerMessage::Failed(message));
}

/// The kernel takes a moment to take back locked memory of the probe: a second for it.
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

pub(super) fn start<D: Driver>(job: &Arc<Job>, link: &WorkerLink) -> io::Result<()> {
    let users = job.share(link.thread, link.threads).of(job.users);
    let config = Config {
        connections: job.connections(users),
        addresses: Arc::clone(&job.addresses),
        sources: Arc::clone(&job.sources),
        fixed: Arc::clone(&job.fixed),
        times_sends: job.parts,
        receive_stamps: job.receive_stamps,
        faults: job.faults,
        tls: job.tls.clone(),
        owners: Owners {
            sides: 1,
            clients: users,
        },
        resets: job.close == Close::Reset,
        seed: job.seed.wrapping_add(link.thread as u64),
        http2: job.http2.map(|http2| Sharing {
            connections: http2.shared(&job.share(link.thread, link.threads), users),
            users: job.places(users),
            client: http2.client,
        }),
        read_ahead: link.read_ahead.clone(),
    };
    let driver = set_up::<D>(&config)?;
    let ready = WorkerMessage::Ready {
        thread: link.thread,
        waker: driver.waker(),
    };
    if !(link.messages)(ready) {
        return Ok(());
    }
    let Ok(WorkerCommand::Start { at_ns, window }) = link.commands.recv() else {
        return Ok(());
    };
    let mut worker = Worker::new(driver, Arc::clone(job), link, users, at_ns);
    if let Some(span) = window {
        worker.schedule.set_window(span);
    }
    worker.run()
}
