//! The middle of the state machine, between a request and its response: outcome, queue, stall, work
//! and delay. It knows nothing of bytes.

use std::rc::Rc;

use super::clock;
use super::machine::{Action, HttpState, Machine, Pending, Phase};
use super::random::Outcome;
use super::respond::ENDLESS_EVERY_NS;
use super::routes::Endpoint;
use super::timers::Deadline;
use super::workers::Waiting;

impl Machine {
    /// Counts a whole request and draws its outcome.
    pub(super) fn begin(
        &mut self,
        http: &mut HttpState,
        key: u64,
        mut pending: Pending,
        out: &mut Vec<u8>,
    ) -> Action {
        if pending.endpoint == Endpoint::Stats {
            self.counters.stats_requests.add(1);
            return self.answer(http, key, pending, out);
        }
        self.counters.requests.add(1);
        if pending.refusal.is_some() {
            return self.answer(http, key, pending, out);
        }
        let handler = &pending.handler;
        if handler.has_faults {
            pending.outcome = self.random.outcome(&handler.settings.shares);
            if pending.outcome == Outcome::Truncate && Self::is_bodiless(http, &pending) {
                pending.outcome = Outcome::Normal;
            }
        }
        let at_once = self.answers_at_once && handler.immediate;
        if at_once || (pending.outcome == Outcome::Error && handler.settings.errors_fast) {
            return self.answer(http, key, pending, out);
        }
        http.request().pending = Some(pending);
        if let Some(workers) = &self.shared.workers {
            if !workers.acquire(Waiting {
                thread: self.thread,
                key,
            }) {
                http.phase = Phase::Queued;
                return Action::Hold;
            }
            http.has_worker = true;
        }
        self.admit(http, key, out)
    }

    /// Whether the response has nothing that could be cut.
    fn is_bodiless(http: &HttpState, pending: &Pending) -> bool {
        let echo = http
            .request
            .as_ref()
            .map_or(0, |request| request.echo.len());
        pending.head_only || (pending.endpoint == Endpoint::Echo && echo == 0)
    }

    /// The connection was given the worker it waited for.
    pub fn grant(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        http.has_worker = true;
        let action = self.admit(http, key, out);
        self.go_on(http, key, action, out)
    }

    /// Begins the service, after the stall if there is one.
    fn admit(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        if let Some(stall) = &self.shared.behaviour.stall {
            let now_ns = self.shared.clock.now_ns();
            let release_ns = stall.release_ns(now_ns, http.place);
            if release_ns > now_ns {
                return self.wait(http, key, Phase::Stalled, release_ns);
            }
        }
        self.serve(http, key, out)
    }

    /// Works, then waits for as long as the response is to be delayed.
    fn serve(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        let Some(handler) = http
            .request()
            .pending
            .as_ref()
            .map(|pending| Rc::clone(&pending.handler))
        else {
            return Action::Drop;
        };
        let behaviour = &self.shared.behaviour;
        let begin_ns = self.shared.clock.now_ns();
        if handler.settings.work_ns > 0 {
            let work_ns =
                (handler.settings.work_ns as f64 * behaviour.work_factor(begin_ns)) as u64;
            clock::burn(work_ns, &self.shared.stop);
            if self.shared.is_stopped() {
                // The work was not finished, so that there is nothing to response.
                return Action::Hold;
            }
        }
        let now_ns = self.shared.clock.now_ns();
        let delay = &handler.settings.delay;
        let drawn_ns = self.random.delay_ns(delay);
        let factor = behaviour.delay_factor(begin_ns, delay.is_tail(drawn_ns));
        // The delay counts from the end of the work, as waiting for a backend does.
        let due_ns = now_ns + (drawn_ns as f64 * factor) as u64;
        let due_ns = behaviour
            .stall
            .as_ref()
            .map_or(due_ns, |stall| stall.release_ns(due_ns, http.place));
        if due_ns > now_ns {
            return self.wait(http, key, Phase::Serving, due_ns);
        }
        self.finish(http, key, out)
    }

    pub(super) fn wait(
        &mut self,
        http: &mut HttpState,
        key: u64,
        phase: Phase,
        due_ns: u64,
    ) -> Action {
        http.phase = phase;
        http.ticket = http.ticket.wrapping_add(1);
        self.timers.arm(Deadline {
            due_ns,
            key,
            ticket: http.ticket,
        });
        Action::Hold
    }

    /// The service is over: the worker goes back, the response goes out.
    fn finish(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        self.release_worker(http);
        http.phase = Phase::Reading;
        match http.request().pending.take() {
            Some(pending) => self.answer(http, key, pending, out),
            None => Action::Drop,
        }
    }

    pub(super) fn release_worker(&mut self, http: &mut HttpState) {
        if !std::mem::take(&mut http.has_worker) {
            return;
        }
        self.pass_worker_on();
    }

    /// Gives a worker to the next in the queue, in whatever thread that is.
    pub fn pass_worker_on(&mut self) {
        let Some(workers) = &self.shared.workers else {
            return;
        };
        match workers.release() {
            Some(next) if next.thread == self.thread => self.granted.push_back(next.key),
            Some(next) => self.shared.mailboxes[next.thread].post(next.key),
            None => {}
        }
    }

    /// A deadline of the connection is due; `None` when it no longer counts. `congested`: earlier
    /// output is still waiting for the kernel.
    pub fn due(
        &mut self,
        http: &mut HttpState,
        deadline: Deadline,
        congested: bool,
        out: &mut Vec<u8>,
    ) -> Option<Action> {
        if deadline.ticket != http.ticket {
            return None;
        }
        let key = deadline.key;
        let action = match http.phase {
            Phase::Stalled => self.serve(http, key, out),
            Phase::Serving => self.finish(http, key, out),
            Phase::Dripping => self.drip(http, key, deadline.due_ns, out),
            Phase::Endless => {
                // Endless for the client, bounded in this server's memory.
                if !congested {
                    self.endless(out);
                }
                self.wait(
                    http,
                    key,
                    Phase::Endless,
                    deadline.due_ns + ENDLESS_EVERY_NS,
                )
            }
            Phase::Lingering => Action::Drop,
            Phase::Reading | Phase::Queued | Phase::Streaming | Phase::Mute => return None,
        };
        Some(self.go_on(http, key, action, out))
    }
}

#[cfg(test)]
mod tests {
    use super::super::receive::testing::Bench;
    use super::*;

    #[test]
    fn an_endless_header_is_made_only_as_fast_as_it_is_taken() {
        let mut bench = Bench::new(|settings| {
            settings.set("header-endless", "1").unwrap();
        });
        assert_eq!(bench.receive(b"GET / HTTP/1.1\r\n\r\n"), Action::Hold);
        assert!(bench.sent().starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(bench.due(true), Some(Action::Hold));
        assert!(bench.sent().is_empty());
        assert_eq!(bench.due(false), Some(Action::Hold));
        assert!(bench.sent().starts_with(b"X-Endless: "));
    }

    #[test]
    fn a_deadline_that_no_longer_counts_is_passed_over() {
        let mut bench = Bench::new(|settings| {
            settings.set("delay", "1s").unwrap();
        });
        assert_eq!(bench.receive(b"GET / HTTP/1.1\r\n\r\n"), Action::Hold);
        bench.close();
        assert_eq!(bench.due(false), None);
        assert!(bench.sent().is_empty());
    }

    #[test]
    fn what_came_during_the_wait_is_answered_after_it() {
        let mut bench = Bench::new(|settings| {
            settings.set("delay", "1s").unwrap();
            settings.set("bytes", "1").unwrap();
        });
        let requests = b"GET / HTTP/1.1\r\n\r\nGET /?delay=0&bytes=2 HTTP/1.1\r\n\r\nGET /?del";
        assert_eq!(bench.receive(requests), Action::Hold);
        assert!(bench.sent().is_empty());
        assert_eq!(bench.due(false), Some(Action::Read));
        let sent = String::from_utf8(bench.sent()).unwrap();
        assert!(
            sent.contains("Content-Length: 1\r\n\r\nTHTTP/1.1 200 OK"),
            "{sent}"
        );
        assert!(sent.ends_with("Content-Length: 2\r\n\r\nTh"), "{sent}");
        assert_eq!(
            bench.receive(b"ay=0&bytes=3 HTTP/1.1\r\n\r\n"),
            Action::Read
        );
        assert!(bench.sent().ends_with(b"The"));
    }
}
