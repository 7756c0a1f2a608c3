//! What comes on a connection, and its end: the end of a response, or its loss.

use super::phase::Phase;
use super::{Action, Bytes, Context, Users};
use crate::http::head::BadResponse;
use crate::http::response::{Exchange, Response};
use crate::measure::counters::ErrorKind;

/// How a record begins with which a TLS server refuses what it was sent.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// One body in 256 is sampled, whichever clock the sends are timed by: its digest costs more than all else.
fn is_sampled(sent_ns: u64) -> bool {
    sent_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56 == 0
}

/// What was made of some bytes.
struct Read {
    result: Result<Option<Response>, BadResponse>,
    /// The server asked for the body.
    continues: bool,
    /// So many bytes belong to the responses behind this one.
    behind: usize,
}

impl Users {
    /// Whether more responses follow the next, and whether that is to HEAD where only it knows.
    #[inline]
    pub(super) fn expected(&self, index: u32) -> (bool, Option<bool>) {
        match &self.queues {
            None => (false, None),
            Some(queues) => {
                let queue = queues.of(index);
                (queue.len() > 1, queue.front().and_then(|next| next.head))
            }
        }
    }

    /// Reads bytes of the next response, or with none the end of what comes.
    #[inline]
    fn read(&mut self, index: u32, bytes: Option<&[u8]>) -> Read {
        let (more, head) = self.expected(index);
        self.sampled = None;
        let user = &mut self.all[index as usize];
        let place = usize::from(user.step);
        let step = &self.job.steps[place];
        let mut exchange = Exchange {
            head_request: head.unwrap_or(step.head_request),
            max_head_bytes: self.job.max_head_bytes,
            expectation: &step.expectation,
            recent: self.head_caches[place].of(head),
            budget: &self.budget,
            captured: Self::wanted(&mut self.captured, step),
            digest: is_sampled(user.sent_ns).then_some(&mut self.sampled),
            continues: false,
            more,
            behind: 0,
        };
        let result = match bytes {
            Some(bytes) => user.reader.feed(bytes, &mut exchange),
            None => Ok(user.reader.close(&mut exchange)),
        };
        Read {
            result,
            continues: exchange.continues,
            behind: if more { exchange.behind } else { 0 },
        }
    }

    #[inline]
    pub(super) fn on_received(
        &mut self,
        index: u32,
        received: Bytes<'_>,
        cx: &mut Context<'_>,
    ) -> Action {
        cx.record.came(received.bytes.len());
        let mut piece = received.bytes;
        loop {
            let user = &self.all[index as usize];
            if user.phase != Phase::InFlight {
                // The framing of the response before was broken.
                cx.counters().fail(ErrorKind::Protocol);
                return self.lose_idle(index, true, cx);
            }
            if cx.record.times_parts() {
                cx.record
                    .first_byte(index, user.sent_ns, received.accepted_ns, cx.now_ns);
            }
            let read = self.read(index, Some(piece));
            cx.record
                .received(index, piece.len() - read.behind, cx.now_ns);
            let response = match read.result {
                Ok(Some(response)) => response,
                Ok(None) if read.continues && self.holds(index) => {
                    return Action::SendHeld { until_ns: None };
                }
                Ok(None) => return Action::Stay,
                Err(bad) => return self.on_bad(index, bad, received.bytes, cx),
            };
            // Behind a response that ends its connection nothing comes.
            if self.unanswered(index) <= 1 || !response.keep_alive {
                return self.on_response(index, response, (false, received.sending), cx);
            }
            // What ends an iteration is the last of its group.
            let _ = self.record_response(index, &response, cx);
            self.expect_next(index);
            cx.record.begin_parts(index);
            if read.behind == 0 {
                return Action::Stay;
            }
            piece = &piece[piece.len() - read.behind..];
        }
    }

    /// What came is no response.
    #[cold]
    fn on_bad(
        &mut self,
        index: u32,
        bad: BadResponse,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Action {
        if bad == BadResponse::Malformed && bytes.starts_with(&TLS_ALERT) {
            let reason = "the response is a TLS alert; does the server speak https on this port?";
            let counters = cx.counters();
            counters.explain(ErrorKind::Protocol, reason.to_owned());
        }
        self.lose(index, bad.into(), true, cx)
    }

    pub(super) fn on_closed(
        &mut self,
        index: u32,
        (sending, truncated): (bool, bool),
        cx: &mut Context<'_>,
    ) -> Action {
        if self.all[index as usize].phase != Phase::InFlight {
            return self.lose_idle(index, false, cx);
        }
        match self.read(index, None).result {
            Ok(Some(_)) if truncated => self.lose(index, ErrorKind::TlsTruncated, false, cx),
            Ok(Some(response)) => self.on_response(index, response, (true, sending), cx),
            _ => self.lose(index, ErrorKind::PrematureClose, false, cx),
        }
    }

    /// The client's own kernel did not take what this connection needed: no server's fault.
    #[cold]
    pub(super) fn on_refused(
        &mut self,
        index: u32,
        reason: String,
        cx: &mut Context<'_>,
    ) -> Action {
        let kind = ErrorKind::Client;
        cx.counters().explain(kind, reason);
        match self.all[index as usize].phase {
            Phase::InFlight => self.lose(index, kind, true, cx),
            Phase::Connecting => self.fail_to_connect(index, kind, cx),
            // No request waits for it, so none has failed; the client has.
            Phase::Warming => {
                cx.counters().fail(kind);
                self.fail_to_connect(index, kind, cx)
            }
            _ => {
                cx.counters().fail(kind);
                self.lose_idle(index, true, cx)
            }
        }
    }
}
