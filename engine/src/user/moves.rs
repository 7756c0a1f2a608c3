//! Where the scenario leads a user: to the next step of its iteration, or to the first of the next one.

use super::{Context, Users};
use crate::record::Ended;

/// Where a user goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// To the request of this step, perhaps in the next iteration, after the pauses on the way.
    To { step: u16, pause_ns: u64 },
    /// To an iteration, after one that has sent nothing, and after a pause.
    Later { step: u16, pause_ns: u64 },
    /// It has ended, after the last step of its scenario.
    Walked,
    /// It has ended before: a value was missing, or no row is left for it.
    Stuck,
    /// What comes next depends on a response that has not come.
    Waits,
    /// A branch has ended, with this pause, and what comes next waits for the others.
    BranchEnded { pause_ns: u64 },
}

impl Move {
    #[inline]
    pub const fn to(step: u16) -> Self {
        Self::To { step, pause_ns: 0 }
    }
}

impl Users {
    /// To the first request of a user that starts.
    #[inline]
    pub(super) fn first_move(&mut self, index: u32, cx: &mut Context<'_>) -> Move {
        match self.start_iteration(index, None, cx.now_ns) {
            Some(step) => self.move_from_start(index, step, cx),
            None => Move::Stuck,
        }
    }

    /// To what comes after the last request written. `breaks_off`: in the next iteration.
    #[inline]
    pub(super) fn next_move(&mut self, index: u32, breaks_off: bool, cx: &mut Context<'_>) -> Move {
        let queues = self.queues.as_ref();
        let behind = queues.and_then(|queues| queues.of(index).back());
        let before = behind.map_or(self.all[index as usize].step, |pending| pending.step);
        if breaks_off {
            let others = self.break_branches(index, false);
            return others.unwrap_or_else(|| self.next_iteration(index, before, Move::Stuck, cx));
        }
        if self.job.scenarios.program.is_some() {
            return self.move_in_program(index, before, cx);
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
        self.next_iteration(index, before, ended, cx)
    }

    /// To the next iteration after a step of the one before; or the user has `ended` with that.
    #[inline]
    pub(super) fn next_iteration(
        &mut self,
        index: u32,
        before: u16,
        ended: Move,
        cx: &mut Context<'_>,
    ) -> Move {
        let idle = self.job.scenarios.program.is_some() && self.values.is_idle(index);
        let population = self.job.populations.of(self.values.number(index));
        let user = &mut self.all[index as usize];
        user.iterations += 1;
        if user.iterations >= population.iterations {
            self.values.passed.pause_ns = 0;
            return ended;
        }
        let Some(step) = self.start_iteration(index, Some(before), cx.now_ns) else {
            self.values.passed.pause_ns = 0;
            return Move::Stuck;
        };
        if idle {
            let pause_ns = std::mem::take(&mut self.values.passed.pause_ns);
            return Move::Later { step, pause_ns };
        }
        self.move_from_start(index, step, cx)
    }

    /// The first step of a user's next iteration, or of its first. `None`: there is none.
    #[inline]
    fn start_iteration(&mut self, index: u32, before: Option<u16>, now_ns: u64) -> Option<u16> {
        if self.values.is_empty() {
            // 0 without a script.
            return Some(self.job.script_thread(index as usize, &self.place));
        }
        let unix_ns = self.unix_ns(now_ns);
        self.values
            .start_iteration(&self.job, index, before, (&mut self.rng, unix_ns))
    }

    #[inline]
    fn move_from_start(&mut self, index: u32, step: u16, cx: &mut Context<'_>) -> Move {
        match self.job.scenarios.program {
            None => Move::to(step),
            // What has sent nothing does not lead here again: so this goes no deeper than once.
            Some(_) => self.move_in_program(index, step, cx),
        }
    }

    /// The same as [`Self::next_move`] in a scenario with blocks or loops.
    #[inline(never)]
    pub(super) fn move_in_program(
        &mut self,
        index: u32,
        before: u16,
        cx: &mut Context<'_>,
    ) -> Move {
        let clocks = (cx.now_ns, self.unix_ns(cx.now_ns));
        let pending = self.queues.iter().flat_map(|queues| queues.of(index));
        let mut next =
            self.values
                .next_in_program(&self.job, index, pending, clocks, &mut self.rng);
        for done in self.values.passed.ended.drain(..) {
            let (figure, took_ns) = (done.figure, done.service_ns);
            let recorder = &mut cx.record.recorder;
            recorder.transaction_completed(figure, took_ns, done.failed);
        }
        if self.values.passed.notes.is_some() {
            self.write_notes(index, before, cx);
        }
        if let Move::To { pause_ns, .. } | Move::BranchEnded { pause_ns } = &mut next {
            *pause_ns = std::mem::take(&mut self.values.passed.pause_ns);
            return next;
        }
        match next {
            // What blocks have set since the last response.
            Move::Walked if !self.job.scenarios.reported.is_empty() => {
                let vars = self.values.vars(index, clocks.1);
                self.job.scenarios.reported.keep(vars);
            }
            Move::Stuck => {
                let script = self.job.called_script.as_ref();
                if script.is_some_and(|script| script.error().is_some()) {
                    cx.record.script_failed();
                }
                self.values.passed.pause_ns = 0;
                if let Some(others) = self.break_branches(index, false) {
                    return others;
                }
            }
            Move::Waits => return next,
            _ => {}
        }
        self.next_iteration(index, before, next, cx)
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
}
