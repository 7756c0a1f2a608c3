//! How a request ends: with an answer, or without. It records what came of it and lets the user go on.

use std::io;

use super::Worker;
use super::logging::End;
use crate::fault::Fault;
use crate::http::response::Answer;
use crate::measure::counters::ErrorKind;
use crate::net::Driver;
use crate::user::NOT_SINCE;

impl<D: Driver> Worker<'_, D> {
    /// Records an answer of the step that the user is at; the mark that it reached.
    #[inline]
    pub(super) fn record_answer(&mut self, index: u32, answer: &Answer) -> Option<usize> {
        let mark = self.number_completed();
        self.request_ended();
        let user = &mut self.users[index as usize];
        self.recorder
            .completed(self.now_ns, user.sent_ns, answer.status, answer.body_bytes);
        self.count_rate(index);
        if self.parts.is_some() {
            self.record_parts(index);
        }
        if self.open.is_some() {
            self.record_latency(index);
        }
        let step = usize::from(self.users[index as usize].step);
        if !self.head_told {
            self.head_told = true;
            self.recorder.counters.first_head = self.steps[step].recent.text();
        }
        let wrong = if self.job.steps[step].judges {
            self.judge(index, answer)
        } else {
            answer.unmet.map(ErrorKind::from)
        };
        let user = &mut self.users[index as usize];
        let failed = wrong.or(answer.surplus.then_some(ErrorKind::Protocol));
        if let Some(kind) = failed {
            self.recorder.counters.fail(kind);
        }
        self.ends_iteration = failed.is_some_and(|kind| self.job.steps[step].ends(kind));
        if self.recorder.counts_steps() {
            let figure = self.job.scenarios.steps[step].figure;
            let service_ns = self.now_ns.saturating_sub(user.sent_ns);
            self.recorder
                .step_completed(figure, service_ns, answer.status, failed.is_some());
            self.scenes.spend(index, service_ns, failed.is_some());
        }
        if self.logging.is_some() {
            let end = End {
                status: Some(answer.status),
                error: failed,
                body_bytes: answer.body_bytes,
            };
            self.log_end(index, self.users[index as usize].sent_ns, end);
        }
        mark
    }

    /// What is wrong with an answer of a step for which more is asked than what is seen while it comes.
    #[inline(never)]
    fn judge(&mut self, index: u32, answer: &Answer) -> Option<ErrorKind> {
        let user = &self.users[index as usize];
        let step = usize::from(user.step);
        let mut took_ns = self.now_ns.saturating_sub(user.sent_ns);
        let mut wrong = answer.unmet.map(ErrorKind::from);
        let chain_figure = self.job.scenarios.steps[step].chain_figure;
        if chain_figure.is_some() {
            match self.follow(index, answer, self.job.steps[step].most_redirects) {
                // Expectations and captures are for the last answer.
                Ok(true) => {
                    self.keep_cookies(index);
                    return None;
                }
                Ok(false) => {}
                Err(kind) => wrong = Some(kind),
            }
            took_ns = self.chain_ns(index, took_ns);
        }
        if self.job.steps[step].looks {
            let missed = self.look(index, answer, wrong.is_none());
            wrong = wrong.or(missed);
        }
        let late = self.job.steps[step]
            .most_ns
            .is_some_and(|most_ns| took_ns > most_ns);
        wrong = wrong.or(late.then_some(ErrorKind::ExpectDuration));
        if let Some(figure) = chain_figure {
            self.recorder
                .transaction_completed(figure, took_ns, wrong.is_some());
            self.chains.drop(index);
        }
        wrong
    }

    pub(super) fn on_answer(&mut self, index: u32, answer: Answer, closed: bool) -> io::Result<()> {
        if self.answers_left(index) > 1 {
            return self.on_answer_amid(index, answer, closed);
        }
        let mark = self.record_answer(index, &answer);
        let user = &mut self.users[index as usize];
        self.recorder.cycle(user.since_ns, self.now_ns);
        user.since_ns = NOT_SINCE;
        let last = user.on_connection >= self.job.max_requests;
        let unsent = self.driver.is_sending(index) || self.scenes.holds(index);
        let unanswered = self.is_behind(index);
        if last || closed || !answer.keep_alive || unsent || unanswered {
            // Who ends it: the server when it announces or makes the end without being asked for it.
            let by_server = closed || !(answer.keep_alive || last || answer.surplus);
            self.lose_behind(index, ErrorKind::PrematureClose);
            self.close(index, !by_server);
        }
        if let Some(mark) = mark {
            self.reach_mark(mark);
        }
        if self.chains.leads(index) {
            if let Some(open) = &mut self.open {
                open.intend(index, self.now_ns);
            }
            return self.begin_request(index);
        }
        self.advance(index)
    }

    /// The step of this user's request failed.
    pub(super) fn step_failed(&mut self, index: u32) {
        let step = usize::from(self.users[index as usize].step);
        let figure = self.job.scenarios.steps[step].figure;
        self.recorder.step_failed(figure, None);
        self.chain_lost(index, None);
        self.scenes.spend(index, 0, true);
    }

    /// The same, with the time that it had: as in the totals it is kept as a sample.
    fn step_timed_out(&mut self, index: u32) {
        let user = &self.users[index as usize];
        let figure = self.job.scenarios.steps[usize::from(user.step)].figure;
        let service_ns = self.now_ns.saturating_sub(user.sent_ns);
        self.recorder.step_failed(figure, Some(service_ns));
        self.chain_lost(index, Some(service_ns));
        self.scenes.spend(index, service_ns, true);
    }

    /// A request in flight ended without an answer; its connection is of no more use.
    pub(super) fn lose(&mut self, index: u32, kind: ErrorKind, by_client: bool) -> io::Result<()> {
        if self.driver.faults().has(Fault::HiddenRetries) {
            self.recorder.unsend();
            self.close(index, by_client);
            self.connect(index);
            return Ok(());
        }
        self.record_lost(index, kind);
        self.lose_behind(index, kind);
        let user = &mut self.users[index as usize];
        self.recorder.cycle(user.since_ns, self.now_ns);
        user.since_ns = NOT_SINCE;
        self.close(index, by_client);
        self.advance(index)
    }

    /// Records that the request of the step that the user is at, which was in flight, has no answer.
    pub(super) fn record_lost(&mut self, index: u32, kind: ErrorKind) {
        self.request_ended();
        let left = self.answers_left(index);
        let user = &mut self.users[index as usize];
        self.ends_iteration = self.job.steps[usize::from(user.step)].ends(kind);
        for _ in 1..left {
            if kind == ErrorKind::Timeout {
                self.recorder.timed_out(self.now_ns, user.sent_ns);
            } else {
                self.recorder.lost(self.now_ns, kind);
            }
        }
        if kind == ErrorKind::Timeout {
            self.recorder.timed_out(self.now_ns, user.sent_ns);
            self.record_latency(index);
            self.step_timed_out(index);
        } else {
            self.recorder.lost(self.now_ns, kind);
            self.step_failed(index);
        }
        self.log_failure(index, self.users[index as usize].sent_ns, kind);
    }
}
