//! Conditions of blocks, compiled once. Texts and values in, true or false out.

use std::cmp::Ordering;

use rand::Rng;

use super::template::{Scope, Template};
use super::vars::{Shared, Vars};
use crate::plan::{Comparison, Condition, Operator};

/// A compiled [`Condition`].
#[derive(Debug)]
pub enum Test {
    Literal(bool),
    Compare(Template, Operator, Template),
    Matches(Template, Box<regex::bytes::Regex>),
    Exists(usize),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
}

impl Test {
    /// The error says what is wrong.
    pub fn compile(condition: &Condition, scope: &mut Scope) -> Result<Self, String> {
        let mut each = |conditions: &[Condition]| {
            conditions
                .iter()
                .map(|one| Self::compile(one, scope))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match condition {
            Condition::Literal(holds) => Self::Literal(*holds),
            Condition::All { all } => Self::All(each(all)?),
            Condition::Any { any } => Self::Any(each(any)?),
            Condition::Not { not } => Self::Not(Box::new(Self::compile(not, scope)?)),
            Condition::Exists { exists } => Self::Exists(scope.capture(exists)),
            Condition::Comparison(Comparison {
                left,
                op: Operator::Matches,
                right,
            }) => Self::Matches(
                Template::of(left, "left side of the condition", scope)?,
                Box::new(regex::bytes::Regex::new(right).map_err(|_| {
                    format!("the condition's right {right:?} is no regex that can be read")
                })?),
            ),
            Condition::Comparison(comparison) => Self::Compare(
                Template::of(&comparison.left, "left side of the condition", scope)?,
                comparison.op,
                Template::of(&comparison.right, "right side of the condition", scope)?,
            ),
        })
    }

    pub fn holds(&self, shared: &Shared, vars: &mut Vars, rng: &mut impl Rng) -> bool {
        match self {
            Self::Literal(holds) => *holds,
            Self::Exists(slot) => vars.captured.get(*slot).is_some_and(Option::is_some),
            Self::Not(test) => !test.holds(shared, vars, rng),
            Self::All(tests) => tests.iter().all(|test| test.holds(shared, vars, rng)),
            Self::Any(tests) => tests.iter().any(|test| test.holds(shared, vars, rng)),
            Self::Matches(left, regex) => regex.is_match(&left.text(shared, vars, rng)),
            Self::Compare(left, operator, right) => {
                let left = left.text(shared, vars, rng);
                let right = right.text(shared, vars, rng);
                compared(&left, *operator, &right)
            }
        }
    }
}

fn compared(left: &[u8], operator: Operator, right: &[u8]) -> bool {
    let order = match (number(left), number(right)) {
        (Some(left), Some(right)) => left.total_cmp(&right),
        _ => left.cmp(right),
    };
    match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::Unequal => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::AtMost => order != Ordering::Greater,
        Operator::More => order == Ordering::Greater,
        Operator::AtLeast => order != Ordering::Less,
        Operator::Contains | Operator::Matches => memchr::memmem::find(left, right).is_some(),
    }
}

fn number(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    // Adding 0 makes one zero of the two.
    number.is_finite().then_some(number + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_texts_as_texts() {
        for (left, operator, right, expected) in [
            ("10", Operator::More, "9", true),
            ("10", Operator::Less, "9a", true),
            ("1.0", Operator::Equal, "1", true),
            ("-0", Operator::Equal, "0", true),
            ("a", Operator::Unequal, "b", true),
            ("2", Operator::AtLeast, "2", true),
            ("3", Operator::AtMost, "2", false),
            ("abc", Operator::Contains, "bc", true),
            ("", Operator::Equal, "", true),
        ] {
            let found = compared(left.as_bytes(), operator, right.as_bytes());
            assert_eq!(found, expected, "{left} {operator:?} {right}");
        }
    }
}
