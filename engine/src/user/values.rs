//! What users carry through their scenarios: their place in blocks, and their values. Users of a
//! plain scenario carry nothing, and their table is empty.

use std::time::Duration;

use prony_script::Caller;
use rand::rngs::SmallRng;

use super::Users;
use super::moves::Move;
use super::queue::Pending;
use crate::http::captured::CapturedResponse;
use crate::job::{Job, StepJob};
use crate::pace::share::Share;
use crate::payload::Outgoing;
use crate::scenario::fork::Forked;
use crate::scenario::program::{Advance, Cursor, Passed, ScriptCall, Unanswered};
use crate::scenario::request::{Again, RenderContext};
use crate::scenario::vars::Vars;

/// So many requests in a row may be spared by a cache: more are an endless loop.
const MAX_PASSED_OVER: u32 = 100_000;

/// What one user carries.
#[derive(Default)]
pub(super) struct UserState {
    /// Of a scenario with blocks or loops.
    pub(super) cursor: Option<Box<Cursor>>,
    pub(super) vars: Option<Box<Vars>>,
    /// Of a user that walks branches.
    pub(super) forked: Option<Box<Forked>>,
    /// Of a lane: what takes the place of its user's captured values while it acts.
    pub(super) captured: Box<[Option<Box<[u8]>>]>,
    /// The last branch that was walked here.
    pub(super) branch: u32,
}

pub(super) struct UserValues {
    pub(super) users: Vec<UserState>,
    /// For requests that need no user's values.
    nothing: Vars,
    /// What a user came to in the blocks before its next request.
    pub passed: Passed,
    place: Share,
    /// Users of this thread; behind them come the places of their lanes.
    pub(super) count: u32,
    /// Users and lanes that go on as soon as what happens now has been dealt with.
    pub ready: Vec<u32>,
    /// Users of this thread that have started.
    started: u64,
}

impl UserValues {
    pub(super) fn new(job: &Job, users: usize, place: Share) -> Self {
        let plain = job.scenarios.walk.is_plain() && job.scenarios.shape.is_none();
        let count = if plain { 0 } else { job.places(users) };
        Self {
            users: (0..count).map(|_| UserState::default()).collect(),
            count: users as u32,
            ready: Vec::new(),
            nothing: Vars::default(),
            passed: Passed {
                notes: job.log.is_some().then(Vec::new),
                ..Passed::default()
            },
            place,
            started: 0,
        }
    }

    /// Whether users carry nothing.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The number of a user of a closed load among those of all threads and engines.
    #[inline]
    pub(super) fn number(&self, index: u32) -> u64 {
        self.place.number(self.user(index).into())
    }

    /// The user of a place, which may be a lane.
    #[inline]
    pub(super) fn user(&self, index: u32) -> u32 {
        if index < self.count {
            index
        } else {
            index % self.count
        }
    }

    /// The first step of a user's next iteration, or its first. `None`: no row is left for it.
    pub(super) fn start_iteration(
        &mut self,
        job: &Job,
        index: u32,
        before: Option<u16>,
        (rng, unix_ns): (&mut SmallRng, u64),
    ) -> Option<u16> {
        let population = job.populations.of(self.number(index));
        let state = &mut self.users[index as usize];
        let step = job.scenarios.walk.begin(before, population.place, rng);
        if let Some(program) = &job.scenarios.program {
            if before.is_none() {
                state.cursor = None;
            }
            state
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
            let number = self.place.number(place);
            if starts {
                self.started += 1;
                state.vars = None;
            }
            let vars = state.vars.get_or_insert_with(|| Box::new(Vars::new(shape)));
            if starts {
                vars.number = population.number_in_group(number);
                vars.started = self.started;
            }
            vars.unix_ns = unix_ns;
            vars.iteration += 1;
            vars.forget_captured(shape);
            if let Some(given) = &job.scenarios.given_cookies
                && (starts || job.scenarios.forgets_cookies)
            {
                vars.cookies.clone_from(given);
            }
            if let Some(cache) = vars.cache.as_mut().filter(|_| job.scenarios.forgets_cache) {
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
                let value = text.text(&job.scenarios.shared, vars, rng);
                vars.set(*slot, value);
            }
        }
        Some(step)
    }

    /// What follows in a scenario with blocks or loops, behind requests that have no response yet.
    pub(super) fn next_in_program<'a>(
        &mut self,
        job: &Job,
        index: u32,
        pending: impl Iterator<Item = &'a Pending> + Clone,
        (now_ns, unix_ns): (u64, u64),
        rng: &mut SmallRng,
    ) -> Move {
        let user = self.user(index);
        let own = (
            self.users[index as usize].cursor.take(),
            self.users[user as usize].vars.take(),
        );
        let (Some(mut cursor), Some(mut vars)) = own else {
            return Move::Walked;
        };
        vars.unix_ns = unix_ns;
        let (who, carried) = ((index, user), (&mut *cursor, &mut *vars));
        let following = self.walk_on(job, who, carried, pending, (now_ns, rng));
        self.users[index as usize].cursor = Some(cursor);
        self.users[user as usize].vars = Some(vars);
        following
    }

    fn walk_on<'a>(
        &mut self,
        job: &Job,
        (index, user): (u32, u32),
        (cursor, vars): (&mut Cursor, &mut Vars),
        pending: impl Iterator<Item = &'a Pending> + Clone,
        (now_ns, rng): (u64, &mut SmallRng),
    ) -> Move {
        let Some(program) = &job.scenarios.program else {
            return Move::Walked;
        };
        let unanswered = Unanswered {
            any: pending.clone().next().is_some(),
            captures: captures(job, pending.clone()),
        };
        let shared = &job.scenarios.shared;
        for _ in 0..MAX_PASSED_OVER {
            let was_idle = cursor.is_idle();
            let passed = &mut self.passed;
            match program.advance(cursor, vars, (shared, rng), unanswered, now_ns, passed) {
                Advance::Walked => return Move::Walked,
                Advance::Lost => return Move::Stuck,
                Advance::Waits => return Move::Waits,
                Advance::Fork(fork) => self.fork(user, program, fork, (cursor, vars), now_ns),
                Advance::BranchEnded => {
                    let following = self.next_branch((index, user), program, (cursor, vars));
                    if let Some(following) = following {
                        return following;
                    }
                }
                Advance::Call(call) => {
                    let caller = Caller {
                        thread: self.place.thread,
                        place: user,
                        started: vars.started,
                    };
                    if !call_script(job, &program.calls[call], (call, caller), vars, rng) {
                        return Move::Stuck;
                    }
                }
                Advance::Request(step) => {
                    let next = needs(job, step, vars, pending.clone());
                    if next == Move::Waits {
                        cursor.step_back(was_idle);
                    }
                    if next != Move::to(step) {
                        return next;
                    }
                    let request = &job.scenarios.steps[usize::from(step)].request;
                    let after = Duration::from_nanos(self.passed.pause_ns);
                    let mut context = RenderContext { shared, vars, rng };
                    if !request.is_fresh(&mut context, after) {
                        self.sends(user);
                        return next;
                    }
                    cursor.pass_over(was_idle);
                }
            }
        }
        Move::Stuck
    }

    /// Whether its iteration has sent nothing.
    pub(super) fn is_idle(&self, index: u32) -> bool {
        let cursor = &self.users[index as usize].cursor;
        cursor.as_ref().is_some_and(|cursor| cursor.is_idle())
    }

    /// What follows this step in a scenario without blocks.
    pub(super) fn next<'a>(
        &mut self,
        job: &Job,
        index: u32,
        step: u16,
        pending: impl Iterator<Item = &'a Pending> + Clone,
    ) -> Move {
        let Some(next) = job.scenarios.walk.next(step) else {
            // What belongs to this iteration must have come before the next begins.
            return match captures(job, pending) {
                true => Move::Waits,
                false => Move::Walked,
            };
        };
        match &self.users[index as usize].vars {
            Some(vars) => needs(job, next, vars, pending),
            None => Move::to(next),
        }
    }

    /// The values of a user, for use at that time of the wall clock.
    pub(super) fn vars(&mut self, index: u32, unix_ns: u64) -> &mut Vars {
        let user = self.user(index);
        let vars = self
            .users
            .get_mut(user as usize)
            .and_then(|state| state.vars.as_deref_mut())
            .unwrap_or(&mut self.nothing);
        vars.unix_ns = unix_ns;
        vars
    }
}

/// Lets the script do a task for a user; whether the user goes on.
fn call_script(
    job: &Job,
    call: &ScriptCall,
    (task, caller): (usize, Caller),
    vars: &mut Vars,
    rng: &mut SmallRng,
) -> bool {
    let Some(script) = &job.called_script else {
        return false;
    };
    let shared = &job.scenarios.shared;
    let given = call.given.iter();
    let given: Vec<Vec<u8>> = given.map(|text| text.text(shared, vars, rng)).collect();
    match script.call(caller, task, &given) {
        Ok(Some(values)) => {
            for (slot, value) in call.taken.iter().zip(values) {
                vars.set(*slot, value);
            }
            true
        }
        Ok(None) => false,
        Err(sentence) => {
            script.fail(sentence);
            false
        }
    }
}

/// Whether one of these gives the user a value.
fn captures<'a>(job: &Job, mut pending: impl Iterator<Item = &'a Pending>) -> bool {
    pending.any(|pending| job.steps[usize::from(pending.step)].captures)
}

/// Whether the values that a step needs are there, or may still come.
fn needs<'a>(
    job: &Job,
    step: u16,
    vars: &Vars,
    mut pending: impl Iterator<Item = &'a Pending>,
) -> Move {
    let compiled = &job.scenarios.steps[usize::from(step)];
    let sent = || match compiled.request.cannot_hold(&job.scenarios.shared, vars) {
        true => Move::Stuck,
        false => Move::to(step),
    };
    let slots = &compiled.needs;
    if slots.is_empty() {
        return sent();
    }
    let brings = |pending: &Pending| {
        let look = &job.scenarios.steps[usize::from(pending.step)].look;
        look.as_ref()
            .is_some_and(|look| look.sets().any(|slot| slots.contains(&slot)))
    };
    if pending.any(brings) {
        return Move::Waits;
    }
    let has = |slot: &usize| vars.captured.get(*slot).is_some_and(Option::is_some);
    match slots.iter().all(has) {
        true => sent(),
        false => Move::Stuck,
    }
}

impl Users {
    /// Writes the request of a step with this user's values, or the one that follows a redirect.
    pub(super) fn write_request(
        &mut self,
        index: u32,
        (step, last): (usize, bool),
        again: Option<&Again<'_>>,
        spare: Vec<u8>,
        now_ns: u64,
    ) -> Outgoing {
        let unix_ns = self.unix_ns(now_ns);
        let mut context = RenderContext {
            shared: &self.job.scenarios.shared,
            vars: self.values.vars(index, unix_ns),
            rng: &mut self.rng,
        };
        let request = &self.job.scenarios.steps[step].request;
        match again {
            None => request.write(last, &mut context, spare),
            Some(again) => request.write_again(again, last, context.vars, spare),
        }
    }

    /// Where the response of this step is copied to, if it is looked at.
    #[inline]
    pub(super) fn wanted<'a>(
        captured: &'a mut CapturedResponse,
        step: &StepJob,
    ) -> Option<&'a mut CapturedResponse> {
        if !step.looks {
            return None;
        }
        captured.with_body = step.looks_at_body;
        Some(captured)
    }
}
