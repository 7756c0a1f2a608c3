//! Pipelining: a user sends several requests in one piece, reads their answers one after the other, and only then goes on. Each request
//! counts for itself, in flight and with its time. Only scenarios whose requests do not depend on answers come here.

use std::io;

use super::Worker;
use crate::http::response::{Answer, Exchange};
use crate::job::WRITTEN_ANEW;
use crate::measure::counters::ErrorKind;
use crate::net::{Driver, Received};
use crate::payload::Outgoing;
use crate::payload::Payload;
use crate::user::Phase;

/// See the module.
pub(super) struct Pipeline {
    /// Requests of each user that are sent and not answered.
    unanswered: Vec<u32>,
    /// A piece of answers while it is read.
    piece: Vec<u8>,
}

impl Pipeline {
    pub(super) fn new(users: usize) -> Self {
        Self {
            unanswered: vec![0; users],
            piece: Vec::new(),
        }
    }
}

impl<D: Driver> Worker<'_, D> {
    fn unanswered(&self, index: u32) -> u32 {
        match &self.pipeline {
            Some(pipeline) => pipeline.unanswered[index as usize],
            None => 0,
        }
    }

    fn set_unanswered(&mut self, index: u32, count: u32) {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.unanswered[index as usize] = count;
        }
    }

    /// How many requests a user may send together at most: what the plan says, and no more than its connection and the user have left.
    fn most_together(&self, index: u32) -> u32 {
        let user = &self.users[index as usize];
        let on_connection = self.job.max_requests.saturating_sub(user.on_connection);
        let steps = self.job.steps.len() as u64;
        let walks_left = self.most_iterations(index) - user.iterations;
        let of_user = walks_left
            .saturating_mul(steps)
            .saturating_sub(u64::from(user.step));
        let of_user = u32::try_from(of_user).unwrap_or(u32::MAX);
        self.job.pipeline.min(on_connection).min(of_user).max(1)
    }

    /// Hands the next requests of a queued user to the driver, in one piece. The first has its place in the quota.
    pub(super) fn send_together(&mut self, index: u32) {
        let most = self.most_together(index);
        let mut bytes = self.driver.spare();
        bytes.clear();
        let mut step = usize::from(self.users[index as usize].step);
        let mut count = 0;
        while count < most && (count == 0 || self.may_send()) {
            let user = &mut self.users[index as usize];
            user.on_connection = user.on_connection.saturating_add(1);
            let last = user.on_connection >= self.job.max_requests;
            match self.job.steps[step].request(last) {
                WRITTEN_ANEW => {
                    let written = self.write_request(index, step, last, Vec::new());
                    bytes.extend_from_slice(written.bytes());
                    if let Some(logging) = &mut self.logging {
                        logging.sends_together(index, count, written.bytes(), true);
                    }
                }
                fixed => {
                    let fixed = &self.job.fixed[fixed as usize];
                    bytes.extend_from_slice(fixed);
                    if let Some(logging) = &mut self.logging {
                        logging.sends_together(index, count, fixed, false);
                    }
                }
            }
            step = (step + 1) % self.job.steps.len();
            count += 1;
        }
        self.set_unanswered(index, count);
        self.recorder.counters.bytes_sent += bytes.len() as u64;
        let outgoing = Outgoing::new(bytes, None);
        self.driver.send(index, Payload::Owned(outgoing));
    }

    /// Records all but one of the requests that were handed over together.
    pub(super) fn sent_together(&mut self, index: u32, at_ns: u64) {
        let others = u64::from(self.unanswered(index)) - 1;
        for _ in 0..others {
            self.recorder.sent(at_ns, 0);
        }
        let address = self.users[index as usize].address;
        if let Some(figures) = self.recorder.address(address) {
            figures.sent += others;
        }
    }

    /// Reads a piece, which may hold the ends and beginnings of several answers.
    pub(super) fn on_pipelined(&mut self, received: Received) -> io::Result<()> {
        let index = received.conn;
        let mut piece = match &mut self.pipeline {
            Some(pipeline) => std::mem::take(&mut pipeline.piece),
            None => Vec::new(),
        };
        piece.clear();
        piece.extend_from_slice(self.driver.bytes(&received));
        self.driver.release(received);
        self.recorder.counters.bytes_received += piece.len() as u64;
        let result = self.read_answers(index, &piece);
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.piece = piece;
        }
        result
    }

    fn read_answers(&mut self, index: u32, mut piece: &[u8]) -> io::Result<()> {
        loop {
            let unanswered = self.unanswered(index);
            let user = &mut self.users[index as usize];
            if user.phase != Phase::InFlight {
                return self.on_unasked(index);
            }
            if self.parts.is_some() {
                self.answer_begins(index);
            }
            let user = &mut self.users[index as usize];
            let step = &self.job.steps[usize::from(user.step)];
            let mut exchange = Exchange {
                head_request: step.head_request,
                most_head_bytes: self.job.most_head_bytes,
                expectation: &step.expectation,
                recent: &mut self.steps[usize::from(user.step)].recent,
                seen: self.scenes.wanted(step),
                continues: false,
                more: unanswered > 1,
                behind: 0,
            };
            let result = user.reader.feed(piece, &mut exchange);
            let behind = exchange.behind;
            if let Some(logging) = &mut self.logging {
                logging.received(index, piece.len() - behind, self.now_ns);
            }
            let answer = match result {
                Ok(None) => return Ok(()),
                Ok(Some(answer)) => answer,
                Err(bad) => return self.lose(index, bad.into(), true),
            };
            if unanswered <= 1 || !answer.keep_alive {
                // The last one, or the last that will come: what is behind it on a connection that ends is nobody's.
                return self.on_answer(index, answer, false);
            }
            self.answered_one(index, &answer);
            if self.stopped || behind == 0 {
                return Ok(());
            }
            piece = &piece[piece.len() - behind..];
        }
    }

    /// An answer with others behind it.
    fn answered_one(&mut self, index: u32, answer: &Answer) {
        let mark = self.record_answer(index, answer);
        let unanswered = self.unanswered(index);
        self.set_unanswered(index, unanswered - 1);
        // Never beyond the user's last iteration: no more are sent together than it has left.
        self.move_on(index);
        if let Some(parts) = &mut self.parts {
            parts.begin(index);
        }
        if let Some(mark) = mark {
            self.reach_mark(mark);
        }
    }

    /// Whether requests behind the one that is answered wait for answers on this connection.
    pub(super) fn is_behind(&self, index: u32) -> bool {
        self.unanswered(index) > 1
    }

    /// The requests behind the first unanswered one are lost with their connection. They are recorded here, and the user is then
    /// at the last of them.
    pub(super) fn lose_behind(&mut self, index: u32, kind: ErrorKind) {
        let unanswered = self.unanswered(index);
        self.set_unanswered(index, 0);
        for _ in 1..unanswered {
            self.move_on(index);
            self.record_lost(index, kind);
        }
    }
}
