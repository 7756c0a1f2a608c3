//! What users carry through their scenarios: their place in loops, their values, what they send and what they keep of an answer.
//! Users of a plain scenario carry nothing, and their table is empty.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::SmallRng;

use super::Worker;
use crate::http::response::Answer;
use crate::job::{Job, StepJob};
use crate::measure::counters::ErrorKind;
use crate::net::Driver;
use crate::payload::Outgoing;
use crate::payload::Payload;
use crate::scenario::capture::Missed;
use crate::scenario::look::Seen;
use crate::scenario::program::{Cursor, Passed, Stop};
use crate::scenario::request::{Again, Ink};
use crate::scenario::template::Place;
use crate::scenario::vars::Vars;
use crate::scenario::walk::Position;

/// A server that does not know `Expect` says nothing: then the body goes out after this time (RFC 9110, section 10.1.1).
pub(super) const LONGEST_HELD_NS: u64 = 1_000_000_000;

/// So many requests, one after the other, may be spared by a cache: more are a loop that nothing in it can end.
const MOST_PASSED_OVER: u32 = 100_000;

/// What one user carries.
#[derive(Default)]
struct Carried {
    position: Position,
    /// Of a scenario with blocks.
    cursor: Option<Box<Cursor>>,
    vars: Option<Box<Vars>>,
}

/// What follows a step within its iteration.
enum Next {
    Step(u16),
    /// The iteration was walked to its end.
    Walked,
    /// It cannot go on without a value that was not captured.
    Stuck,
}

/// How a user goes on after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// To its next step, in the next iteration where one has ended.
    On,
    /// It has ended, after the last step of its scenario.
    Walked,
    /// It has ended before: a value was missing, or no row is left for it.
    Stuck,
    /// To an iteration after one that has sent nothing: it begins after a pause.
    Later,
}

/// See the module.
pub(super) struct Scenes {
    users: Vec<Carried>,
    /// For requests that need no user's values.
    nothing: Vars,
    /// Bodies that wait until the server asks for them.
    held: HashMap<u32, Outgoing>,
    /// The answer that is looked at.
    pub(super) seen: Seen,
    /// What a user came to in the blocks before its next request.
    pub(super) passed: Passed,
    /// Number of the thread and how many there are.
    thread: usize,
    threads: usize,
    /// Users of this thread that have started.
    started: u64,
}

impl Scenes {
    pub(super) fn new(job: &Job, users: usize, thread: usize, threads: usize) -> Self {
        let plain = job.scenarios.walk.is_plain() && job.scenarios.shape.is_none();
        let count = if plain { 0 } else { users };
        Self {
            users: (0..count).map(|_| Carried::default()).collect(),
            nothing: Vars::default(),
            held: HashMap::new(),
            seen: Seen::new(true),
            passed: Passed::default(),
            thread,
            threads,
            started: 0,
        }
    }

    /// The number of a user of a closed load among those of all threads.
    #[inline]
    fn number(&self, index: u32) -> u64 {
        u64::from(index) * self.threads as u64 + self.thread as u64
    }

    /// The first step of a user's next iteration; `before`: a step of the one before. `None`: no row is left for this user.
    fn begin(
        &mut self,
        job: &Job,
        index: u32,
        before: Option<u16>,
        rng: &mut SmallRng,
    ) -> Option<u16> {
        let population = job.populations.of(self.number(index));
        let carried = &mut self.users[index as usize];
        let (step, position) = job.scenarios.walk.begin(before, population.place, rng);
        carried.position = position;
        if let Some(program) = &job.scenarios.program {
            if before.is_none() {
                carried.cursor = None;
            }
            carried
                .cursor
                .get_or_insert_with(|| Box::new(Cursor::new(program)))
                .begin(program, job.scenarios.walk.scenario_of(step));
        }
        if let Some(shape) = job.scenarios.shape {
            let starts = before.is_none();
            // In an open load many users come to the same place, one after the other.
            let place = match job.open {
                None => u64::from(index),
                Some(_) => self.started,
            };
            let number = place * self.threads as u64 + self.thread as u64;
            self.started += u64::from(starts);
            if starts {
                carried.vars = None;
            }
            let vars = carried
                .vars
                .get_or_insert_with(|| Box::new(Vars::new(shape)));
            if starts {
                vars.number = population.number_within(number);
            }
            vars.iteration += 1;
            vars.forget_captured(shape);
            if job.scenarios.forgets_cache
                && let Some(cache) = &mut vars.cache
            {
                cache.forget();
            }
            let feeders = job.scenarios.shared.feeders.iter().enumerate();
            for (row, (place, feeder)) in vars.rows.iter_mut().zip(feeders) {
                if let Some(number) = population.number_at_feeder(place, number)
                    && !feeder.on_use()
                    && (starts || !feeder.stays_with_user())
                {
                    *row = feeder.draw(number, *row, rng)?;
                }
            }
            for (slot, text) in job.scenarios.variables.iter().filter(|_| starts) {
                let mut value = Vec::new();
                text.render(Place::Body, &job.scenarios.shared, vars, rng, &mut value);
                vars.set(*slot, value);
            }
        }
        Some(step)
    }

    /// The next step of a scenario with blocks.
    fn next_in_program(&mut self, job: &Job, index: u32, now_ns: u64, rng: &mut SmallRng) -> Next {
        let carried = &mut self.users[index as usize];
        let (Some(program), Some(cursor), Some(vars)) = (
            &job.scenarios.program,
            carried.cursor.as_deref_mut(),
            carried.vars.as_deref_mut(),
        ) else {
            return Next::Walked;
        };
        let shared = &job.scenarios.shared;
        for _ in 0..MOST_PASSED_OVER {
            let was_idle = cursor.is_idle();
            match program.advance(cursor, vars, shared, rng, now_ns, &mut self.passed) {
                Stop::Walked => return Next::Walked,
                Stop::Lost => return Next::Stuck,
                Stop::Request(step) => {
                    let compiled = &job.scenarios.steps[usize::from(step)];
                    let has = |slot: &usize| vars.captured[*slot].is_some();
                    if !compiled.needs.iter().all(has) {
                        return Next::Stuck;
                    }
                    let after = Duration::from_nanos(self.passed.pause_ns);
                    let mut ink = Ink { shared, vars, rng };
                    if !compiled.request.is_fresh(&mut ink, after) {
                        return Next::Step(step);
                    }
                    cursor.pass_over(was_idle);
                }
            }
        }
        Next::Stuck
    }

    fn is_idle(&self, index: u32) -> bool {
        let cursor = &self.users[index as usize].cursor;
        cursor.as_ref().is_some_and(|cursor| cursor.is_idle())
    }

    /// A request of a user ended, after so long.
    #[inline]
    pub(super) fn spend(&mut self, index: u32, service_ns: u64, failed: bool) {
        if let Some(carried) = self.users.get_mut(index as usize)
            && let Some(cursor) = &mut carried.cursor
        {
            cursor.spend(service_ns, failed);
        }
    }

    /// The step after this one.
    fn next(&mut self, job: &Job, index: u32, step: u16) -> Next {
        let carried = &mut self.users[index as usize];
        let Some(next) = job.scenarios.walk.next(step, &mut carried.position) else {
            return Next::Walked;
        };
        let captured = carried.vars.as_ref().map(|vars| &vars.captured);
        let has = |slot: &usize| captured.is_some_and(|values| values[*slot].is_some());
        let needs = &job.scenarios.steps[usize::from(next)].needs;
        if needs.iter().all(has) {
            Next::Step(next)
        } else {
            Next::Stuck
        }
    }

    /// Where the answer of this step is copied to, if it is looked at.
    #[inline]
    pub(super) fn wanted(&mut self, step: &StepJob) -> Option<&mut Seen> {
        if !step.looks {
            return None;
        }
        self.seen.with_body = step.looks_at_body;
        Some(&mut self.seen)
    }

    /// Whether a body waits.
    #[inline]
    pub(super) fn holds(&self, index: u32) -> bool {
        !self.held.is_empty() && self.held.contains_key(&index)
    }

    #[inline]
    pub(super) fn drop_held(&mut self, index: u32) {
        if !self.held.is_empty() {
            self.held.remove(&index);
        }
    }

    fn vars(&mut self, index: u32) -> &mut Vars {
        self.users
            .get_mut(index as usize)
            .and_then(|carried| carried.vars.as_deref_mut())
            .unwrap_or(&mut self.nothing)
    }
}

impl<D: Driver> Worker<'_, D> {
    /// How often a user walks its scenario.
    #[inline]
    pub(super) fn most_iterations(&self, index: u32) -> u64 {
        self.job
            .populations
            .of(self.scenes.number(index))
            .iterations
    }

    /// A user starts, or begins its next iteration after a step of the one before. False: it has nothing to go on with.
    #[inline]
    pub(super) fn begin_iteration(&mut self, index: u32, before: Option<u16>) -> bool {
        if self.scenes.users.is_empty() {
            return true;
        }
        let begun = self.scenes.begin(&self.job, index, before, &mut self.rng);
        if let Some(step) = begun {
            self.users[index as usize].step = step;
        }
        begun.is_some()
    }

    /// A user comes to its first request.
    #[inline]
    pub(super) fn set_out(&mut self, index: u32) -> Moved {
        if !self.begin_iteration(index, None) {
            return Moved::Stuck;
        }
        if self.job.scenarios.program.is_none() {
            return Moved::On;
        }
        self.move_on_in_program(index)
    }

    /// The same as [`Self::move_on`] in a scenario with blocks.
    #[inline(never)]
    fn move_on_in_program(&mut self, index: u32) -> Moved {
        let next = self
            .scenes
            .next_in_program(&self.job, index, self.now_ns, &mut self.rng);
        for done in self.scenes.passed.ended.drain(..) {
            self.recorder
                .transaction_completed(done.figure, done.service_ns, done.failed);
        }
        let ended = match next {
            Next::Step(next) => {
                self.users[index as usize].step = next;
                return Moved::On;
            }
            Next::Walked => Moved::Walked,
            Next::Stuck => Moved::Stuck,
        };
        let idle = self.scenes.is_idle(index);
        let most = self.most_iterations(index);
        let user = &mut self.users[index as usize];
        user.iterations += 1;
        if user.iterations >= most {
            return ended;
        }
        let before = user.step;
        if !self.begin_iteration(index, Some(before)) {
            return Moved::Stuck;
        }
        // One that has sent something does not come here again before the next has: so this goes no deeper than once.
        if idle {
            Moved::Later
        } else {
            self.move_on_in_program(index)
        }
    }

    /// The pauses that were passed on the way to the next request.
    #[inline]
    pub(super) fn take_pause_ns(&mut self) -> Option<u64> {
        let pause_ns = std::mem::take(&mut self.scenes.passed.pause_ns);
        (pause_ns > 0).then_some(pause_ns)
    }

    /// Goes on to the next step, in the next iteration where one has ended.
    #[inline]
    pub(super) fn move_on(&mut self, index: u32) -> Moved {
        if std::mem::take(&mut self.ends_iteration) {
            return self.break_off(index);
        }
        if self.job.scenarios.program.is_some() {
            return self.move_on_in_program(index);
        }
        let user = &mut self.users[index as usize];
        let before = user.step;
        if let Some(script) = &self.job.script {
            // A thread of the script is a step, and its users stay there.
            user.iterations += 1;
            let iterations = user.iterations;
            let goes_on = iterations < self.most_iterations(index)
                && !script.has_stopped(usize::from(before));
            return if goes_on { Moved::On } else { Moved::Walked };
        }
        let mut ended = Moved::Walked;
        if self.scenes.users.is_empty() {
            if !user.next_step(self.job.steps.len()) {
                return Moved::On;
            }
        } else {
            match self.scenes.next(&self.job, index, before) {
                Next::Step(next) => {
                    user.step = next;
                    return Moved::On;
                }
                Next::Walked => {}
                Next::Stuck => ended = Moved::Stuck,
            }
            user.iterations += 1;
        }
        let iterations = user.iterations;
        if iterations >= self.most_iterations(index) {
            ended
        } else if self.begin_iteration(index, Some(before)) {
            Moved::On
        } else {
            Moved::Stuck
        }
    }

    /// Leaves the rest of an iteration out, and goes on with the next.
    #[inline(never)]
    fn break_off(&mut self, index: u32) -> Moved {
        let most = self.most_iterations(index);
        let user = &mut self.users[index as usize];
        user.iterations += 1;
        if user.iterations >= most {
            return Moved::Stuck;
        }
        let before = user.step;
        if self.scenes.users.is_empty() {
            user.step = 0;
            return Moved::On;
        }
        if !self.begin_iteration(index, Some(before)) {
            return Moved::Stuck;
        }
        match self.job.scenarios.program {
            Some(_) => self.move_on_in_program(index),
            None => Moved::On,
        }
    }

    /// Writes the request of a step with this user's values.
    pub(super) fn write_request(
        &mut self,
        index: u32,
        step: usize,
        last: bool,
        spare: Vec<u8>,
    ) -> Outgoing {
        let mut ink = Ink {
            shared: &self.job.scenarios.shared,
            vars: self.scenes.vars(index),
            rng: &mut self.rng,
        };
        let request = &self.job.scenarios.steps[step].request;
        request.write(last, &mut ink, spare)
    }

    /// Writes the request that follows a redirect.
    pub(super) fn write_again(
        &mut self,
        index: u32,
        step: usize,
        last: bool,
        again: &Again<'_>,
        spare: Vec<u8>,
    ) -> Outgoing {
        let vars = self.scenes.vars(index);
        let request = &self.job.scenarios.steps[step].request;
        request.write_again(again, last, vars, spare)
    }

    /// Writes the request of its step for this user, and hands it to the driver.
    #[inline(never)]
    pub(super) fn send_written(&mut self, index: u32, last: bool) {
        let step = usize::from(self.users[index as usize].step);
        let spare = self.driver.spare();
        let outgoing = if self.job.scenarios.steps[step].chain_figure.is_some() {
            self.write_followed(index, step, last, spare)
        } else {
            self.write_request(index, step, last, spare)
        };
        let now = if self.job.scenarios.steps[step].request.expects_continue() {
            let (head, body) = outgoing.split_at_empty_line();
            self.scenes.held.insert(index, body);
            head
        } else {
            outgoing
        };
        self.recorder.counters.bytes_sent += now.wire_bytes();
        if let Some(logging) = &mut self.logging {
            logging.sends(index, now.wire_bytes(), Some(now.bytes()));
        }
        self.driver.send(index, Payload::Owned(now));
    }

    /// The server asked for the body, or said nothing for long enough.
    pub(super) fn send_held(&mut self, index: u32) {
        if !self.scenes.holds(index) || self.driver.is_sending(index) {
            return;
        }
        if let Some(body) = self.scenes.held.remove(&index) {
            self.recorder.counters.bytes_sent += body.wire_bytes();
            if let Some(parts) = &mut self.parts {
                // What has come so far only asked for the body.
                parts.begin(index);
            }
            if let Some(logging) = &mut self.logging {
                logging.sends(index, body.wire_bytes(), None);
            }
            self.driver.send(index, Payload::Owned(body));
        }
    }

    /// Keeps what an answer that leads elsewhere gives a user besides.
    pub(super) fn keep_cookies(&mut self, index: u32) {
        let step = usize::from(self.users[index as usize].step);
        if let Some(look) = self.job.scenarios.steps[step].look.as_ref() {
            let seen = std::mem::take(&mut self.scenes.seen);
            let dropped = look.remember(&seen, self.scenes.vars(index));
            self.recorder.counters.cookies_dropped += dropped;
            self.scenes.seen = seen;
        }
    }

    /// Takes what the step wants from the answer that was seen, `right` as far as is known; what was wrong with it.
    #[inline(never)]
    pub(super) fn look(&mut self, index: u32, answer: &Answer, right: bool) -> Option<ErrorKind> {
        if self.job.script.is_some() {
            self.show_script(index, answer);
            return None;
        }
        let step = usize::from(self.users[index as usize].step);
        let look = self.job.scenarios.steps[step].look.as_ref()?;
        let seen = std::mem::take(&mut self.scenes.seen);
        let shared = &self.job.scenarios.shared;
        let vars = self.scenes.vars(index);
        self.recorder.counters.cookies_dropped += look.remember(&seen, vars);
        let missed = look.take(&seen, right, shared, vars, &mut self.rng);
        if !self.job.scenarios.reported.is_empty() {
            self.job.scenarios.reported.keep(vars);
        }
        self.scenes.seen = seen;
        missed.map(|missed| match missed {
            Missed::Expectation => ErrorKind::ExpectBody,
            Missed::Capture => ErrorKind::Capture,
        })
    }
}
