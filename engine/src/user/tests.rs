//! The users' machine by itself: events in, actions out, no driver and no clock.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::check::read_plan;
use crate::measure::user_time::LifePart;
use crate::pace::share::tests::one_of;
use crate::payload::Payload;
use crate::script::Language;

const NO_SCRIPTS: Language = Language {
    open: |_| Err("no scripts here".to_owned()),
    on_hang: |_| {},
};

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_000 * MS;

/// What is to be done for a user.
struct Done {
    close: bool,
    next: Action,
}

/// One user, its record, and the time.
struct Alone {
    users: Users,
    record: Record,
    now_ns: u64,
}

impl Alone {
    fn new(edit: impl FnOnce(&mut Value)) -> Self {
        let mut plan = json!({
            "version": 1,
            "target": {"url": "http://127.0.0.1:1"},
            "load": {"model": "closed", "users": 1},
            "scenarios": [{"steps": [{"path": "/a"}]}],
            "stop": {"iterations_per_user": 2},
        });
        edit(&mut plan);
        let plan = read_plan(&plan.to_string()).unwrap();
        let job = Arc::new(Job::new(&plan, 1, &NO_SCRIPTS).unwrap());
        let place = one_of(0, 1);
        let surroundings = Surroundings {
            secures: false,
            faults: Faults::NONE,
            unix_offset_ns: 0,
        };
        Self {
            users: Users::new(&job, place.clone(), 1, START_NS, surroundings),
            record: Record::new(&job, &place, 1, START_NS),
            now_ns: START_NS,
        }
    }

    /// Together with whether a connection was given up.
    fn done(&mut self, next: Action) -> Done {
        let mut close = false;
        while self.users.next_given_up().is_some() {
            close = true;
        }
        Done { close, next }
    }

    fn on(&mut self, event: UserEvent<'_>) -> Done {
        self.now_ns += MS;
        let mut context = Context::new(self.now_ns, &mut self.record);
        let action = self.users.on(0, event, &mut context);
        self.done(action)
    }

    fn timer(&mut self) -> Done {
        let due_ns = self.now_ns;
        self.on(UserEvent::Timer { due_ns })
    }

    fn receive(&mut self, bytes: &[u8]) -> Done {
        self.on(UserEvent::Received(Bytes {
            bytes,
            sending: false,
            accepted_ns: None,
        }))
    }

    /// What goes out when its turn has come.
    fn send(&mut self) -> Payload {
        let mut context = Context::new(self.now_ns, &mut self.record);
        let payload = self.users.write(0, Vec::new, &mut context).unwrap();
        let (limit_ns, _) = self.users.sent(0, self.now_ns, &mut self.record);
        assert!(limit_ns > self.now_ns);
        payload
    }

    fn sent_text(&mut self) -> String {
        match self.send() {
            Payload::Owned(outgoing) => String::from_utf8(outgoing.bytes().to_vec()).unwrap(),
            Payload::Fixed(index) => format!("fixed {index}"),
        }
    }

    fn completed(&self) -> u64 {
        self.record.recorder.figures.counters.completed
    }
}

fn response(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_user_that_rests_connects_anew_where_the_server_closed_meanwhile() {
    let mut alone = Alone::new(|_| {});
    assert!(matches!(alone.timer().next, Action::Connect { .. }));
    assert_eq!(alone.on(UserEvent::Connected).next, Action::Send);
    alone.send();
    alone.users.halt_all(true);
    let answer = alone.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!((answer.close, answer.next), (false, Action::Stay));
    // A timer of the request before is none of its business.
    assert_eq!(alone.timer().next, Action::Stay);
    let closed = UserEvent::Closed {
        sending: false,
        truncated: false,
    };
    assert!(alone.on(closed).close);
    assert_eq!(alone.users.next_resumed(), None);
    alone.users.halt_all(false);
    let index = alone.users.next_resumed().unwrap();
    let mut cx = Context::new(alone.now_ns, &mut alone.record);
    let action = alone.users.resume(index, &mut cx);
    assert!(matches!(action, Action::Connect { .. }));
    assert!(!alone.users.any_resumes());
    assert_eq!(alone.record.recorder.figures.counters.failed, 0);
}

#[test]
fn a_user_connects_sends_and_ends_and_a_plain_one_carries_nothing() {
    let mut alone = Alone::new(|_| {});
    assert!(alone.users.values.is_empty() && alone.users.queues.is_none());
    let action = alone.timer();
    assert!(matches!(action.next, Action::Connect { address: 0, .. }));
    assert_eq!(alone.on(UserEvent::Connected).next, Action::Send);
    assert!(matches!(alone.send(), Payload::Fixed(0)));
    let action = alone.receive(response("x").as_bytes());
    assert_eq!((action.next, action.close), (Action::Send, false));
    alone.send();
    let action = alone.receive(response("x").as_bytes());
    assert_eq!((action.next, action.close), (Action::End, true));
    assert_eq!((alone.completed(), alone.users.alive()), (2, 0));
}

#[test]
fn a_connection_lost_before_the_send_leaves_no_turn_around_of_its_own() {
    let mut alone = Alone::new(|_| {});
    let _ = alone.timer();
    assert_eq!(alone.on(UserEvent::Connected).next, Action::Send);
    let action = alone.on(UserEvent::Closed {
        sending: false,
        truncated: false,
    });
    assert!(action.close && matches!(action.next, Action::Connect { .. }));
    assert_eq!(alone.on(UserEvent::Connected).next, Action::Send);
    alone.now_ns += 3 * MS;
    alone.send();
    let recorder = &alone.record.recorder;
    let counters = &recorder.figures.counters;
    let sampled = (counters.turnaround.count(), counters.turnaround_ns);
    assert_eq!(sampled, (1, u128::from(3 * MS)));
    // The millisecond before the loss is user time all the same.
    let spent = recorder.at_edge(alone.now_ns).run_user_time;
    assert_eq!(spent.of(LifePart::Turnaround), i128::from(4 * MS));
}

#[test]
fn a_lost_connection_is_closed_and_the_next_request_connects_anew() {
    let mut alone = Alone::new(|_| {});
    let _ = alone.timer();
    let _ = alone.on(UserEvent::Connected);
    alone.send();
    let action = alone.on(UserEvent::Closed {
        sending: false,
        truncated: false,
    });
    assert!(action.close && matches!(action.next, Action::Connect { .. }));
    let failed = alone.on(UserEvent::ConnectFailed(ErrorKind::ConnectRefused));
    assert_eq!((failed.next, alone.users.alive()), (Action::End, 0));
    let expected = [ErrorKind::ConnectRefused, ErrorKind::PrematureClose];
    let errors = &alone.record.recorder.figures.counters.errors;
    assert_eq!(*errors, expected.map(|kind| (kind, 1)).into());
}

/// A place of an open load whose users walk these steps.
fn open_walk(plan: &mut Value, steps: Value) {
    plan["load"] = json!({
        "model": "open", "arrivals": "constant", "session": "user", "max_users": 1, "connections": 1,
        "phases": [{"duration_ms": 1000, "from_per_s": 10, "to_per_s": 10}],
    });
    plan["stop"] = json!({});
    plan["scenarios"][0]["steps"] = steps;
}

impl Alone {
    fn arrive(&mut self) -> Done {
        assert!(self.users.may_send());
        let mut context = Context::new(self.now_ns, &mut self.record);
        let action = self.users.arrive(0, self.now_ns, &mut context);
        self.done(action)
    }

    fn warm(&mut self) {
        let mut context = Context::new(self.now_ns, &mut self.record);
        let action = self.users.warm(0, &mut context);
        assert!(matches!(action, Action::Connect { .. }));
    }

    fn client_errors(&self) -> u64 {
        let errors = &self.record.recorder.figures.counters.errors;
        errors.get(&ErrorKind::Client).copied().unwrap_or(0)
    }
}

#[test]
fn a_request_that_waits_for_those_before_it_is_offered_once() {
    let mut alone = Alone::new(|plan| {
        plan["connection"] = json!({"pipeline": 2});
        let held = json!({"method": "POST", "path": "/b", "body": "x", "expect_continue": true});
        open_walk(
            plan,
            json!([{"path": "/a"}, held, {"path": "/c"}, {"path": "/d"}]),
        );
    });
    assert!(matches!(alone.arrive().next, Action::Connect { .. }));
    assert_eq!(alone.on(UserEvent::Connected).next, Action::Send);
    // The worker counts the first.
    for (sent, offered) in [("GET /a ", 0), ("POST /b ", 1), ("GET /c ", 3)] {
        let text = alone.sent_text();
        assert!(text.starts_with(sent), "{text}");
        assert_eq!(
            alone.record.recorder.figures.counters.offered, offered,
            "{sent}"
        );
        if sent == "POST /b " {
            let continues = alone.receive(b"HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(continues.next, Action::SendHeld { until_ns: None });
            assert!(alone.users.take_held(0, &mut alone.record).is_some());
        }
        let count = text.matches(" HTTP/1.1").count();
        let _ = alone.receive(response("x").repeat(count).as_bytes());
    }
    assert_eq!((alone.completed(), alone.users.alive()), (4, 0));
}

#[test]
fn a_user_whose_walk_begins_with_a_pause_gives_up_a_connection_that_is_being_opened() {
    let mut alone = Alone::new(|plan| {
        let pause = json!({"pause": {"kind": "constant", "ms": 50}});
        open_walk(plan, json!([pause, {"path": "/a"}]));
    });
    alone.warm();
    let until_ns = alone.now_ns + 50 * MS;
    let action = alone.arrive();
    assert_eq!(
        (action.next, action.close),
        (Action::WaitUntil(until_ns), true)
    );
    let action = alone.timer();
    assert!(matches!(action.next, Action::Connect { .. }));
    assert_eq!(alone.on(UserEvent::Connected).next, Action::Send);
}

#[test]
fn a_user_who_sends_nothing_leaves_a_connection_that_is_being_opened_as_it_is() {
    let mut alone = Alone::new(|plan| {
        open_walk(plan, json!([{"if": false, "steps": [{"path": "/a"}]}]));
    });
    alone.warm();
    let action = alone.arrive();
    let vacant = Action::Vacate { retry_ns: None };
    assert_eq!((&action.next, action.close), (&vacant, false));
    assert!(alone.users.phase(0) == Phase::Warming);
    assert_eq!(alone.on(UserEvent::Connected).next, vacant);
    assert!(alone.users.phase(0) == Phase::Ready);
    assert_eq!((alone.users.alive(), alone.completed()), (0, 0));
}

#[test]
fn what_the_clients_kernel_refuses_between_two_requests_is_the_clients() {
    let mut alone = Alone::new(|plan| {
        plan["load"]["think"] = json!({"kind": "constant", "ms": 50});
    });
    let _ = alone.timer();
    let _ = alone.on(UserEvent::Connected);
    alone.send();
    let _ = alone.receive(response("x").as_bytes());
    let action = alone.on(UserEvent::Refused("no memory".to_owned()));
    assert_eq!((action.next, action.close), (Action::Stay, true));
    let counters = &alone.record.recorder.figures.counters;
    assert_eq!(
        (
            counters.connections.closed_by_client,
            counters.connections.closed_by_server
        ),
        (1, 0)
    );
    assert_eq!(alone.client_errors(), 1);
}

#[test]
fn a_connection_for_nobody_that_the_clients_kernel_refuses_is_the_clients() {
    let mut alone = Alone::new(|plan| open_walk(plan, json!([{"path": "/a"}])));
    alone.warm();
    let action = alone.on(UserEvent::Refused("no memory".to_owned()));
    assert!(action.close && matches!(action.next, Action::Vacate { retry_ns: Some(_) }));
    assert_eq!(alone.client_errors(), 1);
}

#[test]
fn a_response_that_came_with_the_request_for_the_body_has_no_parts() {
    let mut alone = Alone::new(|plan| {
        plan["parts"] = true.into();
        plan["scenarios"][0]["steps"] =
            json!([{"method": "POST", "path": "/a", "body": "x", "expect_continue": true}]);
    });
    let _ = alone.timer();
    let _ = alone.on(UserEvent::Connected);
    alone.send();
    let action = alone.receive(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx");
    assert_eq!(action.next, Action::SendHeld { until_ns: None });
    assert!(alone.users.take_held(0, &mut alone.record).is_some());
    let _ = alone.on(UserEvent::Closed {
        sending: false,
        truncated: false,
    });
    assert_eq!(alone.completed(), 1);
    assert_eq!(alone.record.recorder.figures.parts.wait.count(), 0);
}

/// A user with three requests in a piece, of which the third needs what the first answers; its
/// pieces, after these pieces of responses.
fn walk(cuts: &[usize]) -> (Vec<String>, u64) {
    let mut alone = Alone::new(|plan| {
        plan["connection"] = json!({"pipeline": 4});
        plan["scenarios"][0]["steps"] = json!([
            {"path": "/a", "capture": [{"name": "id", "json": "/id"}]}, {"path": "/b"}, {"path": "/c/${id}"}]);
    });
    let _ = alone.timer();
    let _ = alone.on(UserEvent::Connected);
    let mut sent = Vec::new();
    loop {
        let text = alone.sent_text();
        let targets = text.lines().filter_map(|line| line.strip_prefix("GET "));
        let targets: Vec<&str> = targets.filter_map(|rest| rest.split(' ').next()).collect();
        let responses: String = targets
            .iter()
            .map(|target| response(if *target == "/a" { "{\"id\":7}" } else { "x" }))
            .collect();
        sent.push(targets.join(" "));
        let mut rest = responses.as_bytes();
        let mut next = Action::Stay;
        for cut in cuts.iter().chain([&responses.len()]) {
            let (piece, behind) = rest.split_at(rest.len().min(*cut));
            rest = behind;
            if !piece.is_empty() {
                assert_eq!(next, Action::Stay, "it went on before its last response");
                next = alone.receive(piece).next;
            }
        }
        if next == Action::End {
            return (sent, alone.completed());
        }
        assert_eq!(next, Action::Send);
    }
}

proptest! {
    /// However the responses come in pieces, what is sent is the same.
    #[test]
    fn the_cuts_of_responses_do_not_matter(cuts in proptest::collection::vec(0usize..60, 0..8)) {
        let (sent, completed) = walk(&cuts);
        prop_assert_eq!(sent, ["/a /b", "/c/7 /a /b", "/c/7"]);
        prop_assert_eq!(completed, 6);
    }
}

#[test]
fn who_waits_for_the_servers_end_goes_on_when_it_comes_or_after_a_second() {
    let waits = |plan: &mut Value| {
        plan["connection"] = json!({"reuse": "per_request", "close": "wait"});
    };
    let mut alone = Alone::new(waits);
    let _ = alone.timer();
    let _ = alone.on(UserEvent::Connected);
    alone.send();
    let action = alone.receive(response("x").as_bytes());
    let until_ns = alone.now_ns + 1_000 * MS;
    assert_eq!(
        (action.next, action.close),
        (Action::WaitUntil(until_ns), false)
    );
    let action = alone.on(UserEvent::Closed {
        sending: false,
        truncated: false,
    });
    assert!(action.close && matches!(action.next, Action::Connect { .. }));
    assert_eq!(alone.completed(), 1);
    let _ = alone.on(UserEvent::Connected);
    alone.send();
    let _ = alone.receive(response("x").as_bytes());
    let action = alone.timer();
    assert_eq!((action.next, action.close), (Action::End, true));
    let counters = &alone.record.recorder.figures.counters;
    assert_eq!(
        (
            counters.connections.closed_by_server,
            counters.connections.closed_first_by_server,
            counters.connections.closed_by_client
        ),
        (1, 1, 1)
    );
}
