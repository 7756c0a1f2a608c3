//! How the server begins and ends, and what it refuses.

use crate::serve_support::{Server, refused};
use rustix::process::Signal;

#[test]
fn says_where_it_listens_and_what_it_did() {
    let server = Server::start("--cpus 0 --seed 9");
    assert_eq!(server.listening["event"], "listening");
    assert!(server.address().starts_with("127.0.0.1:") && !server.address().ends_with(":0"));
    assert!(server.listening["pid"].as_u64().unwrap() > 0);
    assert_eq!(server.listening["seed"], 9);
    assert_eq!(server.listening["threads"][0]["cpu"], 0);
    let response = server.get("/");
    let finished = server.stop();
    assert_eq!(
        (finished["reason"].as_str(), finished["requests"].as_u64()),
        (Some("signal"), Some(1))
    );
    assert_eq!(
        finished["bytes_sent"].as_u64().unwrap(),
        (response.head.len() + response.body.len()) as u64
    );
    assert_eq!(
        finished["bytes_received"].as_u64().unwrap(),
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n".len() as u64
    );
    assert!(
        finished["cpu_s"].as_f64().unwrap() > 0.0 && finished["elapsed_s"].as_f64().unwrap() > 0.0
    );
}

#[test]
fn interrupt_ends_it_in_order() {
    let server = Server::start("");
    server.signal(Signal::INT);
    let (finished, status) = server.wait();
    assert_eq!(
        (finished["reason"].as_str(), status.code()),
        (Some("signal"), Some(0))
    );
}

#[test]
fn ends_with_stdin_only_when_told_to() {
    let mut guarded = Server::start("--stdin-guard");
    guarded.close_stdin();
    let (finished, status) = guarded.wait();
    assert_eq!(
        (finished["reason"].as_str(), status.code()),
        (Some("stdin_closed"), Some(0))
    );
    let mut free = Server::start("");
    free.close_stdin();
    assert_eq!(free.get("/").status, 200);
    assert_eq!(free.stop()["reason"], "signal");
}

#[test]
fn ends_while_requests_are_waiting() {
    let server = Server::start("--delay 1h --workers 1");
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.ask("/"));
    while server.stats()["requests"] != 3 {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(server.stop()["answered"], serde_json::json!({}));
}

#[test]
fn a_cpu_that_does_not_exist_is_said_and_not_fatal() {
    let server = Server::start("--cpus 1023");
    assert_eq!(server.listening["threads"][0]["pinned"], false);
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn a_taken_port_is_one_sentence_and_exit_2() {
    let server = Server::start("");
    let output = refused(&format!("--listen {}", server.address()));
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        sentence.contains(server.address()) && sentence.contains("taken"),
        "{sentence}"
    );
    assert_eq!(sentence.lines().count(), 1);
    assert!(output.stdout.is_empty());
}

#[test]
fn nonsense_is_one_sentence_and_exit_2() {
    for args in [
        "--delay soon",
        "--delay -5ms",
        "--errors share=1.5",
        "--errors portion=0.1",
        "--workers 0",
        "--work -1us",
        "--stall every=1s",
        "--warmup from=10,over=60s",
        "--cpus one",
        "--listen nowhere",
        "--status 99",
        "--truncate share=0.1 --body-bytes 0",
        "--close-after 1 --close-silently-after 1",
        "--body-file /no/such/file",
    ] {
        let output = refused(args);
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {sentence}");
        assert_eq!(sentence.trim_end().lines().count(), 1, "{args}: {sentence}");
        assert!(output.stdout.is_empty(), "{args}");
    }
}

fn with_24_descriptors() -> Server {
    let engine = env!("CARGO_BIN_EXE_prony-engine");
    let script = "ulimit -n 24; exec \"$0\" serve";
    Server::start_command(std::process::Command::new("sh").args(["-c", script, engine]))
}

#[test]
fn running_out_of_descriptors_is_counted_and_passes() {
    let server = with_24_descriptors();
    let clients: Vec<_> = (0..40).map(|_| server.connect()).collect();
    // The last ones are in the kernel's queue and cannot be accepted.
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(clients);
    assert_eq!(server.get("/").status, 200);
    assert!(server.stop()["accept_errors"].as_u64().unwrap() > 0);
}

#[test]
fn ends_in_the_middle_of_work() {
    let server = Server::start("--work 1h --cpus 0,1");
    // One connection on each thread: the second can still ask while the first thread works.
    let mut worker = server.connect();
    worker.get("/__prony/stats");
    let mut observer = server.connect();
    observer.get("/__prony/stats");
    worker.ask("/");
    while !observer
        .get("/__prony/stats")
        .text()
        .contains("\"requests\":1,")
    {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(server.stop()["answered"], serde_json::json!({}));
}
