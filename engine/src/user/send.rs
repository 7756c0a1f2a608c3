//! What a user sends when its turn has come: one request, or with pipelining and scripts several in
//! one piece, as far as they do not depend on a response that has not come.

use super::moves::Move;
use super::phase::Phase;
use super::queue::Pending;
use super::{Action, Context, Users};
use crate::job::WRITTEN_ANEW;
use crate::payload::{Outgoing, Payload};
use crate::record::Record;
use crate::scenario::request::target_of;

/// A server that does not know `Expect` says nothing: the body then goes out (RFC 9110, 10.1.1).
const LONGEST_HELD_NS: u64 = 1_000_000_000;

impl Users {
    /// The requests of a user whose turn has come. The error: what to do instead.
    #[inline]
    pub fn write(
        &mut self,
        index: u32,
        spare: impl FnOnce() -> Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Result<Payload, Action> {
        if self.is_lane(index) {
            return self.on_lane(index, |users| users.write_next(index, spare, cx));
        }
        self.write_next(index, spare, cx)
    }

    #[inline]
    fn write_next(
        &mut self,
        index: u32,
        spare: impl FnOnce() -> Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Result<Payload, Action> {
        let user = &mut self.all[index as usize];
        if user.phase != Phase::Queued {
            // Its connection was lost while it waited.
            return Err(Action::Stay);
        }
        if self.queues.is_some() {
            return self.write_group(index, spare(), cx);
        }
        user.on_connection = user.on_connection.saturating_add(1);
        let last = user.on_connection >= self.job.max_requests;
        let fixed = self.job.steps[usize::from(user.step)].request(last);
        if fixed == WRITTEN_ANEW {
            let step = user.step;
            return Ok(self.write_alone(index, (step, last), spare(), cx));
        }
        let bytes = self.job.fixed[fixed as usize].len() as u64;
        cx.record.writes(index, bytes, None);
        Ok(Payload::Fixed(fixed))
    }

    /// Writes a request that goes out by itself; its body may follow later.
    #[inline(never)]
    fn write_alone(
        &mut self,
        index: u32,
        (step, last): (u16, bool),
        spare: Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Payload {
        let outgoing = self.write_anew(index, step, last, spare, cx.now_ns);
        let step = usize::from(step);
        self.count_url(step, outgoing.bytes(), cx.record);
        let now = if self.job.scenarios.steps[step].request.expects_continue() {
            let (head, body) = outgoing.split_at_empty_line();
            self.held.insert(index, body);
            head
        } else {
            outgoing
        };
        cx.record.writes(index, now.wire_bytes(), Some(now.bytes()));
        Payload::Owned(now)
    }

    /// Counts the target of a request whose path takes values of a feeder.
    fn count_url(&self, step: usize, written: &[u8], record: &mut Record) {
        let step = &self.job.scenarios.steps[step];
        if let (Some(rows), Some(target)) = (step.rows, target_of(written)) {
            record.counters().urls.count(step.figure, rows, target);
        }
    }

    fn write_anew(
        &mut self,
        index: u32,
        step: u16,
        last: bool,
        spare: Vec<u8>,
        now_ns: u64,
    ) -> Outgoing {
        let step = usize::from(step);
        if self.job.scenarios.steps[step].chain_figure.is_some() {
            self.write_followed(index, step, last, spare, now_ns)
        } else {
            self.write_request(index, (step, last), None, spare, now_ns)
        }
    }

    /// Writes the next requests in one piece. The first has its place in the quota.
    fn write_group(
        &mut self,
        index: u32,
        mut bytes: Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Result<Payload, Action> {
        bytes.clear();
        let mut step = self.all[index as usize].step;
        loop {
            if self.job.script.is_some() {
                match self.write_batch(index, step, &mut bytes, cx.record) {
                    Ok(None) => {}
                    Ok(Some(fixed)) => return Ok(Payload::Fixed(fixed)),
                    Err(why) if self.unanswered(index) == 0 => {
                        self.allowance.drop_one();
                        return Err(self.sends_nothing(index, why, cx));
                    }
                    Err(_) => {
                        self.allowance.give_back();
                        break;
                    }
                }
            } else if self.job.steps[usize::from(step)].alone {
                if self.unanswered(index) == 0 {
                    let last = self.counts_on_connection(index);
                    let payload = self.write_alone(index, (step, last), bytes, cx);
                    self.wait_for(index, step, &[]);
                    return Ok(payload);
                }
                self.hold_back(index, Move::To { step, pause_ns: 0 });
                break;
            } else {
                self.write_behind(index, step, &mut bytes, cx);
            }
            if !self.has_room(index, step) || !self.allowance.take(&self.job.quota) {
                break;
            }
            match self.next_move(index, false, cx) {
                Move::To {
                    step: next,
                    pause_ns: 0,
                } => step = next,
                Move::Waits => {
                    self.allowance.give_back();
                    break;
                }
                later => {
                    self.hold_back(index, later);
                    break;
                }
            }
        }
        Ok(Payload::bytes(bytes))
    }

    /// A request is written for the present connection; whether it is the last of it.
    pub(super) fn counts_on_connection(&mut self, index: u32) -> bool {
        let user = &mut self.all[index as usize];
        user.on_connection = user.on_connection.saturating_add(1);
        user.on_connection >= self.job.max_requests
    }

    /// Whether a request may go out behind the last that was written, of this step.
    fn has_room(&self, index: u32, step: u16) -> bool {
        let step = &self.job.steps[usize::from(step)];
        let delays = self.job.script.as_ref().is_some_and(|script| script.delays);
        !step.ends_group
            && !delays
            && self.unanswered(index) < self.job.pipeline
            && self.all[index as usize].on_connection < self.job.max_requests
    }

    /// What was found to come next goes out later, when the requests before it have been answered.
    fn hold_back(&mut self, index: u32, next: Move) {
        self.allowance.give_back();
        if let Some(queues) = &mut self.queues {
            queues.decide(index, next);
        }
    }

    /// Writes the request of a step behind the others of its group.
    fn write_behind(&mut self, index: u32, step: u16, bytes: &mut Vec<u8>, cx: &mut Context<'_>) {
        let last = self.counts_on_connection(index);
        let from = bytes.len();
        let fixed = self.job.steps[usize::from(step)].request(last);
        if fixed == WRITTEN_ANEW {
            let written = self.write_anew(index, step, last, Vec::new(), cx.now_ns);
            self.count_url(usize::from(step), written.bytes(), cx.record);
            bytes.extend_from_slice(written.bytes());
        } else {
            bytes.extend_from_slice(&self.job.fixed[fixed as usize]);
        }
        let written = &bytes[from..];
        let anew = (fixed == WRITTEN_ANEW).then_some(written);
        let count = written.len() as u64;
        if self.unanswered(index) == 0 {
            cx.record.writes(index, count, anew);
        } else {
            cx.record.writes_behind(index, count, anew);
            if self.open.is_some() {
                cx.counters().offered += 1;
            }
        }
        self.wait_for(index, step, written);
    }

    /// A request was written whose response comes behind those to the others.
    pub(super) fn wait_for(&mut self, index: u32, step: u16, written: &[u8]) {
        let look = &self.job.scenarios.steps[usize::from(step)].look;
        let remembers = look.as_ref().is_some_and(|look| look.remembers());
        let target = remembers.then(|| target_of(written)).flatten();
        if let Some(queues) = &mut self.queues {
            let pending = Pending {
                step,
                head: None,
                target: target.map(Into::into),
            };
            queues.push(index, pending);
        }
    }

    /// How many requests of a user were written, or sent, and are not answered.
    #[inline]
    pub(super) fn unanswered(&self, index: u32) -> u32 {
        match &self.queues {
            None => u32::from(self.all[index as usize].phase == Phase::InFlight),
            Some(queues) => queues.of(index).len() as u32,
        }
    }

    /// What a user has written was handed over, at that time. The time of its timer, and whether a
    /// body waits for that: then the timer must not come later.
    #[inline]
    pub fn sent(&mut self, index: u32, at_ns: u64, record: &mut Record) -> (u64, bool) {
        let count = match &self.queues {
            None => 1,
            Some(queues) => queues.of(index).len() as u32,
        };
        for _ in 0..count {
            self.in_flight.begin(at_ns);
        }
        let user = &mut self.all[index as usize];
        user.sent_ns = at_ns;
        let was_open = user.connecting_ns().is_none();
        record.sent(index, user.address, count, at_ns);
        user.enter(Phase::InFlight, at_ns, &mut record.recorder);
        if was_open {
            self.record_send_lag(index, at_ns, record);
        }
        let limit_ns = self.limit_ns(index, at_ns + self.job.request_timeout_ns);
        match self.holds(index) {
            true => (limit_ns.min(at_ns + LONGEST_HELD_NS), true),
            false => (limit_ns, false),
        }
    }

    /// The request of a place was sent, or its connection begun where none was ready.
    #[inline]
    pub(super) fn record_send_lag(&self, index: u32, at_ns: u64, record: &mut Record) {
        let Some(open) = &self.open else { return };
        let intended_ns = open.intended_ns[index as usize];
        let lag_ns = at_ns.saturating_sub(intended_ns);
        record.recorder.figures.open_load.send_lag.record(lag_ns);
        let arrived_ns = open.arrived_ns.get(index as usize);
        if arrived_ns.is_none_or(|arrived_ns| *arrived_ns == intended_ns) {
            record.arrival_sent(at_ns);
        }
    }

    /// Whether a body waits.
    #[inline]
    pub(super) fn holds(&self, index: u32) -> bool {
        !self.held.is_empty() && self.held.contains_key(&index)
    }

    /// The body that waited: the server asked for it, or said nothing for long enough.
    pub fn take_held(&mut self, index: u32, record: &mut Record) -> Option<Payload> {
        let body = self.held.remove(&index)?;
        record.writes(index, body.wire_bytes(), None);
        // What has come so far only asked for the body.
        record.begin_parts(index);
        Some(Payload::Owned(body))
    }
}
