//! What the tests of `prony-engine run` share: the engine as a process, and small scripted servers.
#![allow(dead_code, reason = "every test binary uses another part of it")]

pub mod recording;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Far longer than any run here takes: a test that gets here has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// EPERM, EACCES and ENOSYS: the host forbids io_uring or has none.
const NO_URING: [&str; 3] = ["(os error 1)", "(os error 13)", "(os error 38)"];

/// Both drivers, or only epoll, with a printed reason, where the host has no io_uring.
pub fn drivers() -> Vec<&'static str> {
    let output = Command::new(env!("CARGO_BIN_EXE_prony-engine"))
        .arg("probe")
        .output()
        .unwrap();
    let probe: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut drivers = vec!["epoll"];
    for driver in probe["drivers"].as_array().unwrap() {
        if driver["driver"] == "io_uring" {
            if driver["works"] == true {
                drivers.push("io_uring");
            } else {
                let reason = driver["reason"].as_str().unwrap();
                assert!(
                    NO_URING.iter().any(|code| reason.contains(code)),
                    "{reason}"
                );
                println!("io_uring is not tested here: {reason}");
            }
        }
    }
    drivers
}

/// A plan for this address and driver with one user and two threads' worth of defaults; `edit` changes it.
pub fn plan(address: SocketAddr, driver: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut plan = json!({
        "version": 1,
        "target": {"url": format!("http://{address}")},
        "driver": driver,
        "load": {"model": "closed", "users": 1},
        "scenarios": [{"steps": [{"method": "GET", "path": "/"}]}],
        "stop": {"after_ms": 30_000},
        "interval_ms": 100,
    });
    edit(&mut plan);
    plan
}

/// `prony-engine run` as a process.
pub struct Engine {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    pub events: Vec<Value>,
}

/// How a run ended.
pub struct Ended {
    pub events: Vec<Value>,
    pub code: Option<i32>,
    pub stderr: String,
}

impl Engine {
    pub fn start(plan: &Value) -> Self {
        Self::start_with_line(&plan.to_string())
    }

    /// With so many file descriptors at most.
    pub fn start_with_descriptors(plan: &Value, descriptors: u32) -> Self {
        Self::start_in_shell(plan, &format!("ulimit -n {descriptors}; exec \"$0\" run"))
    }

    /// Through a shell script that ends up being, or running, the engine, which is `$0`.
    pub fn start_in_shell(plan: &Value, script: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_prony-engine")]);
        let mut engine = Self::spawn(shell);
        engine.write_line(plan.to_string().as_bytes());
        engine
    }

    pub fn start_with_line(line: &str) -> Self {
        let mut engine = Self::start_without_a_plan();
        engine.write_line(line.as_bytes());
        engine
    }

    pub fn start_without_a_plan() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prony-engine"));
        command.arg("run");
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let event =
                    serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            events: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn command(&mut self, command: &Value) {
        self.write_line(command.to_string().as_bytes());
    }

    /// Whatever its bytes are.
    pub fn write_line(&mut self, line: &[u8]) {
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(&[line, b"\n"].concat())
            .unwrap();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the next event of this name.
    pub fn wait_for(&mut self, name: &str) -> Value {
        loop {
            let event = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no {name} event after {:?}", self.events));
            self.events.push(event.clone());
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Waits for the end of the process.
    pub fn end(mut self) -> Ended {
        let until = Instant::now() + PATIENCE;
        while let Ok(event) = self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.events.push(event);
        }
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if Instant::now() > until => {
                    self.child.kill().unwrap();
                    panic!("the engine hangs after {:?}", self.events.last());
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        Ended {
            events: self.events,
            code,
            stderr,
        }
    }
}

impl Ended {
    /// The `finished` event of a run that ended in order.
    pub fn finished(&self) -> &Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        let last = self.events.last().unwrap();
        assert_eq!(last["event"], "finished", "{last}");
        last
    }

    pub fn all(&self, name: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["event"] == name)
            .collect()
    }
}

/// Runs a plan to its end.
pub fn run(plan: &Value) -> Ended {
    Engine::start(plan).end()
}

/// Runs a plan to its end and returns its totals.
pub fn totals(plan: &Value) -> Value {
    run(plan).finished()["totals"].clone()
}

/// A listener whose accept queue is full: the kernel drops further attempts to connect until it
/// accepts.
pub fn full_listener() -> (TcpListener, TcpStream) {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let any: std::net::SocketAddrV4 = "127.0.0.1:0".parse().unwrap();
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&listener, &any).unwrap();
    listen(&listener, 0).unwrap();
    let listener = TcpListener::from(listener);
    let filler = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener, filler)
}

/// A port at which every connection is refused: it is bound, and nobody listens. Held, so that no other
/// test is given it.
pub fn refusing() -> (rustix::fd::OwnedFd, SocketAddr) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let any: std::net::SocketAddrV4 = "127.0.0.1:0".parse().unwrap();
    let held = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&held, &any).unwrap();
    let address = getsockname(&held).unwrap().try_into().unwrap();
    (held, address)
}

/// The time of all users, part by part, in the keys of the contract.
pub fn user_time_s(counters: &Value) -> f64 {
    ["cycle", "connect", "turnaround", "back_off"]
        .iter()
        .map(|part| counters[format!("clipped_{part}_s")].as_f64().unwrap())
        .sum()
}

/// A server whose connections are scripted by a function. It lives until the test process ends.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicU64>,
    pub requests: Arc<AtomicU64>,
    pub last_request: Arc<Mutex<String>>,
}

/// One accepted connection.
pub struct Peer {
    pub stream: TcpStream,
    /// Number of the connection, from 0.
    pub number: u64,
    requests: Arc<AtomicU64>,
    last_request: Arc<Mutex<String>>,
    pending: Vec<u8>,
}

impl Peer {
    /// Reads a request, head and body; `None` when the client closed.
    pub fn request(&mut self) -> Option<String> {
        loop {
            let text = String::from_utf8_lossy(&self.pending).into_owned();
            if let Some(head) = text.find("\r\n\r\n") {
                let body = text[..head]
                    .lines()
                    .find_map(|line| line.strip_prefix("Content-Length: "))
                    .map_or(0, |length| length.parse().unwrap());
                let length = head + 4 + body;
                if self.pending.len() >= length {
                    self.pending.drain(..length);
                    self.requests.fetch_add(1, Ordering::SeqCst);
                    let request = text[..length].to_owned();
                    self.last_request.lock().unwrap().clone_from(&request);
                    return Some(request);
                }
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.pending.extend_from_slice(&buffer[..length]),
            }
        }
    }

    /// Sends; a client that is gone already is no failure of the server.
    pub fn send(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes());
    }
}

impl Server {
    pub fn start(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
            last_request: Arc::default(),
        };
        let script = Arc::new(script);
        let (connections, requests, last) = (
            Arc::clone(&server.connections),
            Arc::clone(&server.requests),
            Arc::clone(&server.last_request),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut peer = Peer {
                    stream,
                    number: connections.fetch_add(1, Ordering::SeqCst),
                    requests: Arc::clone(&requests),
                    last_request: Arc::clone(&last),
                    pending: Vec::new(),
                };
                let script = Arc::clone(&script);
                std::thread::spawn(move || script(&mut peer));
            }
        });
        server
    }

    /// Answers every request with the same bytes and keeps the connection.
    pub fn answering(response: &'static str) -> Self {
        Self::start(move |peer| {
            while peer.request().is_some() {
                peer.send(response);
            }
        })
    }

    /// Answers the first request of each connection with the same bytes and closes.
    pub fn answering_once(response: &'static str) -> Self {
        Self::start(move |peer| {
            if peer.request().is_some() {
                peer.send(response);
            }
        })
    }

    pub fn request_count(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn connection_count(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

pub const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Counts must be exact; this says which was not.
pub fn assert_counts(totals: &Value, expected: &Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&totals[key], value, "{key} of {totals}");
    }
}
