//! Starts the built `prony-engine serve` and speaks raw HTTP with it, so that the tests of the
//! server believe nobody but the socket.
#![allow(dead_code)] // Every test binary uses its own part of this.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub listening: Value,
}

impl Server {
    /// Starts the server on a free port; `args` are the words of its command line.
    pub fn start(args: &str) -> Self {
        Self::start_words(&args.split_whitespace().collect::<Vec<_>>())
    }

    pub fn start_words(args: &[&str]) -> Self {
        Self::start_command(
            Command::new(env!("CARGO_BIN_EXE_prony-engine"))
                .arg("serve")
                .args(args),
        )
    }

    /// Starts the server through `command`, which must end up being it.
    pub fn start_command(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let listening =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event: {line:?}"));
        Self {
            child,
            stdout,
            listening,
        }
    }

    pub fn address(&self) -> &str {
        self.listening["address"].as_str().unwrap()
    }

    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client::new(stream)
    }

    /// One request on a connection of its own.
    pub fn get(&self, target: &str) -> Response {
        self.connect().get(target)
    }

    pub fn stats(&self) -> Value {
        serde_json::from_slice(&self.get("/__prony/stats").body).unwrap()
    }

    pub fn close_stdin(&mut self) {
        self.child.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end: the `finished` event and the exit status.
    pub fn wait(mut self) -> (Value, ExitStatus) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        let lines: Vec<&str> = rest.lines().collect();
        assert_eq!(lines.len(), 1, "one event was expected: {rest}");
        (serde_json::from_str(lines[0]).unwrap(), status)
    }

    /// Stops the server in order and returns its `finished` event.
    pub fn stop(self) -> Value {
        self.signal(Signal::TERM);
        let (finished, status) = self.wait();
        assert!(status.success(), "{status}");
        assert_eq!(finished["event"], "finished");
        finished
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after `stop`: both calls then fail, and that is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the server with options that it must refuse.
pub fn refused(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prony-engine"))
        .arg("serve")
        .args(args.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header; an empty string when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What reading found.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Closed,
    Reset,
    /// Nothing came, and the connection is still open.
    Silence,
    Data,
}

pub struct Client<S: Read + Write = TcpStream> {
    stream: BufReader<S>,
}

impl<S: Read + Write> Client<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub fn stream(&mut self) -> &mut S {
        self.stream.get_mut()
    }

    pub fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(text.as_ref()).unwrap();
        self.stream.get_mut().flush().unwrap();
    }

    pub fn ask(&mut self, target: &str) {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.ask(target);
        self.response()
    }

    /// Reads a head up to its empty line.
    pub fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(
                self.stream.read_line(&mut head).unwrap() > 0,
                "closed within a head: {head:?}"
            );
        }
        head
    }

    /// Reads a whole response to anything but HEAD.
    pub fn response(&mut self) -> Response {
        let head = self.head();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
        };
        if response.header("Transfer-Encoding") == "chunked" {
            response.body = self.chunks();
        } else if let Ok(length) = response.header("Content-Length").parse() {
            response.body = vec![0; length];
            self.stream.read_exact(&mut response.body).unwrap();
        } else if status != 204 && status != 304 {
            self.stream.read_to_end(&mut response.body).unwrap();
        }
        response
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
            let from = body.len();
            body.resize(from + length + 2, 0);
            self.stream.read_exact(&mut body[from..]).unwrap();
            assert_eq!(body.split_off(from + length), b"\r\n");
            if length == 0 {
                return body;
            }
        }
    }

    /// Reads up to `length` bytes or to the end.
    pub fn read_up_to(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.stream.by_ref().take(length).read_to_end(&mut bytes);
        bytes
    }

    /// Reads to the end of the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).unwrap();
        bytes
    }

    pub fn next(&mut self) -> End {
        match self.stream.fill_buf() {
            Ok([]) => End::Closed,
            Ok(_) => End::Data,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                End::Silence
            }
            // A wait with a limit ends so when the process was stopped for a moment.
            Err(error) if error.kind() == ErrorKind::Interrupted => self.next(),
            Err(error) => panic!("{error}"),
        }
    }
}

impl Client<TcpStream> {
    /// What comes within `wait`.
    pub fn next_within(&mut self, wait: Duration) -> End {
        self.stream().set_read_timeout(Some(wait)).unwrap();
        let found = self.next();
        self.stream().set_read_timeout(Some(PATIENCE)).unwrap();
        found
    }
}
