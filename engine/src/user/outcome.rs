//! How a request ends: with a response, or without; and what is recorded of it.

use super::phase::Phase;
use super::{Action, Context, Users};
use crate::fault::Fault;
use crate::http::response::Response;
use crate::measure::counters::ErrorKind;
use crate::plan::Close;
use crate::record::Answered;
use crate::scenario::capture::Missed;
use crate::scenario::capture_source::MAX_VALUE_BYTES;

/// Then the client closes.
const LONGEST_CLOSING_NS: u64 = 1_000_000_000;

impl Users {
    /// Records the response that came next; whether the user's iteration ends with it.
    #[inline]
    pub(super) fn record_response(
        &mut self,
        index: u32,
        response: &Response,
        cx: &mut Context<'_>,
    ) -> bool {
        self.allowance.request_ended(cx.now_ns);
        let ended = self.ended(index, self.all[index as usize].sent_ns);
        let answered = Answered {
            status: response.status,
            body_bytes: response.body_bytes,
        };
        let mark = cx.record.answered(&ended, answered, cx.now_ns);
        let place = usize::from(ended.step);
        if !self.head_noted {
            let (_, head) = self.expected(index);
            let text = self.head_caches[place].of(head).text();
            self.head_noted = text.is_some();
            cx.counters().first_head = text;
        }
        let wrong = if self.job.steps[place].judges {
            self.judge(index, response, cx)
        } else {
            response.unmet.map(ErrorKind::from)
        };
        let failed = wrong.or(response.surplus.then_some(ErrorKind::Protocol));
        if let Some(digest) = self.sampled.take()
            && failed.is_none()
            && response.status / 100 == 2
        {
            let step = self.job.scenarios.steps[place].figure;
            cx.counters().bodies.count(step, Some(digest), 1);
        }
        cx.record.judged(&ended, answered, failed, mark, cx.now_ns);
        if cx.record.recorder.counts_steps() {
            let service_ns = cx.now_ns.saturating_sub(ended.start_ns);
            self.values.spend(index, service_ns, failed.is_some());
        }
        failed.is_some_and(|kind| self.job.steps[place].ends(kind))
    }

    /// What is wrong with a response of a step for which its end alone shows that.
    #[inline(never)]
    fn judge(
        &mut self,
        index: u32,
        response: &Response,
        cx: &mut Context<'_>,
    ) -> Option<ErrorKind> {
        let user = &self.all[index as usize];
        let step = usize::from(user.step);
        let mut took_ns = cx.now_ns.saturating_sub(user.sent_ns);
        let mut wrong = response.unmet.map(ErrorKind::from);
        let chain_figure = self.job.scenarios.steps[step].chain_figure;
        if chain_figure.is_some() {
            match self.follow(index, response, cx) {
                // Expectations and captures are for the last response.
                Ok(true) => {
                    self.remember(index, cx);
                    return None;
                }
                Ok(false) => {}
                Err(kind) => wrong = Some(kind),
            }
            took_ns = self.redirects.took_ns(index, took_ns);
        }
        if self.job.steps[step].looks {
            let missed = self.capture(index, (response.status, wrong.is_none()), cx);
            wrong = wrong.or(missed);
        }
        let late = self.job.steps[step]
            .max_ns
            .is_some_and(|max_ns| took_ns > max_ns);
        wrong = wrong.or(late.then_some(ErrorKind::ExpectDuration));
        if let Some(figure) = chain_figure {
            let recorder = &mut cx.record.recorder;
            recorder.transaction_completed(figure, took_ns, wrong.is_some());
            self.redirects.drop(index);
        }
        if let Some(responses) = &self.job.responses {
            let failed = wrong.or(response.surplus.then_some(ErrorKind::Protocol));
            let times = (took_ns, cx.now_ns);
            responses.keep(step, response, failed, times, &self.captured);
        }
        wrong
    }

    /// Keeps what the response that was captured gives the user besides values.
    fn remember(&mut self, index: u32, cx: &mut Context<'_>) {
        let unix_ns = self.unix_ns(cx.now_ns);
        let step = usize::from(self.all[index as usize].step);
        let front = self
            .queues
            .as_ref()
            .and_then(|queues| queues.of(index).front());
        let target = front.and_then(|pending| pending.target.as_deref());
        if let Some(look) = self.job.scenarios.steps[step].look.as_ref() {
            let dropped = look.remember(&self.captured, target, self.values.vars(index, unix_ns));
            cx.counters().cookies_dropped += dropped;
        }
    }

    /// Takes what the step wants from the response, `right` so far; what was wrong with it.
    #[inline(never)]
    fn capture(
        &mut self,
        index: u32,
        (status, right): (u16, bool),
        cx: &mut Context<'_>,
    ) -> Option<ErrorKind> {
        if self.job.script.is_some() {
            self.show_script(index, status, cx.record);
            return None;
        }
        self.remember(index, cx);
        let step = usize::from(self.all[index as usize].step);
        let look = self.job.scenarios.steps[step].look.as_ref()?;
        let shared = &self.job.scenarios.shared;
        let vars = self.values.vars(index, self.unix_ns(cx.now_ns));
        let missed = look.take(&self.captured, right, shared, vars, &mut self.rng);
        if !self.job.scenarios.reported.is_empty() {
            self.job.scenarios.reported.keep(vars);
        }
        missed.map(|missed| match missed {
            Missed::Head => ErrorKind::ExpectHeader,
            Missed::Expectation => ErrorKind::ExpectBody,
            Missed::Capture => ErrorKind::Capture,
            Missed::TooLong => {
                let reason = format!("a captured value has more than {MAX_VALUE_BYTES} bytes");
                let counters = cx.counters();
                counters.explain(ErrorKind::Capture, reason);
                ErrorKind::Capture
            }
        })
    }

    /// The request that was answered next has ended; whether there is one behind it.
    #[inline]
    pub(super) fn expect_next(&mut self, index: u32) -> bool {
        self.in_flight.forget(self.all[index as usize].sent_ns);
        let Some(queues) = &mut self.queues else {
            return false;
        };
        let next = queues.pop(index);
        if let Some(next) = next {
            self.all[index as usize].step = next.step;
        }
        next.is_some()
    }

    /// The last response that comes for now. `closed`: the server has ended the connection;
    /// `sending`: not all of what was sent has been taken.
    #[inline]
    pub(super) fn on_response(
        &mut self,
        index: u32,
        response: Response,
        (closed, sending): (bool, bool),
        cx: &mut Context<'_>,
    ) -> Action {
        let mut breaks_off = self.record_response(index, &response, cx);
        let behind = self.expect_next(index);
        let unsent = sending || self.holds(index);
        let user = &self.all[index as usize];
        let last = user.on_connection >= self.job.max_requests;
        let closes = last || closed || !response.keep_alive || unsent || behind;
        if closes {
            // Who ends it: the server when it announces or makes the end without being asked for it.
            let by_server = closed || !(response.keep_alive || last || response.surplus);
            if behind {
                breaks_off = self.lose_rest(index, ErrorKind::PrematureClose, cx);
            }
            if self.job.close == Close::Wait && !(closed || unsent || behind || breaks_off) {
                self.enter(index, Phase::Closing, cx);
                return Action::WaitUntil(cx.now_ns + LONGEST_CLOSING_NS);
            }
            self.close(index, !by_server, cx.record);
        }
        self.go_on(index, breaks_off, cx)
    }

    /// What was in flight ends without a response; the connection is of no more use.
    pub(super) fn lose(
        &mut self,
        index: u32,
        kind: ErrorKind,
        by_client: bool,
        cx: &mut Context<'_>,
    ) -> Action {
        if self.surroundings.faults.has(Fault::HiddenRetries) {
            return self.retry(index, by_client, cx);
        }
        let breaks_off = self.lose_rest(index, kind, cx);
        self.close(index, by_client, cx.record);
        self.go_on(index, breaks_off, cx)
    }

    /// The request under way ended without a response, or none can be sent; the connection stays.
    #[cold]
    pub(super) fn on_lost(
        &mut self,
        index: u32,
        kind: ErrorKind,
        reason: String,
        cx: &mut Context<'_>,
    ) -> Action {
        cx.counters().explain(kind, reason);
        match self.all[index as usize].phase {
            Phase::InFlight => {
                let breaks_off = self.lose_rest(index, kind, cx);
                self.all[index as usize].reader.reset();
                self.go_on(index, breaks_off, cx)
            }
            Phase::Connecting | Phase::Warming => self.fail_to_connect(index, kind, cx),
            _ => Action::Stay,
        }
    }

    /// Records the loss of all requests that have no response. The user is then at the last of them;
    /// whether its iteration ends with it.
    fn lose_rest(&mut self, index: u32, kind: ErrorKind, cx: &mut Context<'_>) -> bool {
        loop {
            let breaks_off = self.record_lost(index, kind, cx);
            if !self.expect_next(index) {
                return breaks_off;
            }
        }
    }

    /// Records that the request answered next has no response; whether the iteration ends.
    fn record_lost(&mut self, index: u32, kind: ErrorKind, cx: &mut Context<'_>) -> bool {
        self.allowance.request_ended(cx.now_ns);
        let ended = self.ended(index, self.all[index as usize].sent_ns);
        cx.record.lost(&ended, kind, cx.now_ns);
        let timed_out = kind == ErrorKind::Timeout;
        let service_ns = timed_out.then(|| cx.now_ns.saturating_sub(ended.start_ns));
        self.chain_lost(index, service_ns, cx.record);
        self.values.spend(index, service_ns.unwrap_or(0), true);
        self.job.steps[usize::from(ended.step)].ends(kind)
    }

    /// What was in flight is denied ever to have been sent, and sent again ([`Fault::HiddenRetries`]).
    #[cold]
    fn retry(&mut self, index: u32, by_client: bool, cx: &mut Context<'_>) -> Action {
        let sent_ns = self.all[index as usize].sent_ns;
        cx.record.recorder.unsend(cx.now_ns, sent_ns);
        while self.expect_next(index) {
            cx.record.recorder.unsend(cx.now_ns, sent_ns);
            self.allowance.drop_one();
        }
        self.close(index, by_client, cx.record);
        let user = &mut self.all[index as usize];
        // The time that it took is denied too.
        user.deny(cx.now_ns, &mut cx.record.recorder);
        user.connects(cx.now_ns);
        self.connect(index, cx)
    }

    /// A connection without a request under way was lost.
    pub(super) fn lose_idle(
        &mut self,
        index: u32,
        by_client: bool,
        cx: &mut Context<'_>,
    ) -> Action {
        self.close(index, by_client, cx.record);
        match self.all[index as usize].phase {
            Phase::Closing => self.go_on(index, false, cx),
            // Closed before the request went out: no request was harmed.
            Phase::Queued => self.connect(index, cx),
            Phase::Ready => self.schedule_reconnect(index, cx.now_ns),
            _ => Action::Stay,
        }
    }
}
