//! Several groups of users in one closed load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Load, Plan, Think};

/// One of several groups of users of a closed load, with a start, an end and scenarios of its own.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PopulationPlan {
    pub name: String,
    pub users: u32,
    /// Users of the same group in populations before this one: `${user}` counts on from them.
    #[serde(default)]
    pub users_before: u32,
    /// Its first user starts so long after the start of the run.
    #[serde(default)]
    pub start_ms: f64,
    /// Its users start evenly spread over this time.
    #[serde(default)]
    pub ramp_up_ms: f64,
    /// Its users start in so many groups of equal size instead of one by one.
    pub ramp_up_steps: Option<u32>,
    /// So long after `start_ms` its users end; a request under way is waited for. `null`: they end
    /// with the run.
    pub duration_ms: Option<f64>,
    /// A user of it ends after walking its scenario so many times.
    pub iterations_per_user: Option<u64>,
    /// In place of the load's.
    pub think: Option<Think>,
    /// Names of the scenarios that its users walk, drawn by their weights; an empty list stands for all.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// Names of the feeders of which its users draw a row for every iteration; `null`: of all.
    pub feeders: Option<Vec<String>>,
}

impl Plan {
    /// The groups of a load that has several.
    pub fn populations(&self) -> &[PopulationPlan] {
        match &self.load {
            Load::Closed { populations, .. } => populations,
            Load::Open { .. } => &[],
        }
    }

    /// By population the numbers of the scenarios that its users walk; one row when there are no populations.
    pub fn walked(&self) -> Vec<Vec<usize>> {
        let all = || (0..self.scenarios.len()).collect();
        let of = |one: &PopulationPlan| match one.scenarios.is_empty() {
            true => all(),
            false => self
                .scenarios
                .iter()
                .enumerate()
                .filter(|(_, scenario)| one.scenarios.contains(&scenario.name))
                .map(|(place, _)| place)
                .collect(),
        };
        match self.populations() {
            [] => vec![all()],
            several => several.iter().map(of).collect(),
        }
    }

    /// The pause of those who walk this scenario, where a population has one of its own.
    pub fn think_of(&self, scenario: &str) -> Option<Think> {
        let mut who = self.populations().iter().filter(|one| one.walks(scenario));
        who.next()?.think
    }
}

impl PopulationPlan {
    pub fn walks(&self, scenario: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario)
    }
}
