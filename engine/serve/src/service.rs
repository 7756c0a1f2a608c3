//! The middle of the machine, between a request that was read and its answer: fate, queue, stall, work and delay.
//! Sans-io like `exchange`; it knows nothing of bytes.

use std::rc::Rc;

use super::cases::Place;
use super::clock;
use super::draw::Fate;
use super::machine::{Exchange, Machine, Pending, Phase, Step};
use super::respond::ENDLESS_EVERY_NS;
use super::timers::Deadline;
use super::workers::Waiting;

impl Machine {
    /// A whole request is there: counts it and decides its fate.
    pub(super) fn begin(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        mut pending: Pending,
        out: &mut Vec<u8>,
    ) -> Step {
        if pending.place == Place::Stats {
            self.counters.stats_requests.add(1);
            return self.answer(exchange, key, pending, out);
        }
        self.counters.requests.add(1);
        if pending.refusal.is_some() {
            return self.answer(exchange, key, pending, out);
        }
        let case = &pending.case;
        if case.troubled {
            pending.fate = self.dice.fate(&case.settings.shares);
            if pending.fate == Fate::Truncate && Self::is_bodiless(exchange, &pending) {
                pending.fate = Fate::Answer;
            }
        }
        let at_once = self.unhindered && case.immediate;
        if at_once || (pending.fate == Fate::Error && case.settings.errors_fast) {
            return self.answer(exchange, key, pending, out);
        }
        exchange.detail().pending = Some(pending);
        if let Some(workers) = &self.shared.workers {
            if !workers.acquire(Waiting {
                thread: self.thread,
                key,
            }) {
                exchange.phase = Phase::Queued;
                return Step::Hold;
            }
            exchange.has_worker = true;
        }
        self.admit(exchange, key, out)
    }

    /// Whether the answer has nothing that could be cut.
    fn is_bodiless(exchange: &Exchange, pending: &Pending) -> bool {
        let echo = exchange
            .detail
            .as_ref()
            .map_or(0, |detail| detail.echo.len());
        pending.head_only || (pending.place == Place::Echo && echo == 0)
    }

    /// The connection was given the worker it waited for.
    pub fn grant(&mut self, exchange: &mut Exchange, key: u64, out: &mut Vec<u8>) -> Step {
        exchange.has_worker = true;
        let step = self.admit(exchange, key, out);
        self.go_on(exchange, key, step, out)
    }

    /// Begins the service, after the stall if there is one.
    fn admit(&mut self, exchange: &mut Exchange, key: u64, out: &mut Vec<u8>) -> Step {
        if let Some(stall) = &self.shared.script.stall {
            let now_ns = self.shared.clock.now_ns();
            let release_ns = stall.release_ns(now_ns);
            if release_ns > now_ns {
                return self.wait(exchange, key, Phase::Stalled, release_ns);
            }
        }
        self.serve(exchange, key, out)
    }

    /// Works, then waits for as long as the answer is to be delayed.
    fn serve(&mut self, exchange: &mut Exchange, key: u64, out: &mut Vec<u8>) -> Step {
        let Some(case) = exchange
            .detail()
            .pending
            .as_ref()
            .map(|pending| Rc::clone(&pending.case))
        else {
            return Step::Drop;
        };
        let script = &self.shared.script;
        let begin_ns = self.shared.clock.now_ns();
        if case.settings.work_ns > 0 {
            let work_ns = (case.settings.work_ns as f64 * script.work_factor(begin_ns)) as u64;
            clock::burn(work_ns, &self.shared.stop);
            if self.shared.is_stopped() {
                // The work was not finished, so that there is nothing to answer.
                return Step::Hold;
            }
        }
        let now_ns = self.shared.clock.now_ns();
        let drawn_ns =
            self.dice.delay_ns(&case.settings.delay) as f64 * script.delay_factor(begin_ns);
        // The delay counts from the end of the work, as waiting for a backend does.
        let due_ns = now_ns + drawn_ns as u64;
        let due_ns = script
            .stall
            .as_ref()
            .map_or(due_ns, |stall| stall.release_ns(due_ns));
        if due_ns > now_ns {
            return self.wait(exchange, key, Phase::Serving, due_ns);
        }
        self.finish(exchange, key, out)
    }

    pub(super) fn wait(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        phase: Phase,
        due_ns: u64,
    ) -> Step {
        exchange.phase = phase;
        exchange.ticket = exchange.ticket.wrapping_add(1);
        self.timers.arm(Deadline {
            due_ns,
            key,
            ticket: exchange.ticket,
        });
        Step::Hold
    }

    /// The service is over: the worker goes back, the answer goes out.
    fn finish(&mut self, exchange: &mut Exchange, key: u64, out: &mut Vec<u8>) -> Step {
        self.release_worker(exchange);
        exchange.phase = Phase::Reading;
        match exchange.detail().pending.take() {
            Some(pending) => self.answer(exchange, key, pending, out),
            None => Step::Drop,
        }
    }

    pub(super) fn release_worker(&mut self, exchange: &mut Exchange) {
        if !std::mem::take(&mut exchange.has_worker) {
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

    /// A deadline of the connection is due; `None` when it no longer counts. `congested`: the kernel has not yet taken
    /// all that was made before.
    pub fn due(
        &mut self,
        exchange: &mut Exchange,
        deadline: Deadline,
        congested: bool,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        if deadline.ticket != exchange.ticket {
            return None;
        }
        let key = deadline.key;
        let step = match exchange.phase {
            Phase::Stalled => self.serve(exchange, key, out),
            Phase::Serving => self.finish(exchange, key, out),
            Phase::Dripping => self.drip(exchange, key, deadline.due_ns, out),
            Phase::Endless => {
                // Endless for the client, not for this server's memory.
                if !congested {
                    self.endless(out);
                }
                self.wait(
                    exchange,
                    key,
                    Phase::Endless,
                    deadline.due_ns + ENDLESS_EVERY_NS,
                )
            }
            Phase::Lingering => Step::Drop,
            Phase::Reading | Phase::Queued | Phase::Streaming | Phase::Mute => return None,
        };
        Some(self.go_on(exchange, key, step, out))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::testing::Bench;
    use super::*;

    #[test]
    fn an_endless_header_is_made_only_as_fast_as_it_is_taken() {
        let mut bench = Bench::new(|settings| {
            settings.set("header-endless", "1").unwrap();
        });
        assert_eq!(bench.receive(b"GET / HTTP/1.1\r\n\r\n"), Step::Hold);
        assert!(bench.sent().starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(bench.due(true), Some(Step::Hold));
        assert!(bench.sent().is_empty());
        assert_eq!(bench.due(false), Some(Step::Hold));
        assert!(bench.sent().starts_with(b"X-Endless: "));
    }

    #[test]
    fn a_deadline_that_no_longer_counts_is_passed_over() {
        let mut bench = Bench::new(|settings| {
            settings.set("delay", "1s").unwrap();
        });
        assert_eq!(bench.receive(b"GET / HTTP/1.1\r\n\r\n"), Step::Hold);
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
        assert_eq!(bench.receive(requests), Step::Hold);
        assert!(bench.sent().is_empty());
        assert_eq!(bench.due(false), Some(Step::Read));
        let sent = String::from_utf8(bench.sent()).unwrap();
        assert!(
            sent.contains("Content-Length: 1\r\n\r\nTHTTP/1.1 200 OK"),
            "{sent}"
        );
        assert!(sent.ends_with("Content-Length: 2\r\n\r\nTh"), "{sent}");
        assert_eq!(bench.receive(b"ay=0&bytes=3 HTTP/1.1\r\n\r\n"), Step::Read);
        assert!(bench.sent().ends_with(b"The"));
    }
}
