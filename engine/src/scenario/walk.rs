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

/// The scenarios that the users of a population walk.
#[derive(Debug)]
struct Draw {
    courses: Vec<usize>,
    /// `None` with a single scenario.
    weights: Option<WeightedIndex<f64>>,
}

impl Draw {
    fn new(courses: &[usize], scenarios: &[Scenario]) -> Self {
        let weights = courses.iter().map(|course| scenarios[*course].weight);
        Self {
            courses: courses.to_vec(),
            weights: (courses.len() > 1)
                .then(|| WeightedIndex::new(weights).ok())
                .flatten(),
        }
    }

    fn one(&self, rng: &mut impl Rng) -> usize {
        let place = self
            .weights
            .as_ref()
            .map_or(0, |weights| weights.sample(rng));
        self.courses[place]
    }
}

/// See the module. Steps are numbered through all scenarios.
#[derive(Debug)]
pub struct Walk {
    courses: Vec<Course>,
    /// By step: how often it is sent, and its scenario.
    repeats: Vec<u32>,
    course_of: Vec<u16>,
    /// By population.
    draws: Vec<Draw>,
    choice: ScenarioChoice,
}

impl Walk {
    /// From checked scenarios: positive weights, at least one step each, at least one loop and repeat. `walked`: by population the
    /// scenarios that its users walk, at least one.
    pub fn new(scenarios: &[Scenario], walked: &[Vec<usize>], choice: ScenarioChoice) -> Self {
        let mut walk = Self {
            courses: Vec::new(),
            repeats: Vec::new(),
            course_of: Vec::new(),
            draws: walked
                .iter()
                .map(|courses| Draw::new(courses, scenarios))
                .collect(),
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

    /// The first step of the next iteration of a user of this population. `before` is a step of the one before; `None` for a user
    /// who starts.
    pub fn begin(
        &self,
        before: Option<u16>,
        population: usize,
        rng: &mut impl Rng,
    ) -> (u16, Position) {
        let course = match (before, self.choice) {
            (Some(step), ScenarioChoice::PerUser) => self.scenario_of(step),
            _ => self.draws[population].one(rng),
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
        let (mut step, mut position) = walk.begin(before, 0, rng);
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
            let walk = Walk::new(&[scenario(1.0, loops, &repeats)], &[vec![0]], ScenarioChoice::PerUser);
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
        let per_iteration = Walk::new(&scenarios, &[vec![0, 1]], ScenarioChoice::PerIteration);
        let second = (0..40_000)
            .filter(|_| walked(&per_iteration, Some(0), &mut rng) == [1, 2])
            .count();
        // Binomial with p = 1/4: the deviation is 87, five of them are never seen.
        assert!((9_565..=10_435).contains(&second), "{second}");
        let per_user = Walk::new(&scenarios, &[vec![0, 1]], ScenarioChoice::PerUser);
        assert!((0..100).all(|_| walked(&per_user, Some(2), &mut rng) == [1, 2]));
        let starts = (0..100).filter(|_| per_user.begin(None, 0, &mut rng).0 == 0);
        assert!((40..100).contains(&starts.count()));
    }

    #[test]
    fn a_population_walks_its_own_scenarios() {
        let scenarios = [
            scenario(3.0, 1, &[1]),
            scenario(1.0, 1, &[1, 1]),
            scenario(1.0, 1, &[1]),
        ];
        let mut rng = SmallRng::seed_from_u64(5);
        let walk = Walk::new(
            &scenarios,
            &[vec![1], vec![0, 2]],
            ScenarioChoice::PerIteration,
        );
        assert!((0..50).all(|_| walk.begin(Some(3), 0, &mut rng).0 == 1));
        let firsts: Vec<u16> = (0..50).map(|_| walk.begin(None, 1, &mut rng).0).collect();
        assert!(firsts.iter().all(|step| [0, 3].contains(step)));
        assert!([0, 3].iter().all(|step| firsts.contains(step)));
    }
}
