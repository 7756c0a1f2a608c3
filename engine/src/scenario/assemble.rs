//! Makes a [`Program`] of the blocks of a plan. Errors say what is wrong with a block.

use std::sync::atomic::AtomicU64;

use rand::distr::weighted::WeightedIndex;

use super::condition::Test;
use super::names::{Numbered, check_name};
use super::program::{Counter, Op, Program, ScriptCall};
use super::template::{BadTemplate, Scope, Template};
use crate::check::ms_to_ns;
use crate::pace::rate::{Rate, RateStretch};
use crate::pace::think::ThinkTime;
use crate::plan::{Block, Call, Choice, Loop, Node, Pace, PacePhase, Per, Scenario, Step};

/// Deeper nesting is a mistake in the plan.
const MAX_DEPTH: usize = 32;

/// Gives the number of a transaction's figure by its name.
pub type Figure<'a> = &'a mut dyn FnMut(&str) -> usize;

/// Compiles what lies inside a block.
type Inside<'a> = &'a mut dyn FnMut(&mut Assembly, &[Node], &mut Scope) -> Result<(), String>;

/// Programs of scenarios, one after the other.
#[derive(Debug, Default)]
pub struct Assembly {
    ops: Vec<Op>,
    entries: Vec<usize>,
    registers: usize,
    lists: usize,
    shared: usize,
    /// Those with a name.
    paces: Vec<(Pace, (Counter, Counter))>,
    /// The next request, counted through all scenarios.
    step: u16,
    calls: Vec<ScriptCall>,
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
                found.extend(names(&block.steps, numbered));
                found.extend(names(&block.otherwise, numbered));
            }
        }
    }
    found
}

impl Assembly {
    pub fn scenario(
        &mut self,
        scenario: &Scenario,
        scope: &mut Scope,
        figure: Figure<'_>,
    ) -> Result<(), String> {
        self.entries.push(self.ops.len());
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
            lists: self.lists,
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
        if depth > MAX_DEPTH {
            return Err(format!(
                "blocks are nested deeper than {MAX_DEPTH}, expected less"
            ));
        }
        for node in nodes {
            match node {
                Node::Request(step) => self.request(step),
                Node::Block(block) => self.block(block, scope, figure, depth)?,
            }
        }
        Ok(())
    }

    fn request(&mut self, step: &Step) {
        let round = self.begin_rounds(u64::from(step.repeat));
        if let Some(think) = &step.think_before {
            self.ops.push(Op::Pause(ThinkTime::new(think)));
        }
        self.ops.push(Op::Request(self.step));
        self.step += 1;
        self.end_rounds(round);
    }

    fn block(
        &mut self,
        block: &Block,
        scope: &mut Scope,
        figure: Figure<'_>,
        depth: usize,
    ) -> Result<(), String> {
        check_keys(block)?;
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
            let register = self.register();
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
        }
        for (name, value) in &block.set {
            check_name(name)?;
            let text = Template::compile(value, scope)
                .map_err(|BadTemplate { at, why }| format!("set {name}, character {at}: {why}"))?;
            self.ops.push(Op::Set(scope.capture(name), text));
        }
        Ok(())
    }

    fn call(call: &Call, scope: &mut Scope) -> Result<ScriptCall, String> {
        let mut given = Vec::with_capacity(call.give.len());
        for (name, text) in &call.give {
            let template = Template::compile(text, scope).map_err(|BadTemplate { at, why }| {
                format!("call.give {name}, character {at}: {why}")
            })?;
            given.push(template);
        }
        let mut taken = Vec::with_capacity(call.take.len());
        for (_, name) in &call.take {
            check_name(name)?;
            taken.push(scope.capture(name));
        }
        Ok(ScriptCall { given, taken })
    }

    /// The register that counts rounds, where a round begins, and the jump behind the loop; none of
    /// a loop for ever.
    fn begin_loop(
        &mut self,
        repeat: &Loop,
        scope: &mut Scope,
    ) -> Result<(usize, usize, Option<usize>), String> {
        let register = self.register();
        self.ops.push(Op::Zero(register));
        let start = self.ops.len();
        if let Some(name) = &repeat.each {
            return self.begin_each(name, repeat, register, scope);
        }
        if repeat.as_json {
            return Err("loop has as_json without each, expected each: NAME beside it".to_owned());
        }
        let gate = match (&repeat.count, &repeat.condition, &repeat.over) {
            (Some(count), None, None) => {
                Some(self.gate(Op::JumpUnlessBelow(register, u64::from(*count), 0)))
            }
            (None, Some(condition), None) => {
                Some(self.gate(Op::JumpUnless(Test::compile(condition, scope)?, 0)))
            }
            (None, None, Some(over)) => {
                Some(self.gate(Op::JumpUnlessBelow(register, over.len() as u64, 0)))
            }
            (None, None, None) => None,
            _ => {
                return Err(
                    "loop has several of count, while, over and each, expected at most one"
                        .to_owned(),
                );
            }
        };
        if let Some(name) = &repeat.element {
            check_name(name)?;
            let Some(over) = &repeat.over else {
                return Err(
                    "loop has as without over and each, expected over: […] or each: NAME beside it"
                        .to_owned(),
                );
            };
            let elements = over.iter().map(|text| text.as_bytes().into()).collect();
            self.ops
                .push(Op::Element(register, scope.capture(name), elements));
        }
        if let Some(name) = &repeat.index {
            check_name(name)?;
            self.ops.push(Op::Index(register, scope.capture(name)));
        }
        Ok((register, start, gate))
    }

    /// The same of a loop over the elements of a value, whose list is made once when the loop begins.
    fn begin_each(
        &mut self,
        name: &str,
        repeat: &Loop,
        register: usize,
        scope: &mut Scope,
    ) -> Result<(usize, usize, Option<usize>), String> {
        if repeat.count.is_some() || repeat.condition.is_some() || repeat.over.is_some() {
            return Err(
                "loop has several of count, while, over and each, expected at most one".to_owned(),
            );
        }
        let slot = scope.capture(name);
        if !scope.visible.contains(&slot) {
            return Err(format!(
                "loop.each names {name:?}, which nothing in this scenario captures or sets"
            ));
        }
        let list = self.lists;
        self.lists += 1;
        self.ops.push(Op::Spread(slot, list));
        let start = self.ops.len();
        let gate = self.gate(Op::JumpUnlessListed(register, list, 0));
        if let Some(name) = &repeat.element {
            check_name(name)?;
            let slot = scope.capture(name);
            self.ops
                .push(Op::Listed(register, list, slot, repeat.as_json));
        }
        if let Some(name) = &repeat.index {
            check_name(name)?;
            self.ops.push(Op::Index(register, scope.capture(name)));
        }
        Ok((register, start, Some(gate)))
    }

    fn choice(
        &mut self,
        choice: Choice,
        block: &Block,
        scope: &mut Scope,
        inside: Inside<'_>,
    ) -> Result<(), String> {
        let count = block.steps.len();
        let weights = if block.weights.is_empty() {
            vec![1.0; count]
        } else {
            block.weights.clone()
        };
        let weights = WeightedIndex::new(&weights)
            .ok()
            .filter(|_| weights.len() == count);
        let Some(weights) = weights else {
            return Err(format!(
                "choice has {count} steps and the weights {:?}, expected one weight for each, not all 0",
                block.weights
            ));
        };
        let fork = self.ops.len();
        self.ops.push(Op::Walked);
        let mut targets = Vec::new();
        let mut overs = Vec::new();
        for step in &block.steps {
            targets.push(self.ops.len());
            inside(self, std::slice::from_ref(step), scope)?;
            overs.push(self.gate(Op::Jump(0)));
        }
        overs.into_iter().for_each(|over| self.land(Some(over)));
        self.ops[fork] = match choice {
            Choice::Random => Op::Random(weights, targets),
            Choice::Interleave => Op::Interleave(self.register(), targets),
        };
        Ok(())
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

    fn counter(&mut self, per: Per) -> Counter {
        match per {
            Per::User => Counter::Own(self.register()),
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
        if known.per != pace.per {
            return Err(format!(
                "pace {name:?} is per user here and per run there, expected the same"
            ));
        }
        if known.phases != pace.phases {
            return Err(format!(
                "pace {name:?} has other phases here than there, expected the same"
            ));
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

/// Exactly one kind, and the lists that belong to it.
fn check_keys(block: &Block) -> Result<(), String> {
    let kinds: Vec<&str> = [
        ("loop", block.repeat.is_some()),
        ("if", block.condition.is_some()),
        ("once", block.once.is_some()),
        ("choice", block.choice.is_some()),
        ("share", block.share.is_some()),
        ("transaction", block.transaction.is_some()),
        ("group", block.group.is_some()),
        ("pause", block.pause.is_some()),
        ("pace", block.pace.is_some()),
        ("set", !block.set.is_empty()),
        ("call", block.call.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, given)| given.then_some(name))
    .collect();
    let [kind] = kinds.as_slice() else {
        return Err(format!(
            "a block has the keys {}, expected exactly one of them",
            kinds.join(", ")
        ));
    };
    let alone = matches!(*kind, "pause" | "pace" | "set" | "call");
    if alone != block.steps.is_empty() {
        let expected = if alone {
            "no steps"
        } else {
            "at least one step"
        };
        return Err(format!("the block {kind} expects {expected}"));
    }
    if !block.otherwise.is_empty() && *kind != "if" {
        return Err(format!("the block {kind} has else, which only if has"));
    }
    if !block.weights.is_empty() && block.choice != Some(Choice::Random) {
        return Err("weights stand with choice: random only".to_owned());
    }
    if matches!(block.once, Some(false)) || matches!(block.group, Some(false)) {
        return Err(format!("the block {kind} is false, expected true"));
    }
    if let Some(share) = &block.share
        && !(0.0..=100.0).contains(&share.percent)
    {
        return Err(format!(
            "share.percent is {}, expected 0 to 100",
            share.percent
        ));
    }
    if let Some(pace) = &block.pace {
        check_pace(pace)?;
    }
    if let Some(think) = &block.pause {
        crate::refusal::check_think("pause", think).map_err(|error| error.0)?;
    }
    Ok(())
}

fn check_pace(pace: &Pace) -> Result<(), String> {
    if pace.per_min.is_some() != pace.phases.is_empty() {
        return Err("pace has both per_min and phases, or none, expected one of them".to_owned());
    }
    if let Some(per_min) = pace.per_min
        && !(0.001..=6e7).contains(&per_min)
    {
        return Err(format!(
            "pace.per_min is {per_min}, expected 0.001 to 60,000,000"
        ));
    }
    for phase in &pace.phases {
        let rates = [phase.from_per_s, phase.to_per_s];
        let lasts = (1e-3..=1e10).contains(&phase.duration_ms);
        if !lasts || !rates.iter().all(|rate| (0.0..=1e6).contains(rate)) {
            return Err(format!(
                "pace.phases has one of {} ms from {} to {} per second, expected a time above 0 and rates from 0 to 1,000,000",
                phase.duration_ms, phase.from_per_s, phase.to_per_s
            ));
        }
    }
    Ok(())
}

fn rate(pace: &Pace) -> Rate {
    let stretch = |phase: &PacePhase| RateStretch {
        duration_ns: ms_to_ns(phase.duration_ms),
        from_per_s: phase.from_per_s,
        to_per_s: phase.to_per_s,
    };
    Rate::new(&pace.phases.iter().map(stretch).collect::<Vec<_>>())
}
