//! From one request of a user to the next: the next step of its iteration, or the first of the next
//! one.

use super::phase::Move;
use super::{Context, Users};
use crate::record::Ended;

impl Users {
    /// A user comes to its first request.
    #[inline]
    pub(super) fn set_out(&mut self, index: u32, cx: &mut Context<'_>) -> Move {
        let Some(step) = self.begin_iteration(index, None, cx.now_ns) else {
            return Move::Stuck;
        };
        match self.job.scenarios.program {
            None => Move::to(step),
            Some(_) => self.move_on_in_program(index, step, cx),
        }
    }

    /// A user starts, or begins its next iteration after a step of the one before. `None`: it has
    /// nothing to go on with.
    #[inline]
    fn begin_iteration(&mut self, index: u32, before: Option<u16>, now_ns: u64) -> Option<u16> {
        if self.values.is_empty() {
            if self.job.script.is_none() {
                return Some(0);
            }
            return Some(self.job.script_thread(index as usize, &self.place));
        }
        let unix_ns = self.unix_ns(now_ns);
        self.values
            .begin(&self.job, index, before, (&mut self.rng, unix_ns))
    }

    /// The step of the last request that a user has written, or come to.
    #[inline]
    fn last_step(&self, index: u32) -> u16 {
        let behind = self
            .queues
            .as_ref()
            .and_then(|queues| queues.of(index).back());
        behind.map_or(self.all[index as usize].step, |pending| pending.step)
    }

    /// What comes after the last request that was written. `breaks_off`: the rest of its iteration
    /// is left out.
    #[inline]
    pub(super) fn move_on(&mut self, index: u32, breaks_off: bool, cx: &mut Context<'_>) -> Move {
        let before = self.last_step(index);
        if breaks_off {
            let others = self.break_branches(index, false);
            return others.unwrap_or_else(|| self.break_off(index, before, cx));
        }
        if self.job.scenarios.program.is_some() {
            return self.move_on_in_program(index, before, cx);
        }
        let mut ended = Move::Walked;
        if let Some(script) = &self.job.script {
            // A thread of the script is a step, and its users stay there.
            if script.has_stopped(usize::from(before)) {
                return Move::Walked;
            }
        } else if self.values.is_empty() {
            if usize::from(before) + 1 < self.job.steps.len() {
                return Move::to(before + 1);
            }
        } else {
            let pending = self.queues.iter().flat_map(|queues| queues.of(index));
            ended = self.values.next(&self.job, index, before, pending);
            if matches!(ended, Move::To { .. } | Move::Waits) {
                return ended;
            }
        }
        if !self.has_iterations_left(index) {
            return ended;
        }
        match self.begin_iteration(index, Some(before), cx.now_ns) {
            Some(step) => Move::to(step),
            None => Move::Stuck,
        }
    }

    /// Counts an iteration; whether another follows.
    #[inline]
    fn has_iterations_left(&mut self, index: u32) -> bool {
        let population = self.job.populations.of(self.values.number(index));
        let user = &mut self.all[index as usize];
        user.iterations += 1;
        user.iterations < population.iterations
    }

    /// The same as [`Self::move_on`] in a scenario with blocks or loops.
    #[inline(never)]
    pub(super) fn move_on_in_program(
        &mut self,
        index: u32,
        before: u16,
        cx: &mut Context<'_>,
    ) -> Move {
        let clocks = (cx.now_ns, self.unix_ns(cx.now_ns));
        let pending = self.queues.iter().flat_map(|queues| queues.of(index));
        let next = self
            .values
            .next_in_program(&self.job, index, pending, clocks, &mut self.rng);
        for done in self.values.passed.ended.drain(..) {
            cx.record
                .recorder
                .transaction_completed(done.figure, done.service_ns, done.failed);
        }
        if self.values.passed.notes.is_some() {
            self.write_notes(index, before, cx);
        }
        let ended = match next {
            Move::BranchEnded { .. } => {
                let pause_ns = std::mem::take(&mut self.values.passed.pause_ns);
                return Move::BranchEnded { pause_ns };
            }
            Move::To { step, .. } => {
                let pause_ns = std::mem::take(&mut self.values.passed.pause_ns);
                return Move::To { step, pause_ns };
            }
            Move::Walked => {
                // What blocks have set since the last response.
                if !self.job.scenarios.reported.is_empty() {
                    let vars = self.values.vars(index, clocks.1);
                    self.job.scenarios.reported.keep(vars);
                }
                Move::Walked
            }
            Move::Waits | Move::Later { .. } => return next,
            Move::Stuck => {
                let script = self.job.called_script.as_ref();
                if script.is_some_and(|script| script.error().is_some()) {
                    cx.record.script_failed();
                }
                self.values.passed.pause_ns = 0;
                if let Some(others) = self.break_branches(index, false) {
                    return others;
                }
                Move::Stuck
            }
        };
        let idle = self.values.is_idle(index);
        if !self.has_iterations_left(index) {
            self.values.passed.pause_ns = 0;
            return ended;
        }
        let Some(step) = self.begin_iteration(index, Some(before), cx.now_ns) else {
            self.values.passed.pause_ns = 0;
            return Move::Stuck;
        };
        // One that has sent something does not come here again before the next has: so this goes no
        // deeper than once.
        if idle {
            let pause_ns = std::mem::take(&mut self.values.passed.pause_ns);
            Move::Later { step, pause_ns }
        } else {
            self.move_on_in_program(index, step, cx)
        }
    }

    /// Hands the notes that were passed to the log; they belong to the scenario of this step.
    #[cold]
    fn write_notes(&mut self, index: u32, step: u16, cx: &mut Context<'_>) {
        let notes = self.values.passed.notes.as_mut().map(std::mem::take);
        for note in notes.unwrap_or_default() {
            let ended = Ended {
                step,
                ..self.ended(index, cx.now_ns)
            };
            cx.record.note(&ended, note, cx.now_ns);
        }
    }

    /// Leaves the rest of an iteration out, and goes on with the next.
    #[inline(never)]
    pub(super) fn break_off(&mut self, index: u32, before: u16, cx: &mut Context<'_>) -> Move {
        let goes_on = self.has_iterations_left(index);
        let begun = goes_on.then(|| self.begin_iteration(index, Some(before), cx.now_ns));
        let Some(Some(step)) = begun else {
            self.values.passed.pause_ns = 0;
            return Move::Stuck;
        };
        match self.job.scenarios.program {
            Some(_) => self.move_on_in_program(index, step, cx),
            None => Move::to(step),
        }
    }
}
