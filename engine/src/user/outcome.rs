//! How a request ends: with an answer, or without. It records what came of it and lets the user go on.

use super::phase::{NOT_SINCE, Phase};
use super::{Action, Users};
use crate::fault::Fault;
use crate::http::response::Answer;
use crate::measure::counters::ErrorKind;
use crate::record::{Answered, Record};
use crate::scenario::capture::Missed;

impl Users {
    /// Records the answer that came next; whether the user's iteration ends with it.
    #[inline]
    fn record_answer(
        &mut self,
        index: u32,
        answer: &Answer,
        now_ns: u64,
        record: &mut Record,
    ) -> bool {
        self.allowance.request_ended(now_ns);
        let ended = self.ended(index, self.all[index as usize].sent_ns);
        let answered = Answered {
            status: answer.status,
            body_bytes: answer.body_bytes,
        };
        let mark = record.answered(&ended, answered, now_ns);
        let place = usize::from(ended.step);
        if !self.head_noted {
            self.head_noted = true;
            record.recorder.counters.first_head = self.head_caches[place].usual.text();
        }
        let wrong = if self.job.steps[place].judges {
            self.judge(index, answer, now_ns, record)
        } else {
            answer.unmet.map(ErrorKind::from)
        };
        let failed = wrong.or(answer.surplus.then_some(ErrorKind::Protocol));
        record.judged(&ended, answered, failed, mark, now_ns);
        if record.recorder.counts_steps() {
            let service_ns = now_ns.saturating_sub(ended.start_ns);
            self.values.spend(index, service_ns, failed.is_some());
        }
        failed.is_some_and(|kind| self.job.steps[place].ends(kind))
    }

    /// What is wrong with an answer of a step for which more is asked than what is seen while it comes.
    #[inline(never)]
    fn judge(
        &mut self,
        index: u32,
        answer: &Answer,
        now_ns: u64,
        record: &mut Record,
    ) -> Option<ErrorKind> {
        let user = &self.all[index as usize];
        let step = usize::from(user.step);
        let mut took_ns = now_ns.saturating_sub(user.sent_ns);
        let mut wrong = answer.unmet.map(ErrorKind::from);
        let chain_figure = self.job.scenarios.steps[step].chain_figure;
        if chain_figure.is_some() {
            match self.follow(index, answer, now_ns, record) {
                // Expectations and captures are for the last answer.
                Ok(true) => {
                    self.remember(index, now_ns, record);
                    return None;
                }
                Ok(false) => {}
                Err(kind) => wrong = Some(kind),
            }
            took_ns = self.redirects.took_ns(index, took_ns);
        }
        if self.job.steps[step].looks {
            let missed = self.look(index, (answer.status, wrong.is_none()), now_ns, record);
            wrong = wrong.or(missed);
        }
        let late = self.job.steps[step]
            .most_ns
            .is_some_and(|most_ns| took_ns > most_ns);
        wrong = wrong.or(late.then_some(ErrorKind::ExpectDuration));
        if let Some(figure) = chain_figure {
            record
                .recorder
                .transaction_completed(figure, took_ns, wrong.is_some());
            self.redirects.drop(index);
        }
        wrong
    }

    /// Keeps what the answer that was captured gives the user besides values.
    fn remember(&mut self, index: u32, now_ns: u64, record: &mut Record) {
        let unix_ns = self.unix_ns(now_ns);
        let step = usize::from(self.all[index as usize].step);
        let front = self
            .queues
            .as_ref()
            .and_then(|queues| queues.of(index).front());
        let target = front.and_then(|pending| pending.target.as_deref());
        if let Some(look) = self.job.scenarios.steps[step].look.as_ref() {
            let dropped = look.remember(&self.captured, target, self.values.vars(index, unix_ns));
            record.recorder.counters.cookies_dropped += dropped;
        }
    }

    /// Takes what the step wants from the answer that was captured, `right` as far as is known;
    /// what was wrong with it.
    #[inline(never)]
    fn look(
        &mut self,
        index: u32,
        (status, right): (u16, bool),
        now_ns: u64,
        record: &mut Record,
    ) -> Option<ErrorKind> {
        if self.job.script.is_some() {
            self.show_script(index, status, record);
            return None;
        }
        self.remember(index, now_ns, record);
        let step = usize::from(self.all[index as usize].step);
        let look = self.job.scenarios.steps[step].look.as_ref()?;
        let shared = &self.job.scenarios.shared;
        let vars = self.values.vars(index, self.unix_ns(now_ns));
        let missed = look.take(&self.captured, right, shared, vars, &mut self.rng);
        if !self.job.scenarios.reported.is_empty() {
            self.job.scenarios.reported.keep(vars);
        }
        missed.map(|missed| match missed {
            Missed::Expectation => ErrorKind::ExpectBody,
            Missed::Capture => ErrorKind::Capture,
        })
    }

    /// An answer with others behind it.
    pub(super) fn on_answer_amid(
        &mut self,
        index: u32,
        answer: Answer,
        now_ns: u64,
        record: &mut Record,
    ) {
        // What ends an iteration is the last of its group.
        let _ = self.record_answer(index, &answer, now_ns, record);
        self.expect_next(index);
        record.begin_parts(index);
    }

    /// The request that was answered next has ended; whether there is one behind it.
    fn expect_next(&mut self, index: u32) -> bool {
        let next = self.queues.as_mut().and_then(|queues| queues.pop(index));
        if let Some(next) = next {
            self.all[index as usize].step = next.step;
        }
        next.is_some()
    }

    /// The last answer that comes for now. `closed`: the server has ended the connection;
    /// `sending`: not all of what was sent has been taken.
    pub(super) fn on_answer(
        &mut self,
        index: u32,
        answer: Answer,
        (closed, sending): (bool, bool),
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        let mut breaks_off = self.record_answer(index, &answer, now_ns, record);
        let behind = self.expect_next(index);
        let unsent = sending || self.holds(index);
        let user = &mut self.all[index as usize];
        record.recorder.cycle(user.since_ns, now_ns);
        user.since_ns = NOT_SINCE;
        let last = user.on_connection >= self.job.max_requests;
        let closes = last || closed || !answer.keep_alive || unsent || behind;
        if closes {
            // Who ends it: the server when it announces or makes the end without being asked for it.
            let by_server = closed || !(answer.keep_alive || last || answer.surplus);
            if behind {
                breaks_off = self.lose_rest(index, ErrorKind::PrematureClose, now_ns, record);
            }
            self.close(index, !by_server, record);
        }
        if self.redirects.leads(index) {
            self.intend(index, now_ns);
            return self.begin_request(index, now_ns, record).closing(closes);
        }
        self.advance(index, breaks_off, now_ns, record)
            .closing(closes)
    }

    /// What was in flight ends without an answer; the connection is of no more use.
    pub(super) fn lose(
        &mut self,
        index: u32,
        kind: ErrorKind,
        by_client: bool,
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        if self.surroundings.faults.has(Fault::HiddenRetries) {
            return self.retry(index, by_client, now_ns, record);
        }
        let breaks_off = self.lose_rest(index, kind, now_ns, record);
        let user = &mut self.all[index as usize];
        record.recorder.cycle(user.since_ns, now_ns);
        user.since_ns = NOT_SINCE;
        self.close(index, by_client, record);
        self.advance(index, breaks_off, now_ns, record)
            .closing(true)
    }

    /// Records the loss of all requests that have no answer. The user is then at the last of them;
    /// whether its iteration ends with it.
    fn lose_rest(&mut self, index: u32, kind: ErrorKind, now_ns: u64, record: &mut Record) -> bool {
        loop {
            let breaks_off = self.record_lost(index, kind, now_ns, record);
            if !self.expect_next(index) {
                return breaks_off;
            }
        }
    }

    /// Records that the request that is answered next, which was in flight, has no answer; whether
    /// the iteration ends with it.
    fn record_lost(
        &mut self,
        index: u32,
        kind: ErrorKind,
        now_ns: u64,
        record: &mut Record,
    ) -> bool {
        self.allowance.request_ended(now_ns);
        let ended = self.ended(index, self.all[index as usize].sent_ns);
        record.lost(&ended, kind, now_ns);
        let timed_out = kind == ErrorKind::Timeout;
        let service_ns = timed_out.then(|| now_ns.saturating_sub(ended.start_ns));
        self.chain_lost(index, service_ns, record);
        self.values.spend(index, service_ns.unwrap_or(0), true);
        self.job.steps[usize::from(ended.step)].ends(kind)
    }

    /// What was in flight is denied ever to have been sent, and sent again ([`Fault::HiddenRetries`]).
    #[cold]
    fn retry(&mut self, index: u32, by_client: bool, now_ns: u64, record: &mut Record) -> Action {
        record.recorder.unsend();
        while self.expect_next(index) {
            record.recorder.unsend();
            self.allowance.drop_one();
        }
        self.close(index, by_client, record);
        self.connect(index, now_ns, record).closing(true)
    }

    /// A connection without a request under way was lost.
    pub(super) fn lose_idle(
        &mut self,
        index: u32,
        by_client: bool,
        now_ns: u64,
        record: &mut Record,
    ) -> Action {
        let was_open = self.close(index, by_client, record);
        match self.all[index as usize].phase {
            // Closed before the request went out: no request was harmed.
            Phase::Queued => self.connect(index, now_ns, record).closing(true),
            Phase::Idle if was_open => self.cool(index, now_ns).closing(true),
            _ => Action::STAY.closing(true),
        }
    }
}
