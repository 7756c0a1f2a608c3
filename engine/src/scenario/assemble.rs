//! Makes a [`Program`] of the blocks of a plan. Errors say what is wrong with a block.

mod rounds;

use std::sync::atomic::AtomicU64;

use super::block_check::check_block;
use super::condition::Test;
use super::fork::Fork;
use super::names::{Numbered, check_name};
use super::program::{Counter, Op, Program, ScriptCall};
use super::template::{Scope, Template};
use crate::check::ms_to_ns;
use crate::pace::rate::{Rate, RateStretch};
use crate::pace::think::ThinkTime;
use crate::plan::{Block, Call, Condition, Node, Pace, PacePhase, Per, Scenario, Step};

/// Deeper nesting is a mistake in the plan.
const MAX_DEPTH: usize = 32;

/// Gives the number of a transaction's figure by its name.
pub type Figure<'a> = &'a mut dyn FnMut(&str) -> usize;

/// Compiles what lies inside a block.
type Inside<'a, 'b> =
    &'a mut dyn FnMut(&mut Assembly<'b>, &[Node], &mut Scope) -> Result<(), String>;

/// Programs of scenarios, one after the other.
#[derive(Debug)]
pub struct Assembly<'a> {
    numbered: &'a Numbered,
    ops: Vec<Op>,
    entries: Vec<usize>,
    registers: usize,
    kept: Vec<usize>,
    lists: usize,
    shared: usize,
    /// Those with a name.
    paces: Vec<(Pace, (Counter, Counter))>,
    /// The next request, counted through all scenarios.
    step: u16,
    /// Notes of the present scenario so far.
    notes: usize,
    calls: Vec<ScriptCall>,
    forks: Vec<Fork>,
    /// What is compiled lies in a branch.
    in_branch: bool,
}

/// The names that captures and blocks among these give values to.
pub fn names(nodes: &[Node], numbered: &Numbered) -> Vec<String> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Request(step) => {
                found.extend(step.capture.iter().flat_map(|one| numbered.names(one)));
                found.extend(step.resources.iter().map(|one| one.into.clone()));
            }
            Node::Block(block) => {
                found.extend(block.set.iter().map(|(name, _)| name.clone()));
                let taken = block.call.iter().flat_map(|call| &call.take);
                found.extend(taken.map(|(_, name)| name.clone()));
                if let Some(repeat) = &block.repeat {
                    found.extend(repeat.element.clone());
                    found.extend(repeat.index.clone());
                }
                let parallel = block.parallel.as_ref();
                found.extend(parallel.and_then(|parallel| parallel.element.clone()));
                found.extend(names(&block.steps, numbered));
                found.extend(names(&block.otherwise, numbered));
            }
        }
    }
    found
}

impl<'a> Assembly<'a> {
    pub fn new(numbered: &'a Numbered) -> Self {
        Self {
            numbered,
            ops: Vec::new(),
            entries: Vec::new(),
            registers: 0,
            kept: Vec::new(),
            lists: 0,
            shared: 0,
            paces: Vec::new(),
            step: 0,
            notes: 0,
            calls: Vec::new(),
            forks: Vec::new(),
            in_branch: false,
        }
    }

    pub fn scenario(
        &mut self,
        scenario: &Scenario,
        scope: &mut Scope,
        figure: Figure<'_>,
    ) -> Result<(), String> {
        self.entries.push(self.ops.len());
        self.notes = 0;
        let round = self.begin_rounds(u64::from(scenario.loops));
        self.nodes(&scenario.steps, scope, figure, 0)?;
        self.end_rounds(round);
        self.ops.push(Op::Walked);
        Ok(())
    }

    pub fn finish(self) -> Program {
        Program {
            ops: self.ops,
            calls: self.calls,
            entries: self.entries,
            registers: self.registers,
            kept: self.kept,
            lists: self.lists,
            forks: self.forks,
            shared: (0..self.shared).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn nodes(
        &mut self,
        nodes: &[Node],
        scope: &mut Scope,
        figure: Figure<'_>,
        depth: usize,
    ) -> Result<(), String> {
        refuse_if! {
            depth > MAX_DEPTH => "blocks are nested deeper than {MAX_DEPTH}, expected less";
        }
        for node in nodes {
            match node {
                Node::Request(step) => self.request(step, scope)?,
                Node::Block(block) => self.block(block, scope, figure, depth)?,
            }
        }
        Ok(())
    }

    fn request(&mut self, step: &Step, scope: &mut Scope) -> Result<(), String> {
        let round = self.begin_rounds(u64::from(step.repeat));
        if let Some(think) = &step.think_before {
            self.ops.push(Op::Pause(ThinkTime::new(think)));
        }
        let over = match &step.skip_if {
            None => None,
            Some(condition) => Some(self.skip(step, condition, scope)?),
        };
        self.ops.push(Op::Request(self.step));
        self.step += 1;
        self.land(over);
        self.end_rounds(round);
        Ok(())
    }

    /// What happens in place of a request where its condition holds; the jump over the request.
    fn skip(
        &mut self,
        step: &Step,
        condition: &Condition,
        scope: &mut Scope,
    ) -> Result<usize, String> {
        let gate = self.gate(Op::JumpUnless(Test::compile(condition, scope)?, 0));
        self.note(&step.skip_note, scope)?;
        for capture in &step.capture {
            if let Some(default) = &capture.default {
                let text = Template::literal(default.as_bytes());
                self.ops.push(Op::Set(scope.capture(&capture.name), text));
            }
        }
        let over = self.gate(Op::Jump(0));
        self.land(Some(gate));
        Ok(over)
    }

    fn note(&mut self, text: &str, scope: &mut Scope) -> Result<(), String> {
        let text = Template::of(text, "note", scope)?;
        self.ops.push(Op::Note(self.notes, text));
        self.notes += 1;
        Ok(())
    }

    fn block(
        &mut self,
        block: &Block,
        scope: &mut Scope,
        figure: Figure<'_>,
        depth: usize,
    ) -> Result<(), String> {
        check_block(block)?;
        let steps = &block.steps;
        let mut inside = |me: &mut Self, nodes: &[Node], scope: &mut Scope| {
            me.nodes(nodes, scope, figure, depth + 1)
        };
        if let Some(repeat) = &block.repeat {
            let (register, start, gate) = self.begin_loop(repeat, scope)?;
            inside(self, steps, scope)?;
            self.ops.push(Op::Add(register));
            self.ops.push(Op::Jump(start));
            self.land(gate);
        } else if let Some(parallel) = &block.parallel {
            self.parallel(parallel, steps, scope, &mut inside)?;
        } else if let Some(condition) = &block.condition {
            let gate = self.gate(Op::JumpUnless(Test::compile(condition, scope)?, 0));
            inside(self, steps, scope)?;
            if block.otherwise.is_empty() {
                self.land(Some(gate));
            } else {
                let over = self.gate(Op::Jump(0));
                self.land(Some(gate));
                inside(self, &block.otherwise, scope)?;
                self.land(Some(over));
            }
        } else if block.once.is_some() {
            let register = self.kept();
            let gate = self.gate(Op::JumpUnlessFirst(register, 0));
            inside(self, steps, scope)?;
            self.land(Some(gate));
        } else if let Some(share) = &block.share {
            let counter = self.counter(share.per);
            let gate = self.gate(Op::JumpUnlessShare(
                share.percent / 100.0,
                share.rounding,
                counter,
                0,
            ));
            inside(self, steps, scope)?;
            self.land(Some(gate));
        } else if let Some(choice) = block.choice {
            self.choice(choice, block, scope, &mut inside)?;
        } else if let Some(name) = &block.transaction {
            let number = figure(name);
            self.ops.push(Op::Begin(number));
            self.nodes(steps, scope, figure, depth + 1)?;
            self.ops.push(Op::End);
        } else if let Some(think) = &block.pause {
            self.ops.push(Op::Pause(ThinkTime::new(think)));
        } else if let Some(pace) = &block.pace {
            let (last, first) = self.pace_counters(pace)?;
            self.ops.push(match pace.per_min {
                Some(per_min) => Op::Pace((60e9 / per_min).round() as u64, last),
                None => Op::Follow(Box::new(rate(pace)), last, first),
            });
        } else if block.group.is_some() {
            inside(self, steps, scope)?;
        } else if let Some(call) = &block.call {
            let call = Self::call(call, scope)?;
            self.ops.push(Op::Call(self.calls.len()));
            self.calls.push(call);
        } else if let Some(text) = &block.note {
            self.note(text, scope)?;
        }
        for (name, value) in &block.set {
            check_name(name)?;
            let text = Template::of(value, &format!("set {name}"), scope)?;
            self.ops.push(Op::Set(scope.capture(name), text));
        }
        Ok(())
    }

    fn call(call: &Call, scope: &mut Scope) -> Result<ScriptCall, String> {
        let mut given = Vec::with_capacity(call.give.len());
        for (name, text) in &call.give {
            given.push(Template::of(text, &format!("call.give {name}"), scope)?);
        }
        let mut taken = Vec::with_capacity(call.take.len());
        for (_, name) in &call.take {
            check_name(name)?;
            taken.push(scope.capture(name));
        }
        Ok(ScriptCall { given, taken })
    }

    /// Rounds that are counted; none when there is but one.
    fn begin_rounds(&mut self, rounds: u64) -> Option<(usize, usize)> {
        (rounds > 1).then(|| {
            let register = self.register();
            self.ops.push(Op::Zero(register));
            let gate = self.gate(Op::JumpUnlessBelow(register, rounds, 0));
            (register, gate)
        })
    }

    fn end_rounds(&mut self, round: Option<(usize, usize)>) {
        if let Some((register, gate)) = round {
            self.ops.push(Op::Add(register));
            self.ops.push(Op::Jump(gate));
            self.land(Some(gate));
        }
    }

    fn register(&mut self) -> usize {
        self.registers += 1;
        self.registers - 1
    }

    /// One that a user counts in from its start to its end.
    fn kept(&mut self) -> usize {
        let register = self.register();
        self.kept.push(register);
        register
    }

    fn counter(&mut self, per: Per) -> Counter {
        match per {
            Per::User => Counter::Own(self.kept()),
            Per::Run => {
                self.shared += 1;
                Counter::Shared(self.shared - 1)
            }
        }
    }

    /// When the last passage was due, and when the first one.
    fn pace_counters(&mut self, pace: &Pace) -> Result<(Counter, Counter), String> {
        let Some(name) = &pace.name else {
            return Ok((self.counter(pace.per), self.counter(pace.per)));
        };
        let known = self
            .paces
            .iter()
            .find(|(known, ..)| known.name.as_ref() == Some(name));
        let (known, counters) = match known {
            Some(known) => known.clone(),
            None => {
                let counters = (self.counter(pace.per), self.counter(pace.per));
                self.paces.push((pace.clone(), counters));
                (pace.clone(), counters)
            }
        };
        refuse_if! {
            known.per != pace.per =>
                "pace {name:?} is per user here and per run there, expected the same";
            known.phases != pace.phases =>
                "pace {name:?} has other phases here than there, expected the same";
        }
        Ok(counters)
    }

    /// Adds a jump whose target is not known yet.
    fn gate(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    /// The jump goes to what comes next.
    fn land(&mut self, gate: Option<usize>) {
        let here = self.ops.len();
        if let Some(
            Op::Jump(to)
            | Op::JumpUnless(_, to)
            | Op::JumpUnlessBelow(_, _, to)
            | Op::JumpUnlessListed(_, _, to)
            | Op::JumpUnlessFirst(_, to)
            | Op::JumpUnlessShare(_, _, _, to),
        ) = gate.and_then(|gate| self.ops.get_mut(gate))
        {
            *to = here;
        }
    }
}

fn rate(pace: &Pace) -> Rate {
    let stretch = |phase: &PacePhase| RateStretch {
        duration_ns: ms_to_ns(phase.duration_ms),
        from_per_s: phase.from_per_s,
        to_per_s: phase.to_per_s,
    };
    Rate::new(&pace.phases.iter().map(stretch).collect::<Vec<_>>())
}
