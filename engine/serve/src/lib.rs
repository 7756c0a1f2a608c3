//! `prony-engine serve`: a reference server with known delays and injectable faults. It counts what
//! it reads and sends, so that a client's arithmetic can be checked. It knows nothing of that
//! client.

mod args;
mod behaviour;
mod clock;
mod connection;
mod counters;
mod curves;
mod event_loop;
mod events;
mod http2;
mod listen;
mod machine;
mod options;
mod random;
mod receive;
mod recorder;
mod request;
mod respond;
mod response;
mod routes;
mod service;
mod shared;
mod stream;
mod streams;
mod timers;
mod tls;
mod values;
mod workers;

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use prony_common::process::{raise_file_limit, set_affinity, set_exact_timers};
use rustix::event::epoll;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use args::Args;
use event_loop::{EventLoop, LISTENER};
use events::{Event, Finished, Listening, Reason, ThreadReport, ThreadStart};
use listen::{ListenAddress, Listener};
use options::Options;
use recorder::Recorder;
use shared::Shared;

const USAGE: u8 = 2;
const FAILED: u8 = 4;

/// Runs the reference server until a signal stops it. Exit codes: 0 stopped in order, 2 invalid
/// options, 4 the server itself failed.
pub fn run(args: Args) -> ExitCode {
    let options = match args.options() {
        Ok(options) => options,
        Err(sentence) => return fail(USAGE, &sentence),
    };
    let Prepared {
        tls,
        recorder,
        listener,
        address,
    } = match prepare(&options) {
        Ok(prepared) => prepared,
        Err(sentence) => return fail(USAGE, &sentence),
    };
    let unix = match &options.listen {
        ListenAddress::Unix(path) => Some(path.clone()),
        ListenAddress::Tcp(_) => None,
    };
    let outcome = Shared::new(
        options.behaviour,
        options.cpus.len(),
        tls,
        options.http2,
        recorder,
    )
    .map_err(|error| format!("cannot set up: {error}"))
    .and_then(|shared| {
        serve(
            Arc::new(shared),
            options.cpus,
            options.stdin_guard,
            listener,
            address,
        )
    });
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

/// Everything that invalid options can make fail, done before any thread starts.
struct Prepared {
    tls: Option<Arc<rustls::ServerConfig>>,
    recorder: Option<Recorder>,
    listener: OwnedFd,
    address: String,
}

fn prepare(options: &Options) -> Result<Prepared, String> {
    let tls = options
        .tls
        .as_ref()
        .map(|files| {
            tls::load(
                &files.cert,
                &files.key,
                files.resumption,
                options.http2.is_some(),
            )
        })
        .transpose()?;
    let recorder = options
        .record
        .as_ref()
        .map(|record| Recorder::create(&record.path, record.limit_bytes))
        .transpose()?;
    let (listener, address) = options.listen.open()?;
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
    /// A serving thread failed.
    Broken(String),
}

fn serve(
    shared: Arc<Shared>,
    cpus: Vec<Option<usize>>,
    stdin_guard: bool,
    listener: OwnedFd,
    address: String,
) -> Result<(), String> {
    // Refused, the server has fewer connections, which it counts.
    raise_file_limit();
    let listener = (0..cpus.len())
        .map(|_| epoll::create(epoll::CreateFlags::CLOEXEC))
        .collect::<Result<Vec<_>, _>>()
        .and_then(|epolls| Listener::new(listener, epolls, LISTENER))
        .map_err(|error| format!("cannot set up epoll: {error}"))?;
    let listener = Arc::new(listener);
    let (notices, received) = channel();
    watch(&notices, stdin_guard)?;

    let mut handles = Vec::new();
    let mut started = Vec::new();
    for (thread, cpu) in cpus.into_iter().enumerate() {
        let (handle, start) = start_thread(&shared, &listener, thread, cpu, &notices)?;
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

/// Starts a thread and waits until it is pinned and ready.
fn start_thread(
    shared: &Arc<Shared>,
    listener: &Arc<Listener>,
    thread: usize,
    cpu: Option<usize>,
    notices: &Sender<Notice>,
) -> Result<Started, String> {
    let (shared, listener, notices) = (Arc::clone(shared), Arc::clone(listener), notices.clone());
    let (ready, pinned) = channel();
    let work = move || {
        let _alarm = PanicNotice(notices.clone());
        // Without a receiver the main thread has given up and set `stop`.
        let _ = ready.send(cpu.is_some_and(|cpu| set_affinity(&[cpu]).is_ok()));
        set_exact_timers();
        let served = EventLoop::new(Arc::clone(&shared), listener, thread)
            .and_then(|mut events| events.run());
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
            "prony-engine serve: a thread could not be pinned to CPU {cpu} and runs unpinned"
        );
    }
    Ok((handle, ThreadStart { cpu, pinned }))
}

/// Tells the main thread that a serving thread panicked.
struct PanicNotice(Sender<Notice>);

impl Drop for PanicNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Without a receiver the server is ending anyway.
            let _ = self.0.send(Notice::Broken(
                "a thread of the server has panicked".to_owned(),
            ));
        }
    }
}
