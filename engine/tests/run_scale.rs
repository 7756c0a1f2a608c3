//! Sixty thousand users with think time against `prony-engine serve`, every process under a limit
//! of 20,000 open files.

mod run_support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use run_support::{Engine, assert_counts, drivers, plan, user_time_s};
use serde_json::{Value, json};

const OPEN_FILES: u32 = 20_000;
const CONNECTIONS_PER_SERVER: u64 = 15_000;
/// Both ends of a connection in the kernel, and some to spare.
const KERNEL_BYTES_PER_USER: u64 = 12_000;
/// The bound of user-space memory per idle user in the engine, and per idle connection in the server.
const BYTES_PER_USER: u64 = 600;
const BYTES_PER_CONNECTION: u64 = 1_300;

struct Target {
    child: Child,
    address: String,
}

impl Target {
    fn start() -> Self {
        let script = format!("ulimit -n {OPEN_FILES}; exec \"$0\" serve --bare --stdin-guard");
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_prony-engine")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let address = listening["address"].as_str().unwrap().to_owned();
        Self { child, address }
    }

    fn stats(&self) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .write_all(b"GET /__prony/stats HTTP/1.0\r\n\r\n")
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number of kibibytes in a file of /proc, in bytes.
fn bytes_of(file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

fn resident_bytes(pid: u32) -> u64 {
    bytes_of(&format!("/proc/{pid}/status"), "VmRSS:")
}

fn resident_of(targets: &[Target]) -> u64 {
    targets
        .iter()
        .map(|one| resident_bytes(one.child.id()))
        .sum()
}

/// What the engine needs for itself.
fn with_one_user(target: &Target, driver: &str) -> u64 {
    let mut engine = Engine::start(&plan(target.address.parse().unwrap(), driver, |_| ()));
    engine.wait_for("interval");
    let bytes = resident_bytes(engine.pid());
    engine.command(&json!({"command": "stop"}));
    engine.end().finished();
    bytes
}

#[test]
fn tens_of_thousands_of_users_fit_in_little_memory_and_keep_their_laws() {
    for driver in drivers() {
        // A descriptor each is all that epoll can have.
        let users: u64 = if driver == "epoll" { 15_000 } else { 60_000 };
        let needed = users * KERNEL_BYTES_PER_USER;
        let available = bytes_of("/proc/meminfo", "MemAvailable:");
        if available < needed {
            println!(
                "{users} users are not tested here: {needed} bytes of memory are needed, {available} are free"
            );
            continue;
        }
        // The server has a descriptor per connection.
        let targets: Vec<Target> = (0..users.div_ceil(CONNECTIONS_PER_SERVER))
            .map(|_| Target::start())
            .collect();
        let first = targets[0].address.parse().unwrap();
        let plan = plan(first, driver, |plan| {
            let addresses: Vec<_> = targets.iter().map(|target| &target.address).collect();
            plan["target"]["addresses"] = json!(addresses);
            plan["target"]["source_addresses"] = "127.0.1.1-127.0.1.8".into();
            plan["load"] = json!({"model": "closed", "users": users, "ramp_up_ms": 8_000,
                "think": {"kind": "exponential", "mean_ms": 15_000}});
            plan["timeouts"] = json!({"connect_ms": 30_000, "request_ms": 30_000});
            plan["window"] = json!({"mode": "commanded"});
            plan["stop"]["after_ms"] = 150_000.into(); // the test ends it as soon as all are there
            plan["interval_ms"] = 500.into();
        });
        let (my_own, their_own) = (with_one_user(&targets[0], driver), resident_of(&targets));
        let mut engine = Engine::start_with_descriptors(&plan, OPEN_FILES);
        while engine.wait_for("interval")["connections_open"] != users {}
        let (mine, theirs) = (resident_bytes(engine.pid()), resident_of(&targets));
        assert!(
            mine.saturating_sub(my_own) <= users * BYTES_PER_USER,
            "{mine} bytes for {users} users, {my_own} for one"
        );
        assert!(
            theirs.saturating_sub(their_own) <= users * BYTES_PER_CONNECTION,
            "{theirs} bytes for {users} connections, {their_own} for one"
        );
        let open = |target: &Target| target.stats()["connections_open"].as_u64().unwrap();
        assert!(targets.iter().map(open).sum::<u64>() >= users);
        engine.command(&json!({"command": "window", "duration_ms": 2_000}));
        engine.wait_for("window_closed");
        engine.command(&json!({"command": "stop"}));
        let ended = engine.end();
        let finished = ended.finished();
        assert_counts(
            &finished["totals"],
            &json!({"users": users, "failed": 0, "connections_opened": users, "connect_attempts": users,
                "eaddrnotavail": 0, "emfile": 0}),
        );
        let window = &finished["window"];
        let number = |key: &str| window[key].as_f64().unwrap();
        // Little's law, for users and for requests: identities of what was recorded, on however
        // slow a machine.
        let simulated = user_time_s(window) / number("duration_s");
        assert!(
            (simulated / users as f64 - 1.0).abs() < 0.01,
            "{simulated} of {users} users"
        );
        assert!(number("think_count") > 0.0);
        assert!(number("think_actual_sum_s") >= number("think_drawn_sum_s"));
    }
}
