//! Users of a script: each belongs to a thread of the script, which is a step of the plan. What it
//! returns may be several requests, which go out in one batch.

use std::sync::Arc;

use super::queue::Pending;
use super::{Action, Context, Users};
use crate::record::Record;
use crate::script::BatchedRequest;

/// A user whose script has nothing to send asks again after a day, connected until the end.
const NOTHING_NS: u64 = 24 * 3_600 * 1_000_000_000;

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// The script returned no request.
    Nothing,
    /// The script made an error, which it keeps.
    Failed,
}

impl Users {
    /// Writes what the script has to send behind the rest, or says which fixed bytes are all of it.
    pub(super) fn write_batch(
        &mut self,
        index: u32,
        thread: u16,
        bytes: &mut Vec<u8>,
        record: &mut Record,
    ) -> Result<Option<u32>, Unwritten> {
        let job = Arc::clone(&self.job);
        let Some(script) = &job.script else {
            return Err(Unwritten::Failed);
        };
        let called;
        let (batch, requests) = match script.fixed(usize::from(thread)) {
            Some(fixed) => fixed,
            None => match script.request(usize::from(thread)) {
                Ok(written) => {
                    called = written;
                    &called
                }
                Err(sentence) => {
                    script.fail(sentence);
                    record.script_failed();
                    return Err(Unwritten::Failed);
                }
            },
        };
        if requests.is_empty() {
            return Err(Unwritten::Nothing);
        }
        let alone = bytes.is_empty();
        let mut from = 0;
        for (number, request) in requests.iter().enumerate() {
            // The first has its place in the quota; the total of requests may end amid a batch.
            if number > 0 && !self.allowance.take(&job.quota) {
                break;
            }
            self.counts_on_connection(index);
            self.write_of_batch(index, thread, request, &batch[from..request.end], record);
            from = request.end;
        }
        let fixed = job.steps[usize::from(thread)].request(false);
        if alone
            && from == batch.len()
            && job.pipeline == 1
            && script.fixed(usize::from(thread)).is_some()
        {
            return Ok(Some(fixed));
        }
        bytes.extend_from_slice(&batch[..from]);
        Ok(None)
    }

    fn write_of_batch(
        &mut self,
        index: u32,
        thread: u16,
        request: &BatchedRequest,
        written: &[u8],
        record: &mut Record,
    ) {
        let count = written.len() as u64;
        if self.unanswered(index) == 0 {
            record.writes(index, count, Some(written));
        } else {
            record.writes_behind(index, count, Some(written));
            if self.open.is_some() {
                record.counters().offered += 1;
            }
        }
        if let Some(queues) = &mut self.queues {
            let pending = Pending {
                step: thread,
                head: Some(request.head),
                target: None,
            };
            queues.push(index, pending);
        }
    }

    /// Nothing was written for a user whose place in the quota is given up: it stays where it is, as
    /// in wrk, unless its script has failed or stopped the thread.
    pub(super) fn sends_nothing(
        &mut self,
        index: u32,
        why: Unwritten,
        cx: &mut Context<'_>,
    ) -> Action {
        let thread = usize::from(self.all[index as usize].step);
        let script = self.job.script.as_ref();
        let stopped = script.is_none_or(|script| script.has_stopped(thread));
        if why == Unwritten::Failed || stopped || self.open.is_some() {
            return self.end(index, cx);
        }
        self.idle(index, NOTHING_NS, cx)
    }

    /// Gives the script a response that was kept.
    pub(super) fn show_script(&mut self, index: u32, status: u16, record: &mut Record) {
        let Some(script) = &self.job.script else {
            return;
        };
        let thread = usize::from(self.all[index as usize].step);
        let captured = &self.captured;
        if script.has_stopped(thread) {
            return;
        }
        if let Err(sentence) = script.response(thread, status, &captured.head, &captured.body) {
            script.fail(sentence);
            record.script_failed();
        }
    }

    /// How long the script wants to wait before the next request of this user; `None`: not at all.
    pub(super) fn script_delay_ns(&mut self, index: u32, record: &mut Record) -> Option<u64> {
        let script = self.job.script.as_ref().filter(|script| script.delays)?;
        let thread = usize::from(self.all[index as usize].step);
        match script.delay_ms(thread) {
            Ok(ms) => (ms > 0.0).then_some((ms * 1e6) as u64),
            Err(sentence) => {
                script.fail(sentence);
                record.script_failed();
                None
            }
        }
    }
}
