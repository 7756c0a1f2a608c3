//! The measuring thread on a virtual clock, against a simulated server: what it must record is known exactly.

mod batches;
mod branches;
mod closed;
mod driver;
mod faults;
mod open;
mod populations;
mod turns;
mod user_time;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::start::start;
use super::{WorkerCommand, WorkerLink, WorkerMessage};
use crate::check::read_plan;
use crate::job::Job;
use crate::measure::Sum;
use crate::measure::counters::Counters;
use crate::measure::edges::Edges;
use crate::measure::gaps::Gaps;
use crate::measure::histogram::Durations;
use crate::measure::opened::Opened;
use crate::measure::receive_delay::ReceiveDelay;
use crate::measure::schedule::Span;
use crate::measure::segment::{Cut, OpenLoad, PartTimes, Segment};
use crate::measure::steps::StepFigures;
use crate::measure::uniformity::Uniformity;
use crate::measure::user_time::LifePart;
use crate::net::read_ahead::ReadAhead;
use crate::pace::share::Share;
use crate::pace::share::tests::one_of;
use crate::record::Notice;
use crate::script::Language;
use driver::{
    COMMAND, CONNECT, CONNECT_NS, COORDINATOR, MS, REFUSAL, Refusal, SEND_NS, SEND_REFUSAL,
    SERVICE, START_NS, Service, Simulated,
};

/// No simulated plan has a script.
const NO_SCRIPTS: Language = Language {
    open: |_| Err("there are no scripts here".to_owned()),
    on_hang: |_| (),
};

/// Makes the load of a plan an open one of three seconds.
fn open(plan: &mut Value, arrivals: &str, per_s: u64) {
    plan["load"] = json!({
        "model": "open", "arrivals": arrivals, "max_users": 3000, "connections": 1100,
        "phases": [{"duration_ms": 3000, "from_per_s": per_s, "to_per_s": per_s}],
    });
    plan["stop"] = json!({"after_ms": 3000});
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
    receive_delay: ReceiveDelay,
    arrival_gaps: Uniformity,
    /// When the thread had nothing left to send, after the start.
    finished_ns: Option<u64>,
}

fn simulate(service: Service, window_ms: (u64, u64), edit: impl FnOnce(&mut Value)) -> Recorded {
    simulate_thread(one_of(0, 1), service, window_ms, edit)
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
    let reported = Arc::clone(&finished);
    let link = WorkerLink {
        read_ahead: ReadAhead::default(),
        thread: place.thread,
        threads: place.threads,
        commands: inbox,
        messages: Box::new(move |news| {
            match news {
                WorkerMessage::Notice(Notice::Segment(segment)) => {
                    sink.lock().unwrap().push(*segment)
                }
                WorkerMessage::Finished { at_ns, .. } => {
                    *reported.lock().unwrap() = Some(at_ns - START_NS)
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
        service_time: Durations::default(),
        opened: Opened::default(),
        steps: Vec::new(),
        gaps: Gaps::new(place.threads, span.opens_ns),
        edges: Edges::default(),
        rows: Vec::new(),
        open_load: OpenLoad::default(),
        parts: PartTimes::default(),
        receive_delay: ReceiveDelay::default(),
        arrival_gaps: Uniformity::default(),
        finished_ns: *finished.lock().unwrap(),
    };
    for segment in segments.lock().unwrap().iter() {
        if segment.window == Some(1) {
            recorded.counters.add(&segment.figures.counters);
            recorded.service_time.add(&segment.figures.service_time);
            recorded.opened.add(&segment.figures.opened);
            recorded.open_load.add(&segment.figures.open_load);
            recorded.parts.add(&segment.figures.parts);
            recorded.receive_delay.add(&segment.work.receive_delay);
            recorded.steps.add(&segment.figures.steps);
            recorded
                .gaps
                .add(place.thread, &segment.quiet, segment.to_ns);
        }
        match segment.cut {
            Cut::WindowCloses(1) | Cut::TurnCloses(1) => {
                let edge = &segment.at_edge;
                recorded
                    .edges
                    .close(edge, &edge.window_user_time, segment.users);
                recorded.arrival_gaps.add(&segment.gaps);
            }
            Cut::WindowOpens(1) | Cut::TurnOpens(1) => recorded.edges.open(&segment.at_edge),
            Cut::Row(row) => recorded
                .rows
                .push((row, segment.figures.counters.completed)),
            _ => {}
        }
    }
    recorded.must_add_up();
    recorded
}

impl Recorded {
    /// What holds exactly for whatever was simulated: each moment of a user's life is one part of it, and
    /// what is in flight is what ended, less what began before the window, and what is still under way.
    fn must_add_up(&self) {
        let (counters, edges) = (&self.counters, &self.edges);
        assert_eq!(edges.user_time.total(), counters.users_integral_ns as i128);
        let ended_ns = counters.service_time_ns + counters.lost_time_ns;
        assert_eq!(
            counters.in_flight_integral_ns,
            ended_ns as i128 + edges.in_flight_age_close_ns - edges.in_flight_age_open_ns
        );
    }

    fn spent(&self, part: LifePart) -> u64 {
        self.edges.user_time.of(part) as u64
    }
}
