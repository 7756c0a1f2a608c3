//! Users of a script: each belongs to a thread of the script, which is a step of the plan. What goes out in one piece may be several
//! requests, so it is kept how many answers are still to come.

use std::io;
use std::sync::Arc;

use super::{News, Worker};
use crate::http::response::Answer;
use crate::job::Job;
use crate::measure::counters::ErrorKind;
use crate::net::Driver;
use crate::payload::Outgoing;
use crate::payload::Payload;
use crate::script::Script;
use crate::script::pipeline::Requests;
use crate::user::Phase;

/// What is on its way to one user.
pub(super) struct Scripted {
    flights: Vec<Requests>,
}

impl Scripted {
    /// `None`: every piece is one request, and always the same.
    pub(super) fn new(job: &Job, users: usize) -> Option<Self> {
        let script = job.script.as_ref()?;
        let single = (0..script.threads())
            .all(|thread| script.fixed(thread).is_some_and(|f| f.1.count == 1));
        (!single).then(|| Self {
            flights: vec![Requests::default(); users],
        })
    }

    fn flight(&self, index: u32) -> Requests {
        self.flights[index as usize]
    }

    /// How many answers are still to come, and whether the next one is to HEAD.
    pub(super) fn expects(&self, index: u32) -> (u32, Option<bool>) {
        let flight = self.flight(index);
        (flight.count, Some(flight.heads & 1 == 1))
    }
}

impl<D: Driver> Worker<'_, D> {
    /// How many answers are still to come, the next one included.
    #[inline]
    pub(super) fn answers_left(&self, index: u32) -> u32 {
        self.scripted
            .as_ref()
            .map_or(1, |scripted| scripted.flight(index).count)
    }

    /// What goes out now.
    #[inline]
    pub(super) fn note_flight(&mut self, index: u32) {
        if let (Some(scripted), Some(script)) = (&mut self.scripted, &self.job.script) {
            let thread = usize::from(self.users[index as usize].step);
            if let Some((_, requests)) = script.fixed(thread) {
                scripted.flights[index as usize] = *requests;
            }
        }
    }

    /// Asks the script for what to send and hands it to the driver. False: it made an error, and the user has ended.
    #[inline(never)]
    pub(super) fn send_scripted(&mut self, index: u32) -> bool {
        let job = Arc::clone(&self.job);
        let Some(script) = &job.script else {
            return false;
        };
        let thread = usize::from(self.users[index as usize].step);
        match script.request(thread) {
            Ok((bytes, requests)) => {
                if let Some(scripted) = &mut self.scripted {
                    scripted.flights[index as usize] = requests;
                }
                let outgoing = Outgoing::new(bytes, None);
                self.recorder.counters.bytes_sent += outgoing.wire_bytes();
                self.driver.send(index, Payload::Owned(outgoing));
                true
            }
            Err(sentence) => {
                self.script_failed(script, sentence);
                self.outstanding -= 1;
                self.end_user(index);
                false
            }
        }
    }

    /// Ends the run: the coordinator is told once, and nobody calls the script again.
    fn script_failed(&mut self, script: &Script, sentence: String) {
        script.fail(sentence);
        self.tell(News::ScriptFailed);
    }

    /// Gives the script an answer that was kept.
    pub(super) fn show_script(&mut self, index: u32, answer: &Answer) {
        let job = Arc::clone(&self.job);
        let Some(script) = &job.script else {
            return;
        };
        let thread = usize::from(self.users[index as usize].step);
        let seen = &self.scenes.seen;
        if script.has_stopped(thread) {
            return;
        }
        if let Err(sentence) = script.response(thread, answer.status, &seen.head, &seen.body) {
            self.script_failed(script, sentence);
        }
    }

    /// How long the script wants to wait before the next request of this user; `None`: not at all.
    pub(super) fn script_delay_ns(&mut self, index: u32) -> Option<u64> {
        let job = Arc::clone(&self.job);
        let script = job.script.as_ref().filter(|script| script.delays)?;
        let thread = usize::from(self.users[index as usize].step);
        match script.delay_ms(thread) {
            Ok(ms) => (ms > 0.0).then_some((ms * 1e6) as u64),
            Err(sentence) => {
                self.script_failed(script, sentence);
                None
            }
        }
    }

    /// The first request of a user: at once, or after the script's delay.
    pub(super) fn begin_first(&mut self, index: u32) -> io::Result<()> {
        let Some(delay_ns) = self.script_delay_ns(index) else {
            return self.begin_request(index);
        };
        let user = &mut self.users[index as usize];
        user.phase = Phase::Thinking;
        user.since_ns = self.now_ns;
        self.wheel.set(index, self.now_ns + delay_ns);
        Ok(())
    }

    /// An answer after which others to the same piece are still to come.
    pub(super) fn on_answer_amid(
        &mut self,
        index: u32,
        answer: Answer,
        closed: bool,
    ) -> io::Result<()> {
        if let Some(scripted) = &mut self.scripted {
            let flight = &mut scripted.flights[index as usize];
            flight.count -= 1;
            flight.heads >>= 1;
        }
        let mark = self.number_completed();
        let user = &self.users[index as usize];
        let looks = self.job.steps[usize::from(user.step)].looks;
        self.recorder
            .completed(self.now_ns, user.sent_ns, answer.status, answer.body_bytes);
        self.count_rate(index);
        if looks {
            self.show_script(index, &answer);
        }
        if !self.head_told {
            self.head_told = true;
            let step = usize::from(self.users[index as usize].step);
            self.recorder.counters.first_head = self.steps[step].recent.text();
        }
        if let Some(kind) = answer.unmet.map(ErrorKind::from) {
            self.recorder.counters.fail(kind);
        }
        if let Some(mark) = mark {
            self.reach_mark(mark);
        }
        if closed || !answer.keep_alive {
            return self.lose(index, ErrorKind::PrematureClose, false);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn count_rate(&mut self, index: u32) {
        if let Some(rates) = &mut self.recorder.rates {
            rates.count(index);
        }
    }
}
