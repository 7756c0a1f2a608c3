//! Blocks whose steps are walked several times, in parallel, or one of them.

use rand::distr::weighted::WeightedIndex;

use super::{Assembly, Inside, names};
use crate::plan::{Block, Choice, Loop, Node, Parallel};
use crate::scenario::condition::Test;
use crate::scenario::fork::{Branches, Fork};
use crate::scenario::names::check_name;
use crate::scenario::program::Op;
use crate::scenario::template::Scope;

impl<'a> Assembly<'a> {
    /// The register that counts rounds, where a round begins, and the jump behind the loop.
    pub(super) fn begin_loop(
        &mut self,
        repeat: &Loop,
        scope: &mut Scope,
    ) -> Result<(usize, usize, Option<usize>), String> {
        let kinds = [
            repeat.count.is_some(),
            repeat.condition.is_some(),
            repeat.over.is_some(),
            repeat.each.is_some(),
        ];
        refuse_if! {
            kinds.into_iter().filter(|given| *given).count() > 1 =>
                "loop has several of count, while, over and each, expected at most one";
            repeat.as_json && repeat.each.is_none() =>
                "loop has as_json without each, expected each: NAME beside it";
        }
        let register = self.register();
        self.ops.push(Op::Zero(register));
        // The list is made once, when the loop begins.
        let list = match &repeat.each {
            Some(name) => Some(self.spread(name, "loop", scope)?),
            None => None,
        };
        let start = self.ops.len();
        let gate = match (&repeat.count, &repeat.condition, &repeat.over, list) {
            (Some(count), ..) => Some(Op::JumpUnlessBelow(register, u64::from(*count), 0)),
            (_, Some(test), ..) => Some(Op::JumpUnless(Test::compile(test, scope)?, 0)),
            (_, _, Some(over), _) => Some(Op::JumpUnlessBelow(register, over.len() as u64, 0)),
            (.., Some(list)) => Some(Op::JumpUnlessListed(register, list, 0)),
            _ => None,
        };
        let gate = gate.map(|gate| self.gate(gate));
        if let Some(name) = &repeat.element {
            check_name(name)?;
            let slot = scope.capture(name);
            self.ops.push(match (&repeat.over, list) {
                (Some(over), _) => {
                    let elements = over.iter().map(|text| text.as_bytes().into()).collect();
                    Op::Element(register, slot, elements)
                }
                (None, Some(list)) => Op::Listed(register, list, slot, repeat.as_json),
                (None, None) => refuse! {
                    "loop has as without over and each, expected over: […] or each: NAME beside it"
                },
            });
        }
        if let Some(name) = &repeat.index {
            check_name(name)?;
            self.ops.push(Op::Index(register, scope.capture(name)));
        }
        Ok((register, start, gate))
    }

    /// Makes a list of a value; its number.
    fn spread(&mut self, name: &str, of: &str, scope: &mut Scope) -> Result<usize, String> {
        let slot = scope.capture(name);
        refuse_if! {
            !scope.visible.contains(&slot) =>
                "{of}.each names {name:?}, which nothing in this scenario captures or sets";
        }
        let list = self.lists;
        self.lists += 1;
        self.ops.push(Op::Spread(slot, list));
        Ok(list)
    }

    pub(super) fn parallel(
        &mut self,
        parallel: &Parallel,
        steps: &[Node],
        scope: &mut Scope,
        inside: Inside<'_, 'a>,
    ) -> Result<(), String> {
        refuse_if! {
            std::mem::replace(&mut self.in_branch, true) =>
                "a parallel block lies in another one, expected none inside";
        }
        let each = match &parallel.each {
            None => None,
            Some(name) => Some(self.spread(name, "parallel", scope)?),
        };
        let fork = self.ops.len();
        self.ops.push(Op::Fork(self.forks.len()));
        let mut entries = Vec::new();
        let rounds = if each.is_some() { steps.len() } else { 1 };
        for branch in steps.chunks(rounds.max(1)) {
            entries.push(self.ops.len());
            inside(self, branch, scope)?;
            self.ops.push(Op::EndBranch);
        }
        let mut sets: Vec<usize> = names(steps, self.numbered)
            .iter()
            .map(|name| scope.capture(name))
            .collect();
        sets.sort_unstable();
        sets.dedup();
        let branches = match each {
            None => Branches::Steps(entries),
            Some(list) => {
                if let Some(name) = &parallel.element {
                    check_name(name)?;
                }
                Branches::Each {
                    list,
                    element: parallel.element.as_ref().map(|name| scope.capture(name)),
                    as_json: parallel.as_json,
                    entry: fork + 1,
                }
            }
        };
        self.forks.push(Fork {
            at_once: parallel.at_once,
            branches,
            after: self.ops.len(),
            sets,
        });
        self.in_branch = false;
        Ok(())
    }

    pub(super) fn choice(
        &mut self,
        choice: Choice,
        block: &Block,
        scope: &mut Scope,
        inside: Inside<'_, 'a>,
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
            refuse! {
                "choice has {count} steps and the weights {:?}, expected one weight for each, not all 0", block.weights
            }
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
            Choice::Interleave => Op::Interleave(self.kept(), targets),
        };
        Ok(())
    }
}
