//! The faults that have to do with time. Only lower bounds are asserted: a slow machine is late,
//! never early.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};

use crate::serve_support::{Client, End, Server};

fn elapsed(action: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    action();
    begin.elapsed()
}

#[test]
fn a_fixed_delay_is_never_shorter() {
    let server = Server::start("--delay fixed:120ms");
    let mut client = server.connect();
    for _ in 0..3 {
        let took = elapsed(|| assert_eq!(client.get("/").status, 200));
        assert!(took >= Duration::from_millis(120), "{took:?}");
    }
}

#[test]
fn a_delayed_request_does_not_hold_up_others() {
    let server = Server::start("");
    let mut slow = server.connect();
    slow.ask("/?delay=1h");
    assert_eq!(server.get("/").status, 200);
    assert_eq!(slow.next_within(Duration::from_millis(1)), End::Silence);
}

#[test]
fn delays_are_waited_for_side_by_side() {
    let server = Server::start("--delay 1s");
    let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    let took = elapsed(|| {
        clients.iter_mut().for_each(|client| client.ask("/"));
        clients
            .iter_mut()
            .for_each(|client| assert_eq!(client.response().status, 200));
    });
    // One after the other would be 40 s.
    assert!(
        took >= Duration::from_secs(1) && took < Duration::from_secs(20),
        "{took:?}"
    );
}

#[test]
fn random_delays_have_their_mean() {
    let server = Server::start("--delay exp:20ms");
    let mut clients: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    let took = elapsed(|| {
        for _ in 0..20 {
            clients.iter_mut().for_each(|client| client.ask("/"));
            clients
                .iter_mut()
                .for_each(|client| assert_eq!(client.response().status, 200));
        }
    });
    // The largest of 20 exponential draws is 3.6 times the mean on average, so 20 rounds take 1.4 s
    // and never the
    // 0.4 s of a constant delay.
    assert!(took >= Duration::from_millis(800), "{took:?}");
}

#[test]
fn a_stall_holds_all_requests() {
    let server = Server::start("--stall every=1s,for=900ms");
    let mut client = server.connect();
    let begin = Instant::now();
    let mut longest = Duration::ZERO;
    while begin.elapsed() < Duration::from_millis(2500) {
        longest = longest.max(elapsed(|| assert_eq!(client.get("/").status, 200)));
    }
    assert!(longest >= Duration::from_millis(700), "{longest:?}");
}

#[test]
fn only_n_workers_serve_at_once() {
    let server = Server::start("--workers 2 --delay 100ms");
    let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    let took = elapsed(|| {
        clients.iter_mut().for_each(|client| client.ask("/"));
        clients
            .iter_mut()
            .for_each(|client| assert_eq!(client.response().status, 200));
    });
    assert!(took >= Duration::from_millis(400), "{took:?}");
    assert!(server.stop()["longest_queue"].as_u64().unwrap() >= 1);
}

#[test]
fn workers_are_shared_by_all_threads() {
    let server = Server::start("--cpus 0,1 --workers 1 --delay 20ms");
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    let took = elapsed(|| {
        for _ in 0..3 {
            clients.iter_mut().for_each(|client| client.ask("/"));
            clients
                .iter_mut()
                .for_each(|client| assert_eq!(client.response().status, 200));
        }
    });
    assert!(took >= Duration::from_millis(600), "{took:?}");
    assert_eq!(server.stop()["requests"], 30);
}

#[test]
fn a_client_that_leaves_gives_its_place_back() {
    let server = Server::start("--workers 1");
    let mut first = server.connect();
    first.ask("/?delay=5s");
    while server.stats()["requests"] != 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut leaving: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    leaving.iter_mut().for_each(|client| client.ask("/"));
    while server.stats()["longest_queue"] != 5 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A reset is noticed at once, a mere end of the client's side is not a farewell.
    for client in &mut leaving {
        rustix::net::sockopt::set_socket_linger(client.stream(), Some(Duration::ZERO)).unwrap();
    }
    drop(leaving);
    assert_eq!(first.response().status, 200);
    assert_eq!(server.get("/").status, 200);
    let finished = server.stop();
    assert_eq!(
        (
            finished["requests"].as_u64(),
            finished["answered"]["200"].as_u64()
        ),
        (Some(7), Some(2))
    );
    assert_eq!(finished["abandoned"], 5);
}

/// One that discards what comes is faster than the server that copies it: the socket never fills up.
#[test]
fn a_client_as_fast_as_the_server_keeps_no_other_waiting() {
    let server = Server::start("");
    let mut fast = server.connect();
    fast.ask("/?bytes=1000000000000");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut unused = vec![0; 1 << 20];
            while !over.load(Ordering::Relaxed) {
                recv(fast.stream(), &mut unused[..], RecvFlags::TRUNC).unwrap();
            }
        });
        let mut other = server.connect();
        let answered = (0..200).all(|_| other.get("/").status == 200);
        over.store(true, Ordering::Relaxed);
        assert!(answered);
    });
    assert_eq!(server.stop()["requests"], 201);
}

#[test]
fn work_burns_cpu() {
    let server = Server::start("--work 20ms");
    let mut client = server.connect();
    for _ in 0..10 {
        client.get("/");
    }
    let cpu_s = server.stop()["cpu_s"].as_f64().unwrap();
    assert!(cpu_s >= 0.2, "{cpu_s}");
}

#[test]
fn a_cold_server_works_more() {
    let server = Server::start("--work 2ms --warmup from=10,over=1h");
    let mut client = server.connect();
    for _ in 0..10 {
        client.get("/");
    }
    // 10 x 2 ms x almost 10; without the warm-up it would be 20 ms.
    let cpu_s = server.stop()["cpu_s"].as_f64().unwrap();
    assert!(cpu_s >= 0.15, "{cpu_s}");
}

#[test]
fn a_leaking_server_gets_slower() {
    let server = Server::start("--delay 10ms --slowdown per-minute=600,of=delay");
    std::thread::sleep(Duration::from_millis(1000));
    let took = elapsed(|| assert_eq!(server.get("/").status, 200));
    assert!(took >= Duration::from_millis(110), "{took:?}");
}

#[test]
fn a_slow_start_is_slow_for_good() {
    let server = Server::start("--delay 50ms --start-lottery share=1,factor=3");
    let took = elapsed(|| assert_eq!(server.get("/").status, 200));
    assert!(took >= Duration::from_millis(150), "{took:?}");
}

#[test]
fn a_dripped_response_comes_byte_by_byte() {
    let server = Server::start("--drip 3ms --body-bytes 20");
    let mut client = server.connect();
    let mut length = 0;
    let took = elapsed(|| {
        let response = client.get("/");
        assert_eq!(response.text(), "The reference server");
        length = response.head.len() + response.body.len();
    });
    assert!(
        took >= Duration::from_millis(3 * (length as u64 - 1)),
        "{length} bytes in {took:?}"
    );
    assert_eq!(client.get("/?bytes=1").body, b"T");
}
