//! The measuring thread on a virtual clock, against a simulated server: what it must record is known exactly.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Order, Post, start};
use crate::check::read_plan;
use crate::job::Job;
use crate::measure::counters::Counters;
use crate::measure::gaps::Gaps;
use crate::measure::histogram::{Digits, Durations};
use crate::measure::recorder::{Cut, Segment};
use crate::measure::schedule::Span;
use crate::net::{Config, ConnId, Driver, Event, Payload, Received, sys::Waker};
use crate::worker::News;

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_000 * MS;
const CONNECT_NS: u64 = MS;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// When the answer to a request sent at this time (after the start) comes.
type Service = fn(u64) -> u64;

std::thread_local! {
    static SERVICE: std::cell::Cell<Service> = const { std::cell::Cell::new(|sent_ns| sent_ns) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Connected(ConnId),
    Answered(ConnId),
}

/// A server that takes a millisecond to connect and answers when told to; time passes only in waits.
struct Simulated {
    now_ns: u64,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    batch: VecDeque<Event>,
    service: Service,
}

impl Driver for Simulated {
    const NAME: &'static str = "simulated";
    const SEND_GROUP: usize = 16;
    const FETCHES_LATE: bool = false;

    fn new(_config: Config) -> io::Result<Self> {
        Ok(Self {
            now_ns: START_NS,
            due: BinaryHeap::new(),
            batch: VecDeque::new(),
            service: SERVICE.get(),
        })
    }

    fn connect(&mut self, conn: ConnId, _address: usize) {
        let at_ns = self.now_ns + CONNECT_NS;
        self.due.push(Reverse((at_ns, Due::Connected(conn))));
    }

    fn send(&mut self, conn: ConnId, _payload: Payload) {
        let at_ns = START_NS + (self.service)(self.now_ns - START_NS);
        self.due.push(Reverse((at_ns, Due::Answered(conn))));
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_sending(&self, _conn: ConnId) -> bool {
        false
    }

    fn close(&mut self, conn: ConnId) {
        let of = |due: &Due| match due {
            Due::Connected(of) | Due::Answered(of) => *of,
        };
        self.due.retain(|Reverse((_, due))| of(due) != conn);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let first_ns = self.due.peek().map_or(u64::MAX, |due| due.0.0);
        self.now_ns = self.now_ns.max(first_ns.min(until_ns.unwrap_or(u64::MAX)));
        while let Some(Reverse((at_ns, due))) = self.due.peek().copied()
            && at_ns <= self.now_ns
        {
            self.due.pop();
            self.batch.push_back(match due {
                Due::Connected(conn) => Event::Connected(conn),
                Due::Answered(conn) => Event::Received(Received::whole(conn, ANSWER)),
            });
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        self.batch.pop_front()
    }

    fn bytes(&self, _received: &Received) -> &[u8] {
        ANSWER
    }

    fn release(&mut self, _received: Received) {}

    fn waker(&self) -> Waker {
        Waker::new().unwrap()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

/// What a simulated run recorded in its window.
struct Recorded {
    counters: Counters,
    service_time: Durations,
    gaps: Gaps,
    cycle_ns: u128,
    rows: Vec<(u64, u64)>,
}

fn simulate(service: Service, window_ms: (u64, u64), edit: impl FnOnce(&mut Value)) -> Recorded {
    let mut plan = json!({
        "version": 1,
        "target": {"url": "http://127.0.0.1:1"},
        "load": {"model": "closed", "users": 4},
        "scenarios": [{"steps": [{"path": "/"}]}],
        "stop": {"after_ms": 1000},
        "interval_ms": 100,
    });
    edit(&mut plan);
    let plan = read_plan(&plan.to_string()).unwrap();
    let job = Arc::new(Job::new(&plan, 1).unwrap());
    let segments: Arc<Mutex<Vec<Segment>>> = Arc::default();
    let (orders, inbox) = channel();
    let sink = Arc::clone(&segments);
    let post = Post {
        thread: 0,
        threads: 1,
        orders: inbox,
        news: Box::new(move |news| {
            if let News::Segment(segment) = news {
                sink.lock().unwrap().push(*segment);
            }
            true
        }),
    };
    let span = Span {
        id: 1,
        opens_ns: START_NS + window_ms.0 * MS,
        closes_ns: START_NS + window_ms.1 * MS,
    };
    let order = Order::Start {
        at_ns: START_NS,
        window: Some(span),
    };
    orders.send(order).unwrap();
    SERVICE.set(service);
    start::<Simulated>(&job, &post).unwrap();
    let mut recorded = Recorded {
        counters: Counters::default(),
        service_time: Durations::new(Digits::Three),
        gaps: Gaps::new(1, span.opens_ns),
        cycle_ns: 0,
        rows: Vec::new(),
    };
    for segment in segments.lock().unwrap().iter() {
        if segment.window == Some(1) {
            recorded.counters.add(&segment.counters);
            recorded.service_time.add(&segment.service_time);
            recorded.gaps.add(0, &segment.quiet, segment.to_ns);
        }
        match segment.cut {
            Cut::WindowCloses(1) => recorded.cycle_ns = segment.window_cycle_ns,
            Cut::Row(row) => recorded.rows.push((row, segment.counters.completed)),
            _ => {}
        }
    }
    recorded
}

#[test]
fn a_fixed_service_time_gives_exactly_that() {
    let recorded = simulate(|sent_ns| sent_ns + 5 * MS, (0, 1000), |_| {});
    // Connected at 1 ms, then an answer every 5 ms: the 199th at 996 ms.
    assert_eq!(recorded.counters.completed, 4 * 199);
    assert_eq!(recorded.counters.sent, 4 * 200);
    assert_eq!(recorded.service_time.count(), 4 * 199);
    let (min, max) = (
        recorded.service_time.min_ns(),
        recorded.service_time.max_ns(),
    );
    assert!(min.unwrap() > 4_990_000 && max.unwrap() < 5_010_000);
    assert_eq!(
        recorded.counters.service_time_ns,
        u128::from(4 * 199 * 5 * MS)
    );
    assert_eq!(recorded.gaps.finish(), (vec![], 0));
    // 99 ms of answers in the first row, 20 answers of each user in the others.
    assert_eq!(recorded.rows[..3], [(0, 76), (1, 80), (2, 80)]);
}

#[test]
fn littles_law_holds_exactly_over_a_window_that_cuts_requests() {
    let recorded = simulate(|sent_ns| sent_ns + 7 * MS, (103, 303), |_| {});
    // Four users, always in flight, over 200 ms: by the counter of what is in flight, and by the clipped cycles.
    assert_eq!(
        recorded.counters.in_flight_integral_ns,
        u128::from(4 * 200 * MS)
    );
    assert_eq!(recorded.cycle_ns, u128::from(4 * 200 * MS));
}

#[test]
fn thinking_belongs_to_the_cycle_and_not_to_what_is_in_flight() {
    let recorded = simulate(
        |sent_ns| sent_ns + 4 * MS,
        (200, 800),
        |plan| plan["load"]["think"] = json!({"kind": "constant", "ms": 6}),
    );
    assert_eq!(recorded.cycle_ns, u128::from(4 * 600 * MS));
    let in_flight = recorded.counters.in_flight_integral_ns as f64 / (4 * 600 * MS) as f64;
    assert!((in_flight - 0.4).abs() < 0.01, "{in_flight}");
    // A timer fires at most a tick (1024 ns) late.
    let overshoot = recorded.counters.think_actual_ns - recorded.counters.think_drawn_ns;
    assert!(overshoot <= u128::from(recorded.counters.think_count * 1024));
    assert_eq!(
        recorded.counters.think_drawn_ns,
        u128::from(recorded.counters.think_count * 6 * MS)
    );
}

#[test]
fn a_stall_is_one_gap_of_its_exact_length_even_over_the_ends_of_rows() {
    // Nobody is answered from 250 ms to 420 ms; a row ends at 300 ms and another at 400 ms.
    let service = |sent_ns: u64| {
        let answer_ns = sent_ns + 2 * MS;
        if (250 * MS..420 * MS).contains(&answer_ns) {
            420 * MS
        } else {
            answer_ns
        }
    };
    let recorded = simulate(service, (100, 900), |_| {});
    let (gaps, total) = recorded.gaps.finish();
    assert_eq!(total, 1);
    let gap = gaps[0];
    assert_eq!(
        (gap.from_ns - START_NS, gap.to_ns - START_NS, gap.in_flight),
        (249 * MS, 420 * MS, 4)
    );
}

#[test]
fn a_request_that_times_out_keeps_its_time_and_ends_the_connection() {
    let service = |sent_ns: u64| {
        if sent_ns < 10 * MS {
            u64::MAX / 2
        } else {
            sent_ns + MS
        }
    };
    let recorded = simulate(service, (0, 1000), |plan| {
        plan["timeouts"] = json!({"connect_ms": 100, "request_ms": 50})
    });
    assert_eq!(
        recorded
            .counters
            .errors()
            .map(|(_, count)| count)
            .sum::<u64>(),
        4
    );
    assert_eq!(recorded.counters.connections_opened, 8);
    let longest = recorded.service_time.max_ns().unwrap();
    assert!((50 * MS..51 * MS).contains(&longest), "{longest}");
    assert_eq!(
        recorded.service_time.count(),
        recorded.counters.completed + 4
    );
}

#[test]
fn a_ramp_starts_users_at_even_steps() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 1000),
        |plan| plan["load"]["ramp_up_ms"] = 400.into(),
    );
    // Users start at 0, 100, 200 and 300 ms and connect in one: each is in flight from a millisecond after its start.
    let expected = (999 + 899 + 799 + 699) * MS;
    let off = recorded
        .counters
        .in_flight_integral_ns
        .abs_diff(u128::from(expected));
    assert!(off <= 4 * 1024, "{off}");
}
