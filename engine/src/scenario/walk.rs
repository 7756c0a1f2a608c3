//! Which step comes next: scenarios drawn by weight, loops, repeated steps. Pure functions of small numbers; it knows nothing of what
//! a step does.

use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use crate::plan::{Scenario, ScenarioChoice};

/// Where a user is within its iteration, beside the number of its step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    repeats_left: u32,
    loops_left: u32,
}

#[derive(Debug)]
struct Course {
    first: u16,
    /// One past its last step.
    end: u16,
    loops: u32,
}

/// See the module. Steps are numbered through all scenarios.
#[derive(Debug)]
pub struct Walk {
    courses: Vec<Course>,
    /// By step: how often it is sent, and its scenario.
    repeats: Vec<u32>,
    course_of: Vec<u16>,
    /// `None` with a single scenario.
    weights: Option<WeightedIndex<f64>>,
    choice: ScenarioChoice,
}

impl Walk {
    /// From checked scenarios: positive weights, at least one step each, at least one loop and repeat.
    pub fn new(scenarios: &[Scenario], choice: ScenarioChoice) -> Self {
        let mut walk = Self {
            courses: Vec::new(),
            repeats: Vec::new(),
            course_of: Vec::new(),
            weights: None,
            choice,
        };
        for scenario in scenarios {
            let first = walk.repeats.len() as u16;
            let course = walk.courses.len() as u16;
            for step in scenario.requests() {
                walk.repeats.push(step.repeat);
                walk.course_of.push(course);
            }
            walk.courses.push(Course {
                first,
                end: walk.repeats.len() as u16,
                loops: scenario.loops,
            });
        }
        if scenarios.len() > 1 {
            walk.weights =
                WeightedIndex::new(scenarios.iter().map(|scenario| scenario.weight)).ok();
        }
        walk
    }

    /// Whether a user simply goes from step to step and begins again: then it needs no [`Position`].
    pub fn is_plain(&self) -> bool {
        let once = |course: &Course| course.loops == 1;
        self.courses.len() == 1
            && self.courses.iter().all(once)
            && self.repeats.iter().all(|n| *n == 1)
    }

    /// The number of the scenario that a step belongs to.
    pub fn scenario_of(&self, step: u16) -> usize {
        usize::from(self.course_of[usize::from(step)])
    }

    /// The first step of a user's next iteration. `before` is a step of the one before; `None` for a user who starts.
    pub fn begin(&self, before: Option<u16>, rng: &mut impl Rng) -> (u16, Position) {
        let course = match (before, self.choice, &self.weights) {
            (Some(step), ScenarioChoice::PerUser, _) => {
                usize::from(self.course_of[usize::from(step)])
            }
            (_, _, Some(weights)) => weights.sample(rng),
            (_, _, None) => 0,
        };
        let course = &self.courses[course];
        let position = Position {
            repeats_left: self.repeats[usize::from(course.first)] - 1,
            loops_left: course.loops - 1,
        };
        (course.first, position)
    }

    /// The step after this one; `None` when the iteration has ended.
    pub fn next(&self, step: u16, position: &mut Position) -> Option<u16> {
        if position.repeats_left > 0 {
            position.repeats_left -= 1;
            return Some(step);
        }
        let course = &self.courses[usize::from(self.course_of[usize::from(step)])];
        let next = if step + 1 < course.end {
            step + 1
        } else if position.loops_left > 0 {
            position.loops_left -= 1;
            course.first
        } else {
            return None;
        };
        position.repeats_left = self.repeats[usize::from(next)] - 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use serde_json::json;

    fn scenario(weight: f64, loops: u32, repeats: &[u32]) -> Scenario {
        let steps: Vec<_> = repeats
            .iter()
            .map(|repeat| json!({"path": "/", "repeat": repeat}))
            .collect();
        serde_json::from_value(json!({"weight": weight, "loops": loops, "steps": steps})).unwrap()
    }

    fn walked(walk: &Walk, before: Option<u16>, rng: &mut SmallRng) -> Vec<u16> {
        let (mut step, mut position) = walk.begin(before, rng);
        let mut steps = vec![step];
        while let Some(next) = walk.next(step, &mut position) {
            step = next;
            steps.push(step);
        }
        steps
    }

    proptest! {
        /// An iteration is its steps written out.
        #[test]
        fn an_iteration_is_what_the_loops_written_out_are(loops in 1u32..4, repeats in proptest::collection::vec(1u32..4, 1..5)) {
            let walk = Walk::new(&[scenario(1.0, loops, &repeats)], ScenarioChoice::PerUser);
            let mut expected = Vec::new();
            for _ in 0..loops {
                for (step, repeat) in repeats.iter().enumerate() {
                    expected.extend((0..*repeat).map(|_| step as u16));
                }
            }
            prop_assert_eq!(walked(&walk, None, &mut SmallRng::seed_from_u64(1)), expected);
            prop_assert_eq!(walk.is_plain(), loops == 1 && repeats.iter().all(|n| *n == 1));
        }
    }

    #[test]
    fn scenarios_are_drawn_by_their_weights() {
        let scenarios = [scenario(3.0, 1, &[1]), scenario(1.0, 1, &[1, 1])];
        let mut rng = SmallRng::seed_from_u64(5);
        let per_iteration = Walk::new(&scenarios, ScenarioChoice::PerIteration);
        let second = (0..40_000)
            .filter(|_| walked(&per_iteration, Some(0), &mut rng) == [1, 2])
            .count();
        // Binomial with p = 1/4: the deviation is 87, five of them are never seen.
        assert!((9_565..=10_435).contains(&second), "{second}");
        let per_user = Walk::new(&scenarios, ScenarioChoice::PerUser);
        assert!((0..100).all(|_| walked(&per_user, Some(2), &mut rng) == [1, 2]));
        let starts = (0..100).filter(|_| per_user.begin(None, &mut rng).0 == 0);
        assert!((40..100).contains(&starts.count()));
    }
}
