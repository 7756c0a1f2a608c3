//! Scenarios with blocks, loops or repeats, compiled into a flat list of operations with jumps, and
//! how a user goes through it from request to request. It knows nothing of what a request is. Other
//! scenarios never come here.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use serde_json::Value;

use super::capture_source::written;
use super::condition::Test;
use super::fork::Fork;
use super::template::Template;
use super::vars::{Shared, Vars};
use crate::pace::rate::Rate;
use crate::pace::think::ThinkTime;
use crate::plan::Rounding;

/// So many operations may lie between two requests: more are a loop that nothing in it can end.
pub const MAX_OPERATIONS: u32 = 200_000;

/// A user for whom no passage is left waits so long: longer than a run.
const NEVER_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

/// A number that a user carries, or that all users share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    Own(usize),
    Shared(usize),
}

/// A call into the plan's script.
#[derive(Debug)]
pub struct ScriptCall {
    pub given: Vec<Template>,
    /// The numbers of the values that it gives back.
    pub taken: Vec<usize>,
}

#[derive(Debug)]
pub enum Op {
    Request(u16),
    Set(usize, Template),
    Pause(ThinkTime),
    /// Time between two passages, and when the last one was due.
    Pace(u64, Counter),
    /// The rate of passages, when the last one was due, and when the first one.
    Follow(Box<Rate>, Counter, Counter),
    Jump(usize),
    JumpUnless(Test, usize),
    Zero(usize),
    Add(usize),
    /// Jumps unless the register is below the limit.
    JumpUnlessBelow(usize, u64, usize),
    /// Sets a value to the element whose number the register holds.
    Element(usize, usize, Vec<Box<[u8]>>),
    /// Makes a list of the JSON list that a value holds.
    Spread(usize, usize),
    /// Jumps unless the register is below the length of the list.
    JumpUnlessListed(usize, usize, usize),
    /// Sets a value to the element of the list whose number the register holds, as JSON or as a text.
    Listed(usize, usize, usize, bool),
    /// Sets a value to the number that the register holds.
    Index(usize, usize),
    /// Jumps unless it is the first time.
    JumpUnlessFirst(usize, usize),
    /// To one of these.
    Random(WeightedIndex<f64>, Vec<usize>),
    Interleave(usize, Vec<usize>),
    /// Jumps unless this visit is one of the share.
    JumpUnlessShare(f64, Rounding, Counter, usize),
    Begin(usize),
    End,
    Call(usize),
    /// A row of the request log: its number among those of its scenario, and its text.
    Note(usize, Template),
    /// To the branches of this fork.
    Fork(usize),
    /// A branch has ended.
    EndBranch,
    /// The iteration has ended.
    Walked,
}

/// The compiled scenarios of a plan.
#[derive(Debug)]
pub struct Program {
    pub ops: Vec<Op>,
    /// In the order in which they are written down.
    pub calls: Vec<ScriptCall>,
    /// By scenario: where it begins.
    pub entries: Vec<usize>,
    pub registers: usize,
    /// Those of them that a user counts in from its start to its end.
    pub kept: Vec<usize>,
    /// Lists that a user carries.
    pub lists: usize,
    pub forks: Vec<Fork>,
    pub shared: Vec<AtomicU64>,
}

/// Where one user is.
#[derive(Debug, Default)]
pub struct Cursor {
    at: usize,
    registers: Box<[u64]>,
    lists: Box<[Vec<Value>]>,
    open: Vec<Transaction>,
    /// Whether this iteration has sent something.
    sent: bool,
    /// Blocks walked in parallel, one after the other, in which nothing was sent.
    pub idle_forks: u32,
}

/// What a walk through a transaction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    pub figure: usize,
    pub requests: u32,
    pub service_ns: u64,
    pub failed: bool,
}

/// Where an advance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    Request(u16),
    /// The script is to be called before the user goes on.
    Call(usize),
    /// Branches are to be walked before the user goes on.
    Fork(usize),
    /// A branch has been walked to its end.
    BranchEnded,
    Walked,
    /// Nothing was sent for too long.
    Lost,
    /// What comes next depends on a response that has not come.
    Waits,
}

/// The requests of a user that were sent and have no response yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unanswered {
    /// There are such.
    pub any: bool,
    /// A response to one of them gives the user a value, or is held against one.
    pub captures: bool,
}

impl Op {
    /// Whether it cannot be passed yet: a transaction holds the requests within it and no others, a pause
    /// begins with a response, and a value that a response may still change is neither read nor set before.
    fn waits(&self, unanswered: Unanswered) -> bool {
        match self {
            Self::Begin(_)
            | Self::End
            | Self::Pause(_)
            | Self::Pace(..)
            | Self::Follow(..)
            | Self::Call(_)
            | Self::Note(..) => unanswered.any,
            Self::Set(..)
            | Self::JumpUnless(..)
            | Self::Element(..)
            | Self::Spread(..)
            | Self::JumpUnlessListed(..)
            | Self::Listed(..)
            | Self::Index(..)
            | Self::Walked => unanswered.captures,
            _ => false,
        }
    }
}

/// What an advance came to on its way.
#[derive(Debug, Default)]
pub struct Passed {
    pub pause_ns: u64,
    pub ended: Vec<Transaction>,
    /// Number and text of rows of the request log; `None` without a log.
    pub notes: Option<Vec<(usize, Vec<u8>)>>,
}

/// What the element of a list is as a value.
pub fn text_of(element: &Value, as_json: bool) -> Vec<u8> {
    if as_json {
        element.to_string().into_bytes()
    } else {
        written(element).map_or_else(Vec::new, Vec::from)
    }
}

impl Cursor {
    pub fn new(program: &Program) -> Self {
        Self {
            registers: vec![0; program.registers].into(),
            lists: vec![Vec::new(); program.lists].into(),
            ..Self::default()
        }
    }

    /// The next iteration begins, in this scenario.
    pub fn begin(&mut self, program: &Program, scenario: usize) {
        self.at = program.entries[scenario];
        self.open.clear();
        self.sent = false;
    }

    /// Goes on there.
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Counts rounds as this one does, and has no transactions of its own.
    pub fn follow(&mut self, other: &Self) {
        self.registers.clone_from(&other.registers);
        self.open.clear();
    }

    /// Exchanges what a user counts from its start to its end.
    pub fn exchange_counts(&mut self, program: &Program, other: &mut Self) {
        for register in &program.kept {
            std::mem::swap(
                &mut self.registers[*register],
                &mut other.registers[*register],
            );
        }
    }

    pub fn open_transactions(&self) -> usize {
        self.open.len()
    }

    /// The elements of a list that it carries.
    pub fn list(&self, list: usize) -> &[Value] {
        &self.lists[list]
    }

    /// The branches of a block have ended; whether one of them has sent something.
    pub fn joins(&mut self, sent: bool) {
        self.sent |= sent;
        self.idle_forks = if sent { 0 } else { self.idle_forks + 1 };
    }

    /// Whether this iteration has sent nothing.
    pub fn is_idle(&self) -> bool {
        !self.sent
    }

    /// The request that it has come to is not sent; `was_idle`: it had sent nothing before.
    pub fn pass_over(&mut self, was_idle: bool) {
        self.sent = !was_idle;
    }

    /// The request that it has come to is not sent yet: it comes to it again.
    pub fn step_back(&mut self, was_idle: bool) {
        self.at -= 1;
        self.sent = !was_idle;
    }

    /// A request ended: it belongs to the first so many of the transactions that are open.
    pub fn spend(&mut self, most: usize, service_ns: u64, failed: bool) {
        for open in self.open.iter_mut().take(most) {
            open.requests += 1;
            open.service_ns += service_ns;
            open.failed |= failed;
        }
    }
}

impl Program {
    /// So many branches of a user may be under way at once; 1 without any.
    pub fn width(&self) -> u32 {
        self.forks.iter().map(Fork::width).max().unwrap_or(1)
    }

    /// Goes on to the next request. `now_ns` is the time before the pauses that are passed.
    pub fn advance(
        &self,
        cursor: &mut Cursor,
        vars: &mut Vars,
        (shared, rng): (&Shared, &mut impl Rng),
        unanswered: Unanswered,
        now_ns: u64,
        passed: &mut Passed,
    ) -> Advance {
        for _ in 0..MAX_OPERATIONS {
            let Some(op) = self.ops.get(cursor.at) else {
                return Advance::Walked;
            };
            if unanswered.any && op.waits(unanswered) {
                return Advance::Waits;
            }
            cursor.at += 1;
            match op {
                Op::Request(step) => {
                    cursor.sent = true;
                    cursor.idle_forks = 0;
                    return Advance::Request(*step);
                }
                Op::Walked => return Advance::Walked,
                Op::Call(call) => return Advance::Call(*call),
                Op::Fork(fork) => return Advance::Fork(*fork),
                Op::EndBranch => return Advance::BranchEnded,
                Op::Set(slot, text) => {
                    let value = text.text(shared, vars, rng);
                    vars.set(*slot, value);
                }
                Op::Note(number, text) => {
                    if let Some(notes) = &mut passed.notes {
                        notes.push((*number, text.text(shared, vars, rng)));
                    }
                }
                Op::Pause(think) => {
                    passed.pause_ns = passed.pause_ns.saturating_add(think.draw(rng).unwrap_or(0));
                }
                Op::Pace(gap_ns, counter) => {
                    let here_ns = now_ns.saturating_add(passed.pause_ns);
                    let due_ns = self.pace(cursor, *counter, *gap_ns, here_ns);
                    passed.pause_ns = due_ns.saturating_sub(now_ns);
                }
                Op::Follow(rate, last, first) => {
                    let here_ns = now_ns.saturating_add(passed.pause_ns);
                    let due_ns = self.follow(cursor, rate, (*last, *first), here_ns);
                    passed.pause_ns = due_ns.saturating_sub(now_ns);
                }
                Op::Jump(to) => cursor.at = *to,
                Op::JumpUnless(test, to) => {
                    if !test.holds(shared, vars, rng) {
                        cursor.at = *to;
                    }
                }
                Op::Zero(register) => cursor.registers[*register] = 0,
                Op::Add(register) => cursor.registers[*register] += 1,
                Op::JumpUnlessBelow(register, limit, to) => {
                    if cursor.registers[*register] >= *limit {
                        cursor.at = *to;
                    }
                }
                Op::Element(register, slot, elements) => {
                    let element = elements.get(cursor.registers[*register] as usize);
                    vars.set(*slot, element.map_or_else(Vec::new, |bytes| bytes.to_vec()));
                }
                Op::Spread(slot, list) => {
                    let value = vars.captured.get(*slot).and_then(Option::as_ref);
                    let spread = value.and_then(|value| serde_json::from_slice(value).ok());
                    cursor.lists[*list] = spread.unwrap_or_default();
                }
                Op::JumpUnlessListed(register, list, to) => {
                    if cursor.registers[*register] >= cursor.lists[*list].len() as u64 {
                        cursor.at = *to;
                    }
                }
                Op::Listed(register, list, slot, as_json) => {
                    let element = cursor.lists[*list].get(cursor.registers[*register] as usize);
                    vars.set(*slot, text_of(element.unwrap_or(&Value::Null), *as_json));
                }
                Op::Index(register, slot) => {
                    vars.set(*slot, cursor.registers[*register].to_string().into_bytes());
                }
                Op::JumpUnlessFirst(register, to) => {
                    if std::mem::replace(&mut cursor.registers[*register], 1) != 0 {
                        cursor.at = *to;
                    }
                }
                Op::Random(weights, targets) => cursor.at = targets[weights.sample(rng)],
                Op::Interleave(register, targets) => {
                    let visit = cursor.registers[*register];
                    cursor.registers[*register] += 1;
                    cursor.at = targets[(visit % targets.len() as u64) as usize];
                }
                Op::JumpUnlessShare(part, rounding, counter, to) => {
                    let visit = self.count(cursor, *counter);
                    let whole = |visits: u64| match rounding {
                        Rounding::Down => (visits as f64 * part + 1e-9).floor(),
                        Rounding::Nearest => (visits as f64 * part - 0.5 - 1e-9).ceil(),
                    };
                    if whole(visit + 1) <= whole(visit) {
                        cursor.at = *to;
                    }
                }
                Op::Begin(figure) => cursor.open.push(Transaction {
                    figure: *figure,
                    requests: 0,
                    service_ns: 0,
                    failed: false,
                }),
                Op::End => passed
                    .ended
                    .extend(cursor.open.pop().filter(|done| done.requests > 0)),
            }
        }
        Advance::Lost
    }

    /// The number of visits before this one.
    fn count(&self, cursor: &mut Cursor, counter: Counter) -> u64 {
        match counter {
            Counter::Own(register) => {
                cursor.registers[register] += 1;
                cursor.registers[register] - 1
            }
            Counter::Shared(place) => self.shared[place].fetch_add(1, Ordering::Relaxed),
        }
    }

    /// When this passage is due: at once, or a gap after the one before.
    fn pace(&self, cursor: &mut Cursor, counter: Counter, gap_ns: u64, here_ns: u64) -> u64 {
        self.change(cursor, counter, |last_ns| match last_ns {
            0 => here_ns,
            _ => here_ns.max(last_ns.saturating_add(gap_ns)),
        })
    }

    /// The same of a rate that changes: when one more is expected than when the last passage was due.
    /// What was missed since is not made up for.
    fn follow(
        &self,
        cursor: &mut Cursor,
        rate: &Rate,
        (last, first): (Counter, Counter),
        here_ns: u64,
    ) -> u64 {
        let first_ns = self.change(cursor, first, |known_ns| match known_ns {
            0 => here_ns.max(1),
            _ => known_ns,
        });
        let expected = |at_ns: u64| rate.expected(at_ns.saturating_sub(first_ns));
        self.change(cursor, last, |last_ns| {
            let next = if last_ns == 0 {
                0.0
            } else {
                expected(last_ns) + 1.0
            };
            match rate.when_ns(next.max(expected(here_ns))) {
                Some(due_ns) => here_ns.max(first_ns.saturating_add(due_ns)),
                None => here_ns.saturating_add(NEVER_NS),
            }
        })
    }

    /// Changes a number by a rule; what it is then.
    fn change(&self, cursor: &mut Cursor, counter: Counter, rule: impl Fn(u64) -> u64) -> u64 {
        match counter {
            Counter::Own(register) => {
                let number = &mut cursor.registers[register];
                *number = rule(*number);
                *number
            }
            Counter::Shared(place) => {
                let relaxed = Ordering::Relaxed;
                // Never an error: there is always a next number.
                let before =
                    self.shared[place].fetch_update(relaxed, relaxed, |number| Some(rule(number)));
                rule(before.unwrap_or(0))
            }
        }
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
