//! What comes on a connection, and its end: bytes are read as answers, a close as the end of one, or as its loss.

use std::io;

use super::scenes::Scenes;
use super::{StepState, Worker};
use crate::http::head::BadAnswer;
use crate::http::response::{Answer, Exchange};
use crate::job::Job;
use crate::measure::counters::ErrorKind;
use crate::net::{ConnId, Direction, Driver, Received};
use crate::user::Phase;

/// How a record begins with which a TLS server refuses what it was sent.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// What must be known to read the answer of a step when so many answers are still to come.
#[inline]
fn exchange<'a>(
    (job, steps, scenes): (&'a Job, &'a mut [StepState], &'a mut Scenes),
    step: u16,
    left: u32,
    head: Option<bool>,
) -> Exchange<'a> {
    let step = usize::from(step);
    Exchange {
        head_request: head.unwrap_or(job.steps[step].head_request),
        most_head_bytes: job.most_head_bytes,
        expectation: &job.steps[step].expectation,
        recent: steps[step].recent(head),
        seen: scenes.wanted(&job.steps[step]),
        continues: false,
        more: left > 1,
        behind: 0,
    }
}

impl<D: Driver> Worker<'_, D> {
    #[inline]
    pub(super) fn on_received(&mut self, received: Received) -> io::Result<()> {
        let index = received.conn;
        if self.parts.is_some() {
            self.answer_begins(index);
        }
        if self.pipeline.is_some() {
            return self.on_pipelined(received);
        }
        let user = &mut self.users[index as usize];
        let bytes = self.driver.bytes(&received);
        self.recorder.counters.bytes_received += bytes.len() as u64;
        if user.phase != Phase::InFlight {
            self.driver.release(received);
            return self.on_unasked(index);
        }
        if let Some(logging) = &mut self.logging {
            logging.received(index, bytes.len(), self.now_ns);
        }
        let (left, head) = match &self.scripted {
            None => (1, None),
            Some(scripted) => scripted.expects(index),
        };
        let expected = (&*self.job, &mut self.steps[..], &mut self.scenes);
        let mut exchange = exchange(expected, user.step, left, head);
        let result = user.reader.feed(bytes, &mut exchange);
        let tls_alert = result.is_err() && bytes.starts_with(&TLS_ALERT);
        let continues = exchange.continues;
        if left > 1 && exchange.behind > 0 {
            let after = bytes[bytes.len() - exchange.behind..].to_vec();
            self.driver.release(received);
            self.on_read(index, result, tls_alert, continues)?;
            return self.on_more(index, &after);
        }
        self.driver.release(received);
        self.on_read(index, result, tls_alert, continues)
    }

    /// What came with an answer, after it.
    fn on_more(&mut self, index: u32, bytes: &[u8]) -> io::Result<()> {
        let mut from = 0;
        while from < bytes.len() {
            let user = &mut self.users[index as usize];
            // The connection may have been given up meanwhile; what is left belonged to it.
            let (Phase::InFlight, Some(scripted)) = (user.phase, &self.scripted) else {
                return Ok(());
            };
            let (left, head) = scripted.expects(index);
            let expected = (&*self.job, &mut self.steps[..], &mut self.scenes);
            let mut exchange = exchange(expected, user.step, left, head);
            let result = user.reader.feed(&bytes[from..], &mut exchange);
            from = bytes.len() - exchange.behind;
            self.on_read(index, result, false, false)?;
            if left == 1 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What was made of a piece.
    #[inline]
    fn on_read(
        &mut self,
        index: u32,
        result: Result<Option<Answer>, BadAnswer>,
        tls_alert: bool,
        continues: bool,
    ) -> io::Result<()> {
        match result {
            Ok(None) => {
                if continues {
                    self.send_held(index);
                }
                Ok(())
            }
            Ok(Some(answer)) => self.on_answer(index, answer, false),
            Err(BadAnswer::Malformed) if tls_alert => {
                let reason = "the answer is a TLS alert; does the server speak https on this port?";
                let counters = &mut self.recorder.counters;
                counters.explain(ErrorKind::Protocol, reason.to_owned());
                self.lose(index, ErrorKind::Protocol, true)
            }
            Err(bad) => self.lose(index, bad.into(), true),
        }
    }

    /// Bytes on a connection without a request: the framing of the answer before was broken.
    pub(super) fn on_unasked(&mut self, index: u32) -> io::Result<()> {
        self.recorder.counters.fail(ErrorKind::Protocol);
        let queued = self.users[index as usize].phase == Phase::Queued;
        self.close(index, true);
        if queued {
            self.connect(index);
        }
        Ok(())
    }

    pub(super) fn on_closed(&mut self, index: ConnId) -> io::Result<()> {
        let user = &mut self.users[index as usize];
        match user.phase {
            Phase::InFlight => {
                let (left, head) = match &self.scripted {
                    None => (1, None),
                    Some(scripted) => scripted.expects(index),
                };
                let expected = (&*self.job, &mut self.steps[..], &mut self.scenes);
                let mut exchange = exchange(expected, user.step, left, head);
                match user.reader.close(&mut exchange) {
                    Some(answer) => self.on_answer(index, answer, true),
                    None => self.lose(index, ErrorKind::PrematureClose, false),
                }
            }
            // Closed before the request went out: no request was harmed.
            Phase::Queued => {
                self.close(index, false);
                self.connect(index);
                Ok(())
            }
            _ => {
                self.close(index, false);
                Ok(())
            }
        }
    }

    pub(super) fn on_broken(&mut self, index: ConnId, direction: Direction) -> io::Result<()> {
        match (self.users[index as usize].phase, direction) {
            (Phase::InFlight, Direction::Read) => self.lose(index, ErrorKind::Read, false),
            (Phase::InFlight, Direction::Write) => self.lose(index, ErrorKind::Write, false),
            _ => self.on_closed(index),
        }
    }

    /// The client's own kernel did not take what this connection needed: whatever was to come of it, the server had no part in it.
    pub(super) fn on_refused(&mut self, index: ConnId, code: i32) -> io::Result<()> {
        let reason = format!(
            "the load generator could not hand a request to its own kernel: {}",
            io::Error::from_raw_os_error(code)
        );
        self.recorder.counters.explain(ErrorKind::Client, reason);
        match self.users[index as usize].phase {
            Phase::InFlight => self.lose(index, ErrorKind::Client, true),
            Phase::Connecting | Phase::Warming => {
                self.fail_to_connect(index, ErrorKind::Client);
                Ok(())
            }
            _ => self.on_closed(index),
        }
    }
}
