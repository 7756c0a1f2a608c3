//! `prony-engine serve`: a reference server with known delays and injectable faults. It counts what
//! it reads and sends, so that a client's arithmetic can be checked. It knows nothing of that
//! client.

mod args;
mod bare;
mod behaviour;
mod body;
mod clock;
mod connection;
mod counters;
mod curves;
mod events;
mod frames;
mod http1;
mod http2;
mod io;
mod lifetime;
mod listen;
mod options;
mod random;
mod ready;
mod recorder;
mod routes;
mod service;
mod serving;
mod shared;
mod template;
mod thread;
mod timers;
mod tls;
mod values;
mod workers;

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use prony_common::process::{raise_file_limit, set_affinity, set_exact_timers};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use args::Args;
use clock::Clock;
use events::{Event, Finished, Listening, Reason, ThreadReport, ThreadStart};
use listen::ListenAddress;
use options::Options;
use serving::{Acceptor, Post};
use shared::Shared;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use workers::Workers;

const USAGE: u8 = 2;
const FAILED: u8 = 4;

/// Runs the reference server until a signal stops it. Exit codes: 0 stopped in order, 2 invalid
/// options, 4 the server itself failed.
pub fn run(args: Args) -> ExitCode {
    let options = match args.options() {
        Ok(options) => options,
        Err(sentence) => return fail(USAGE, &sentence),
    };
    let (listener, address) = match options.listen.open() {
        Ok(opened) => opened,
        Err(sentence) => return fail(USAGE, &sentence),
    };
    let unix = match &options.listen {
        ListenAddress::Unix(path) => Some(path.clone()),
        ListenAddress::Tcp(_) => None,
    };
    let outcome = serve(options, listener, address);
    if let Some(path) = unix {
        // It may be gone already.
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

fn fail(code: u8, sentence: &str) -> ExitCode {
    eprintln!("prony-engine serve: {sentence}");
    ExitCode::from(code)
}

/// What the main thread waits for.
enum Notice {
    Stop(Reason),
    /// A serving thread failed.
    Broken(String),
}

fn serve(options: Options, listener: OwnedFd, address: String) -> Result<(), String> {
    let shared = Arc::new(Shared {
        workers: options.behaviour.workers.map(Workers::new),
        behaviour: options.behaviour,
        clock: Clock::start(),
        counters: options.cpus.iter().map(|_| Arc::default()).collect(),
        tls: options.tls,
        http2: options.http2,
        bare: options.bare,
        recorder: options.recorder,
        stop: AtomicBool::new(false),
    });
    // Refused, the server has fewer connections, which it counts.
    raise_file_limit();
    let (notices, received) = channel();
    watch(&notices, options.stdin_guard)?;
    let (panicked, print) = (notices.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        let sentence = "a thread of the server has panicked";
        let _ = panicked.send(Notice::Broken(sentence.to_owned()));
    }));

    let (threads, posts): (Vec<_>, Vec<_>) =
        options.cpus.iter().map(|_| unbounded_channel()).unzip();
    let mut acceptor = Some(Acceptor {
        listener,
        threads: threads.clone(),
    });
    let mut handles = Vec::new();
    let mut started = Vec::new();
    for ((number, cpu), posts) in options.cpus.iter().enumerate().zip(posts) {
        let acceptor = acceptor.take();
        let (handle, start) =
            start_thread(&shared, (number, *cpu), posts, acceptor, notices.clone())?;
        handles.push(handle);
        started.push(start);
    }
    let listening = Listening {
        address,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        seed: shared.behaviour.seed,
        tls: shared.tls.is_some(),
        http2: shared.http2.is_some(),
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
    for thread in &threads {
        // A thread that has ended has closed its channel.
        let _ = thread.send(None);
    }
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

/// Reports signals and, with `--stdin-guard`, the end of stdin.
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
            // Input is discarded: only its end counts.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = notify.send(Notice::Stop(Reason::StdinClosed));
        });
    }
    Ok(())
}

type Started = (JoinHandle<ThreadReport>, ThreadStart);

/// Starts a thread and waits until it is pinned.
fn start_thread(
    shared: &Arc<Shared>,
    (number, cpu): (usize, Option<usize>),
    posts: UnboundedReceiver<Post>,
    acceptor: Option<Acceptor>,
    notices: Sender<Notice>,
) -> Result<Started, String> {
    let shared = Arc::clone(shared);
    let counters = Arc::clone(&shared.counters[number]);
    let (ready, pinned) = channel();
    let work = move || {
        // Without a receiver the main thread has given up and set `stop`.
        let _ = ready.send(cpu.is_some_and(|cpu| set_affinity(&[cpu]).is_ok()));
        set_exact_timers();
        if let Err(error) = serving::run(shared, number, posts, acceptor) {
            let sentence = format!("thread {number} cannot go on: {error}");
            let _ = notices.send(Notice::Broken(sentence));
        }
        ThreadReport {
            cpu,
            cpu_s: clock::thread_cpu_ns() as f64 / 1e9,
            requests: counters.requests.get(),
            connections: counters.connections.get(),
        }
    };
    let handle = std::thread::Builder::new()
        .name(format!("serve-{number}"))
        .spawn(work)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    let pinned = pinned.recv().unwrap_or(false);
    if let (Some(cpu), false) = (cpu, pinned) {
        eprintln!(
            "prony-engine serve: a thread could not be pinned to CPU {cpu} and runs unpinned"
        );
    }
    Ok((handle, ThreadStart { cpu, pinned }))
}
