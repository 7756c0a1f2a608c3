//! Which scenario a user walks, drawn by weight, and which step comes next where there are neither
//! blocks nor loops. Pure functions of small numbers; it knows nothing of what a step does.

use std::ops::Range;

use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use crate::plan::{Scenario, ScenarioChoice};

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
        let weights = self.weights.as_ref();
        self.courses[weights.map_or(0, |weights| weights.sample(rng))]
    }
}

/// The scenarios of a plan. Steps are numbered through all of them.
#[derive(Debug)]
pub struct Walk {
    /// The steps of each.
    courses: Vec<Range<u16>>,
    /// By step: its scenario.
    course_of: Vec<u16>,
    loops: bool,
    /// By population.
    draws: Vec<Draw>,
    choice: ScenarioChoice,
}

impl Walk {
    /// From checked scenarios: positive weights, at least one step each. `walked`: by population
    /// the scenarios that its users walk, at least one.
    pub fn new(scenarios: &[Scenario], walked: &[Vec<usize>], choice: ScenarioChoice) -> Self {
        let mut walk = Self {
            courses: Vec::new(),
            course_of: Vec::new(),
            loops: scenarios.iter().any(Scenario::has_loops),
            draws: walked
                .iter()
                .map(|courses| Draw::new(courses, scenarios))
                .collect(),
            choice,
        };
        for scenario in scenarios {
            let first = walk.course_of.len() as u16;
            let course = walk.courses.len() as u16;
            let steps = scenario.requests().len();
            walk.course_of.extend(std::iter::repeat_n(course, steps));
            walk.courses.push(first..walk.course_of.len() as u16);
        }
        walk
    }

    /// Whether a user simply goes from step to step and begins again.
    pub fn is_plain(&self) -> bool {
        self.courses.len() == 1 && !self.loops
    }

    /// The number of the scenario that a step belongs to.
    pub fn scenario_of(&self, step: u16) -> usize {
        usize::from(self.course_of[usize::from(step)])
    }

    /// The first step of the next iteration of a user of this population. `before` is a step of the
    /// one before; `None` for a user who starts.
    pub fn begin(&self, before: Option<u16>, population: usize, rng: &mut impl Rng) -> u16 {
        let course = match (before, self.choice) {
            (Some(step), ScenarioChoice::PerUser) => self.scenario_of(step),
            _ => self.draws[population].one(rng),
        };
        self.courses[course].start
    }

    /// The step after this one, without loops; `None` when the iteration has ended.
    pub fn next(&self, step: u16) -> Option<u16> {
        let course = &self.courses[self.scenario_of(step)];
        (step + 1 < course.end).then_some(step + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use serde_json::json;

    fn scenario(weight: f64, steps: usize) -> Scenario {
        let steps = vec![json!({"path": "/"}); steps];
        serde_json::from_value(json!({"weight": weight, "steps": steps})).unwrap()
    }

    fn walked(walk: &Walk, before: Option<u16>, rng: &mut SmallRng) -> Vec<u16> {
        let first = walk.begin(before, 0, rng);
        std::iter::successors(Some(first), |step| walk.next(*step)).collect()
    }

    #[test]
    fn scenarios_are_drawn_by_their_weights() {
        let scenarios = [scenario(3.0, 1), scenario(1.0, 2)];
        let mut rng = SmallRng::seed_from_u64(5);
        let per_iteration = Walk::new(&scenarios, &[vec![0, 1]], ScenarioChoice::PerIteration);
        let second = (0..40_000)
            .filter(|_| walked(&per_iteration, Some(0), &mut rng) == [1, 2])
            .count();
        // Binomial with p = 1/4: the deviation is 87, five of them are never seen.
        assert!((9_565..=10_435).contains(&second), "{second}");
        let per_user = Walk::new(&scenarios, &[vec![0, 1]], ScenarioChoice::PerUser);
        assert!((0..100).all(|_| walked(&per_user, Some(2), &mut rng) == [1, 2]));
        let starts = (0..100).filter(|_| per_user.begin(None, 0, &mut rng) == 0);
        assert!((40..100).contains(&starts.count()));
    }

    #[test]
    fn a_population_walks_its_own_scenarios() {
        let scenarios = [scenario(3.0, 1), scenario(1.0, 2), scenario(1.0, 1)];
        let mut rng = SmallRng::seed_from_u64(5);
        let walk = Walk::new(
            &scenarios,
            &[vec![1], vec![0, 2]],
            ScenarioChoice::PerIteration,
        );
        assert!((0..50).all(|_| walk.begin(Some(3), 0, &mut rng) == 1));
        let firsts: Vec<u16> = (0..50).map(|_| walk.begin(None, 1, &mut rng)).collect();
        assert!(firsts.iter().all(|step| [0, 3].contains(step)));
        assert!([0, 3].iter().all(|step| firsts.contains(step)));
    }
}
