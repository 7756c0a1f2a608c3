//! `prony-engine serve`: a reference server with scripted trouble, the calibration partner of the client. It knows
//! nothing of plans, users or reports; what it counts is meant to be believed instead of any client's arithmetic.

mod answer;
mod args;
mod cases;
mod clock;
mod connection;
mod counters;
mod curves;
mod draw;
mod event_loop;
mod events;
mod exchange;
mod listen;
mod machine;
mod options;
mod record;
mod request;
mod respond;
mod script;
mod service;
mod shared;
mod timers;
mod tls;
mod values;
mod workers;

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use rustix::event::epoll;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use args::Args;
use event_loop::{DOOR, EventLoop};
use events::{Event, Finished, Listening, Reason, ThreadReport, ThreadStart};
use listen::{Door, Place};
use options::Plan;
use record::Recorder;
use shared::Shared;

const USAGE: u8 = 2;
const FAILED: u8 = 4;

/// Runs the reference server until it is told to stop. Exit codes: 0 stopped in order, 2 options that cannot be
/// followed, 4 the server itself failed.
pub fn run(args: Args) -> ExitCode {
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(sentence) => return fail(USAGE, &sentence),
    };
    let Prepared {
        tls,
        recorder,
        listener,
        address,
    } = match prepare(&plan) {
        Ok(prepared) => prepared,
        Err(sentence) => return fail(USAGE, &sentence),
    };
    let unix = match &plan.listen {
        Place::Unix(path) => Some(path.clone()),
        Place::Tcp(_) => None,
    };
    let outcome = Shared::new(plan.script, plan.cpus.len(), tls, recorder)
        .map_err(|error| format!("cannot set up: {error}"))
        .and_then(|shared| {
            serve(
                Arc::new(shared),
                plan.cpus,
                plan.stdin_guard,
                listener,
                address,
            )
        });
    if let Some(path) = unix {
        // The file is of no use to anybody now. If it is gone already, all the better.
        let _ = std::fs::remove_file(path);
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => fail(FAILED, &sentence),
    }
}

/// The JSON Schema of a line on its stdout.
pub fn event_schema() -> schemars::Schema {
    schemars::schema_for!(Event)
}

/// What can fail because of the options, before anything is started.
struct Prepared {
    tls: Option<Arc<rustls::ServerConfig>>,
    recorder: Option<Recorder>,
    listener: OwnedFd,
    address: String,
}

fn prepare(plan: &Plan) -> Result<Prepared, String> {
    let tls = plan
        .tls
        .as_ref()
        .map(|files| tls::load(&files.cert, &files.key, files.resumption))
        .transpose()?;
    let recorder = plan
        .record
        .as_ref()
        .map(|record| Recorder::create(&record.path, record.limit_bytes))
        .transpose()?;
    let (listener, address) = plan.listen.open()?;
    Ok(Prepared {
        tls,
        recorder,
        listener,
        address,
    })
}

fn fail(code: u8, sentence: &str) -> ExitCode {
    eprintln!("prony-engine serve: {sentence}");
    ExitCode::from(code)
}

/// What the main thread waits for.
enum Notice {
    Stop(Reason),
    /// A thread's loop has failed.
    Broken(String),
}

fn serve(
    shared: Arc<Shared>,
    cpus: Vec<Option<usize>>,
    stdin_guard: bool,
    listener: OwnedFd,
    address: String,
) -> Result<(), String> {
    raise_descriptor_limit();
    let door = (0..cpus.len())
        .map(|_| epoll::create(epoll::CreateFlags::CLOEXEC))
        .collect::<Result<Vec<_>, _>>()
        .and_then(|epolls| Door::new(listener, epolls, DOOR))
        .map_err(|error| format!("cannot set up epoll: {error}"))?;
    let door = Arc::new(door);
    let (notices, received) = channel();
    watch(&notices, stdin_guard)?;

    let mut handles = Vec::new();
    let mut started = Vec::new();
    for (thread, cpu) in cpus.into_iter().enumerate() {
        let (handle, start) = start_thread(&shared, &door, thread, cpu, &notices)?;
        handles.push(handle);
        started.push(start);
    }
    let listening = Listening {
        address,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        seed: shared.script.seed,
        tls: shared.tls.is_some(),
        threads: started,
    };
    let printed = Event::Listening(listening).print();

    let outcome = match printed {
        Err(error) => Err(format!("cannot write to stdout: {error}")),
        Ok(()) => match received.recv() {
            Ok(Notice::Stop(reason)) => Ok(reason),
            Ok(Notice::Broken(sentence)) => Err(sentence),
            Err(_) => Err("all watching threads have ended".to_owned()),
        },
    };
    shared.stop();
    let mut reports = Vec::new();
    for handle in handles {
        reports.push(
            handle
                .join()
                .map_err(|_| "a thread of the server has panicked".to_owned())?,
        );
    }
    let reason = outcome?;
    let elapsed_s = shared.clock.now_ns() as f64 / 1e9;
    let finished = Finished {
        reason,
        elapsed_s,
        totals: shared.totals(),
        threads: reports,
    };
    Event::Finished(Box::new(finished))
        .print()
        .map_err(|error| format!("cannot write to stdout: {error}"))
}

/// Tells of signals and, with `--stdin-guard`, of the end of stdin.
fn watch(notices: &Sender<Notice>, stdin_guard: bool) -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| format!("cannot watch for signals: {error}"))?;
    let notify = notices.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if notify.send(Notice::Stop(Reason::Signal)).is_err() {
                return;
            }
        }
    });
    if stdin_guard {
        let notify = notices.clone();
        std::thread::spawn(move || {
            // Whatever comes is thrown away; the end, or an error, is what counts. Nobody listens after the end.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = notify.send(Notice::Stop(Reason::StdinClosed));
        });
    }
    Ok(())
}

type Started = (JoinHandle<ThreadReport>, ThreadStart);

/// Starts a thread and waits until it is pinned and ready.
fn start_thread(
    shared: &Arc<Shared>,
    door: &Arc<Door>,
    thread: usize,
    cpu: Option<usize>,
    notices: &Sender<Notice>,
) -> Result<Started, String> {
    let (shared, door, notices) = (Arc::clone(shared), Arc::clone(door), notices.clone());
    let (ready, pinned) = channel();
    let work = move || {
        let _alarm = Alarm(notices.clone());
        // Without a receiver the main thread has given up, and `stop` is set.
        let _ = ready.send(cpu.is_some_and(pin));
        // Timers fire as exactly as the kernel can, not up to 50 us later to save wake-ups; refused, only later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let served =
            EventLoop::new(Arc::clone(&shared), door, thread).and_then(|mut events| events.run());
        if let Err(error) = served {
            let _ = notices.send(Notice::Broken(format!(
                "thread {thread} cannot go on: {error}"
            )));
        }
        ThreadReport {
            cpu,
            cpu_s: clock::thread_cpu_ns() as f64 / 1e9,
            requests: shared.counters[thread].requests.get(),
            connections: shared.counters[thread].connections.get(),
        }
    };
    let handle = std::thread::Builder::new()
        .name(format!("serve-{thread}"))
        .spawn(work)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    let pinned = pinned.recv().unwrap_or(false);
    if let (Some(cpu), false) = (cpu, pinned) {
        eprintln!(
            "prony-engine serve: a thread could not be pinned to CPU {cpu} and runs where the kernel puts it"
        );
    }
    Ok((handle, ThreadStart { cpu, pinned }))
}

/// Tells the main thread when its own thread panics, as nobody would notice otherwise.
struct Alarm(Sender<Notice>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Without a receiver the server is ending anyway.
            let _ = self.0.send(Notice::Broken(
                "a thread of the server has panicked".to_owned(),
            ));
        }
    }
}

fn pin(cpu: usize) -> bool {
    if cpu >= CpuSet::MAX_CPU {
        return false;
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Raises the soft limit of descriptors to the hard one. Refused, the server has fewer connections, which it counts.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}
