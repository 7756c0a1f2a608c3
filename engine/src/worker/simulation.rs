//! The measuring thread on a virtual clock, against a simulated server: what it must record is known
//! exactly.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

mod batches;
mod faults;
mod populations;
mod user_time;

use super::start::start;
use super::{WorkerCommand, WorkerLink};
use crate::check::read_plan;
use crate::job::Job;
use crate::measure::counters::Counters;
use crate::measure::edges::Edges;
use crate::measure::gaps::Gaps;
use crate::measure::histogram::{Digits, Durations};
use crate::measure::opened::Opened;
use crate::measure::recorder::{Cut, OpenLoad, PartTimes, Segment};
use crate::measure::schedule::Span;
use crate::measure::steps::{StepFigures, add_all};
use crate::measure::uniformity::Uniformity;
use crate::measure::user_time::LifePart;
use crate::net::{Config, ConnId, Driver, NetEvent, Received, sys::Waker};
use crate::pace::arrivals::Share;
use crate::payload::Payload;
use crate::script::Language;
use crate::worker::WorkerMessage;

/// No simulated plan has a script.
const NO_SCRIPTS: Language = Language {
    open: |_| Err("there are no scripts here".to_owned()),
    on_hang: |_| (),
};

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_000 * MS;
const CONNECT_NS: u64 = MS;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// When the response to a request sent at this time (after the start) comes.
type Service = fn(u64) -> u64;

/// What the kernel says to an attempt to connect at this time (after the start); `None`: it lets it
/// begin.
type Refusal = fn(u64) -> Option<i32>;

std::thread_local! {
    /// When an attempt to connect at this time (after the start) succeeds.
    static CONNECT: std::cell::Cell<Service> = const { std::cell::Cell::new(|at_ns| at_ns + CONNECT_NS) };
    static SERVICE: std::cell::Cell<Service> = const { std::cell::Cell::new(|sent_ns| sent_ns) };
    static REFUSAL: std::cell::Cell<Refusal> = const { std::cell::Cell::new(|_| None) };
    /// The same for a send.
    static SEND_REFUSAL: std::cell::Cell<Refusal> = const { std::cell::Cell::new(|_| None) };
    /// The time that each send takes the client.
    static SEND_NS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    /// A command of the coordinator, and when it reaches the thread (after the start).
    static COMMAND: std::cell::Cell<Option<(u64, WorkerCommand)>> = const { std::cell::Cell::new(None) };
    static COORDINATOR: std::cell::RefCell<Option<Sender<WorkerCommand>>> = const { std::cell::RefCell::new(None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Connected(ConnId),
    Answered(ConnId),
    Refused(ConnId, i32),
    NotSent(ConnId, i32),
}

/// A server that takes a millisecond to connect and answers when told to; time passes only in waits
/// and, where asked for, in sends.
struct Simulated {
    now_ns: u64,
    /// Waits in a row that did not have to wait.
    looks: u32,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    batch: VecDeque<NetEvent>,
    service: Service,
    refusal: Refusal,
}

impl Driver for Simulated {
    const NAME: &'static str = "simulated";
    const SEND_GROUP: usize = 16;
    const FETCHES_LATE: bool = false;

    fn new(_config: Config) -> io::Result<Self> {
        Ok(Self {
            now_ns: START_NS,
            looks: 0,
            due: BinaryHeap::new(),
            batch: VecDeque::new(),
            service: SERVICE.get(),
            refusal: REFUSAL.get(),
        })
    }

    fn connect(&mut self, conn: ConnId, _address: usize) {
        if let Some(code) = (self.refusal)(self.now_ns - START_NS) {
            self.due
                .push(Reverse((self.now_ns, Due::Refused(conn, code))));
            return;
        }
        let at_ns = START_NS + CONNECT.get()(self.now_ns - START_NS);
        self.due.push(Reverse((at_ns, Due::Connected(conn))));
    }

    fn send(&mut self, conn: ConnId, _payload: Payload) {
        if let Some(code) = SEND_REFUSAL.get()(self.now_ns - START_NS) {
            self.due
                .push(Reverse((self.now_ns, Due::NotSent(conn, code))));
            return;
        }
        let at_ns = START_NS + (self.service)(self.now_ns - START_NS);
        self.due.push(Reverse((at_ns, Due::Answered(conn))));
        self.now_ns += SEND_NS.get();
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_sending(&self, _conn: ConnId) -> bool {
        false
    }

    fn close(&mut self, conn: ConnId) {
        let of = |due: &Due| match due {
            Due::Connected(of) | Due::Answered(of) | Due::Refused(of, _) | Due::NotSent(of, _) => {
                *of
            }
        };
        self.due.retain(|Reverse((_, due))| of(due) != conn);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let first_ns = self.due.peek().map_or(u64::MAX, |due| due.0.0);
        let next_ns = first_ns.min(until_ns.unwrap_or(u64::MAX));
        // Looking again and again takes time: that is how it passes for one who polls.
        self.looks = if next_ns > self.now_ns {
            0
        } else {
            self.looks + 1
        };
        self.now_ns = next_ns.max(self.now_ns + if self.looks > 2 { 100 } else { 0 });
        if let Some((reaches_ns, command)) = COMMAND.get()
            && self.now_ns >= START_NS + reaches_ns
        {
            COMMAND.set(None);
            COORDINATOR.with_borrow(|commands| commands.as_ref().unwrap().send(command).unwrap());
            self.batch.push_back(NetEvent::Woken);
        }
        while let Some(Reverse((at_ns, due))) = self.due.peek().copied()
            && at_ns <= self.now_ns
        {
            self.due.pop();
            self.batch.push_back(match due {
                Due::Connected(conn) => NetEvent::Connected(conn),
                Due::Refused(conn, code) => NetEvent::ConnectFailed(conn, code),
                Due::NotSent(conn, code) => NetEvent::Refused(conn, code),
                Due::Answered(conn) => NetEvent::Received(Received::whole(conn, RESPONSE)),
            });
        }
        Ok(())
    }

    fn next(&mut self) -> Option<NetEvent> {
        self.batch.pop_front()
    }

    fn bytes(&self, _received: &Received) -> &[u8] {
        RESPONSE
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
    opened: Opened,
    steps: Vec<StepFigures>,
    gaps: Gaps,
    edges: Edges,
    rows: Vec<(u64, u64)>,
    open_load: OpenLoad,
    parts: PartTimes,
    arrival_gaps: Uniformity,
    /// When the thread had nothing left to send, after the start.
    finished_ns: Option<u64>,
}

fn simulate(service: Service, window_ms: (u64, u64), edit: impl FnOnce(&mut Value)) -> Recorded {
    let alone = Share {
        thread: 0,
        threads: 1,
    };
    simulate_thread(alone, service, window_ms, edit)
}

/// One of several threads: each knows what it has to do without the others.
fn simulate_thread(
    place: Share,
    service: Service,
    window_ms: (u64, u64),
    edit: impl FnOnce(&mut Value),
) -> Recorded {
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
    let job = Arc::new(Job::new(&plan, place.threads, &NO_SCRIPTS).unwrap());
    let segments: Arc<Mutex<Vec<Segment>>> = Arc::default();
    let (commands, inbox) = channel();
    let sink = Arc::clone(&segments);
    let finished: Arc<Mutex<Option<u64>>> = Arc::default();
    let told = Arc::clone(&finished);
    let link = WorkerLink {
        thread: place.thread,
        threads: place.threads,
        commands: inbox,
        messages: Box::new(move |news| {
            match news {
                WorkerMessage::Segment(segment) => sink.lock().unwrap().push(*segment),
                WorkerMessage::Finished { at_ns, .. } => {
                    *told.lock().unwrap() = Some(at_ns - START_NS)
                }
                _ => {}
            }
            true
        }),
    };
    let span = Span {
        id: 1,
        opens_ns: START_NS + window_ms.0 * MS,
        closes_ns: START_NS + window_ms.1 * MS,
    };
    let command = WorkerCommand::Start {
        at_ns: START_NS,
        window: Some(span),
    };
    commands.send(command).unwrap();
    COORDINATOR.set(Some(commands));
    SERVICE.set(service);
    start::<Simulated>(&job, &link).unwrap();
    let mut recorded = Recorded {
        counters: Counters::default(),
        service_time: Durations::new(Digits::Three),
        opened: Opened::default(),
        steps: Vec::new(),
        gaps: Gaps::new(place.threads, span.opens_ns),
        edges: Edges::default(),
        rows: Vec::new(),
        open_load: OpenLoad::default(),
        parts: PartTimes::default(),
        arrival_gaps: Uniformity::default(),
        finished_ns: *finished.lock().unwrap(),
    };
    for segment in segments.lock().unwrap().iter() {
        if segment.window == Some(1) {
            recorded.counters.add(&segment.counters);
            recorded.service_time.add(&segment.service_time);
            recorded.opened.add(&segment.opened);
            recorded.open_load.add(&segment.open_load);
            recorded.parts.add(&segment.parts);
            add_all(&mut recorded.steps, &segment.steps);
            recorded
                .gaps
                .add(place.thread, &segment.quiet, segment.to_ns);
        }
        match segment.cut {
            Cut::WindowCloses(1) => {
                let edge = &segment.at_edge;
                recorded
                    .edges
                    .close(edge, &edge.window_user_time, segment.users);
                recorded.arrival_gaps.add(&segment.gaps);
            }
            Cut::WindowOpens(1) => recorded.edges.open(&segment.at_edge),
            Cut::Row(row) => recorded.rows.push((row, segment.counters.completed)),
            _ => {}
        }
    }
    recorded.must_add_up();
    recorded
}

impl Recorded {
    /// What holds exactly for whatever was simulated: each moment of a user's life is one part of
    /// it, and what is in flight is what ended, less what began before the window, and what is
    /// still under way.
    fn must_add_up(&self) {
        let (counters, edges) = (&self.counters, &self.edges);
        assert_eq!(edges.user_time.total(), counters.users_integral_ns);
        let ended_ns = counters.service_time_ns + counters.lost_time_ns;
        assert_eq!(
            counters.in_flight_integral_ns,
            (ended_ns + edges.in_flight_age_close_ns) as i128 - edges.in_flight_age_open_ns as i128
        );
    }

    fn spent(&self, part: LifePart) -> u64 {
        self.edges.user_time.of(part) as u64
    }
}

#[test]
fn a_fixed_service_time_gives_exactly_that() {
    let recorded = simulate(|sent_ns| sent_ns + 5 * MS, (0, 1000), |_| {});
    // Connected at 1 ms, then a response every 5 ms: the 199th at 996 ms.
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
    // 99 ms of responses in the first row, 20 responses of each user in the others.
    assert_eq!(recorded.rows[..3], [(0, 76), (1, 80), (2, 80)]);
}

#[test]
fn littles_law_holds_exactly_over_a_window_that_cuts_requests() {
    let recorded = simulate(|sent_ns| sent_ns + 7 * MS, (103, 303), |_| {});
    // Four users, always in flight, over 200 ms: by the counter of what is in flight, and by the
    // clipped cycles.
    assert_eq!(
        recorded.counters.in_flight_integral_ns,
        i128::from(4 * 200 * MS)
    );
    assert_eq!(recorded.spent(LifePart::Cycle), 4 * 200 * MS);
    // Sent at 1, 8, 15 ... ms: at 103 ms for 4 ms, at 303 ms for 1 ms.
    let ages = (
        recorded.edges.in_flight_age_open_ns,
        recorded.edges.in_flight_age_close_ns,
    );
    assert_eq!(ages, (u128::from(4 * 4 * MS), u128::from(4 * MS)));
}

#[test]
fn thinking_belongs_to_the_cycle_and_not_to_what_is_in_flight() {
    let recorded = simulate(
        |sent_ns| sent_ns + 4 * MS,
        (200, 800),
        |plan| plan["load"]["think"] = json!({"kind": "constant", "ms": 6}),
    );
    assert_eq!(recorded.spent(LifePart::Cycle), 4 * 600 * MS);
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
        let response_ns = sent_ns + 2 * MS;
        if (250 * MS..420 * MS).contains(&response_ns) {
            420 * MS
        } else {
            response_ns
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
    // Users start at 0, 100, 200 and 300 ms and connect in one: each is in flight from a
    // millisecond after its start.
    let expected = (999 + 899 + 799 + 699) * MS;
    let off = recorded
        .counters
        .in_flight_integral_ns
        .abs_diff(i128::from(expected));
    assert!(off <= 4 * 1024, "{off}");
}

fn open(plan: &mut Value, arrivals: &str, per_s: u64) {
    plan["load"] = json!({
        "model": "open", "arrivals": arrivals, "max_users": 3000, "connections": 1100,
        "phases": [{"duration_ms": 3000, "from_per_s": per_s, "to_per_s": per_s}],
    });
    plan["stop"] = json!({"after_ms": 3000});
}

#[test]
fn a_freeze_of_a_second_gives_every_latency_from_nought_to_a_second() {
    // The case of wrk2: 1000 requests a second, and from 1 s to 2 s the server is silent.
    let service = |sent_ns: u64| {
        if (1000 * MS..2000 * MS).contains(&sent_ns) {
            2000 * MS
        } else {
            sent_ns + MS
        }
    };
    // The first requests of all may wait for their connections.
    let recorded = simulate(service, (100, 2900), |plan| open(plan, "constant", 1000));
    assert_eq!(recorded.counters.offered, 2800);
    assert_eq!(recorded.counters.sent, 2800);
    assert_eq!((recorded.counters.blocked, recorded.edges.overdue), (0, 0));
    let latency = recorded.open_load.latency.filled().unwrap();
    assert_eq!(latency.len(), 2800);
    // Due at 1000, 1001, … 1999 ms: 1000, 999, … 1 ms. The histogram tells three digits apart.
    for ms in [2, 10, 100, 500, 900, 999] {
        let longer = latency.count_between(ms * MS + MS / 2, u64::MAX);
        assert!(longer.abs_diff(1000 - ms) <= 1, "{longer} above {ms}.5 ms");
    }
    // A closed loop of as many users as it takes saw one long request each.
    let closed = simulate(service, (100, 1900), |plan| {
        plan["stop"]["after_ms"] = 3000.into()
    });
    assert_eq!(
        closed
            .service_time
            .filled()
            .unwrap()
            .count_between(2 * MS, u64::MAX),
        0
    );
    assert_eq!(closed.gaps.finish().1, 1);
}

#[test]
fn sends_are_late_by_no_more_than_a_look() {
    let recorded = simulate(
        |sent_ns| sent_ns + MS,
        (100, 2900),
        |plan| open(plan, "constant", 1000),
    );
    // Polled every 100 ns in the simulation, up to 1024 ns when a timer's tick is waited for.
    assert_eq!(recorded.open_load.send_lag.count(), 2800);
    assert!(recorded.open_load.send_lag.max_ns().unwrap() <= 1200);
    // Latency is the lag and the service time.
    assert!(recorded.open_load.latency.max_ns().unwrap() <= MS + 3000);
}

#[test]
fn the_integral_of_what_is_in_flight_is_littles_product_in_an_open_load_too() {
    let recorded = simulate(
        |sent_ns| sent_ns + 7 * MS,
        (103, 2303),
        |plan| open(plan, "poisson", 500),
    );
    // By the counter of what is in flight, against arrivals x service time; the borders cut
    // requests that cancel on average.
    let by_counter = recorded.counters.in_flight_integral_ns as f64;
    let by_product = recorded.counters.service_time_ns as f64;
    assert!(
        (by_counter / by_product - 1.0).abs() < 0.02,
        "{by_counter} {by_product}"
    );
}

#[test]
fn poisson_arrivals_pass_the_test_at_the_asked_rate_and_constant_ones_would_not() {
    let recorded = simulate(
        |sent_ns| sent_ns + MS,
        (0, 3000),
        |plan| open(plan, "poisson", 1000),
    );
    let (count, distance) = (
        recorded.arrival_gaps.count(),
        recorded.arrival_gaps.distance().unwrap(),
    );
    assert_eq!(count, recorded.counters.sent - 1);
    // Exceeded once in a hundred seeds; this seed is fixed.
    assert!(distance < 1.63 / (count as f64).sqrt(), "{distance}");
}

#[test]
fn a_schedule_that_nobody_can_follow_is_counted_to_the_last_request() {
    // Two places, and a server that never answers: two are sent, one is blocked every 10 ms.
    let recorded = simulate(
        |_| u64::MAX / 2,
        (0, 1000),
        |plan| {
            open(plan, "constant", 100);
            plan["load"]["max_users"] = 2.into();
            plan["load"]["connections"] = 2.into();
        },
    );
    assert_eq!(
        (
            recorded.counters.sent,
            recorded.counters.blocked,
            recorded.counters.offered
        ),
        (2, 98, 100)
    );
}

#[test]
fn a_phase_may_have_fewer_places_than_the_next() {
    // Nobody is ever answered: one is under way in the first 500 ms, then three, then as many as
    // there are places.
    let recorded = simulate(
        |_| u64::MAX / 2,
        (0, 1500),
        |plan| {
            open(plan, "constant", 100);
            plan["load"]["max_users"] = 5.into();
            plan["load"]["connections"] = 5.into();
            let phase = |most: Value| json!({"duration_ms": 500, "from_per_s": 100, "to_per_s": 100, "max_users": most});
            plan["load"]["phases"] = json!([phase(1.into()), phase(3.into()), phase(Value::Null)]);
        },
    );
    let counters = &recorded.counters;
    assert_eq!(
        (counters.sent, counters.blocked, counters.offered),
        (5, 145, 150)
    );
}

#[test]
fn users_of_a_closed_load_end_over_the_ramp_down() {
    let recorded = simulate(
        |sent_ns| sent_ns + 10 * MS,
        (0, 1000),
        |plan| {
            plan["load"]["ramp_down_ms"] = 400.into();
            plan["load"]["think"] = json!({"kind": "constant", "ms": 10});
        },
    );
    // The last of four ends 300 ms before the first: at 700, 800, 900 and 1000 ms, a request under
    // way being finished.
    let cycle_ns = (700 + 800 + 900 + 1000) * MS;
    let off = recorded.spent(LifePart::Cycle).abs_diff(cycle_ns);
    assert!(off <= 4 * 11 * MS, "{off}");
    assert_eq!(recorded.counters.abandoned, 0);
}
