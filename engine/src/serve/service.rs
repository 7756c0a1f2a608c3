//! The middle of the machine, between a request that was read and its answer: fate, queue, stall, work and delay.
//! Sans-io like `exchange`; it knows nothing of bytes.

use std::rc::Rc;

use super::cases::Place;
use super::clock;
use super::draw::Fate;
use super::exchange::{Exchange, Machine, Pending, Phase, Step};
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
            clock::burn((case.settings.work_ns as f64 * script.work_factor(begin_ns)) as u64);
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

    /// A deadline of the connection is due; `None` when it no longer counts.
    pub fn due(
        &mut self,
        exchange: &mut Exchange,
        deadline: Deadline,
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
                self.endless(out);
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
