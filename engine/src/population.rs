//! The groups of users of a run. Users are numbered group by group, so that when one starts and
//! ends, what it walks and how often follows from its number alone, on whatever thread it lives. It
//! knows nothing of requests.

use std::ops::Range;

use crate::check::ms_to_ns;
use crate::pace::ramp::Ramp;
use crate::pace::share::Share;
use crate::plan::{Load, Plan, PopulationPlan};

/// One group; a load without groups is one.
#[derive(Debug)]
pub struct Population {
    /// Its place among the others.
    pub place: usize,
    /// The number of its first user.
    pub first: u32,
    pub users: u32,
    /// Of its group, in populations before this one.
    before: u32,
    /// After the start of the run.
    start_ns: u64,
    ramp_up: Ramp,
    /// After the start of the run.
    end_ns: Option<u64>,
    /// Of each user.
    pub iterations: u64,
    /// By feeder: how many users of groups before this one draw rows of it too; `None`: those of
    /// this group draw none.
    feeders: Box<[Option<u64>]>,
}

/// All groups of users of a run.
#[derive(Debug)]
pub struct Populations {
    all: Box<[Population]>,
}

impl Populations {
    pub fn new(plan: &Plan) -> Self {
        let stop = plan.stop.iterations_per_user;
        let one = |users, ramp_up, iterations| Population {
            place: 0,
            first: 0,
            users,
            before: 0,
            start_ns: 0,
            ramp_up,
            end_ns: None,
            iterations,
            feeders: vec![Some(0); plan.feeders.len()].into(),
        };
        let all = match &plan.load {
            Load::Open { max_users, .. } => vec![one(*max_users, Ramp::default(), 1)],
            Load::Closed { populations, .. } if !populations.is_empty() => {
                several(plan, populations)
            }
            Load::Closed {
                users,
                ramp_up_ms,
                ramp_up_steps,
                ..
            } => {
                let ramp_up = ramp(*ramp_up_ms, *ramp_up_steps);
                vec![one(users.unwrap_or(0), ramp_up, stop.unwrap_or(u64::MAX))]
            }
        };
        Self { all: all.into() }
    }

    /// Of all groups.
    pub fn users(&self) -> u32 {
        self.all.iter().map(|one| one.users).sum()
    }

    /// The group of this user.
    #[inline]
    pub fn of(&self, number: u64) -> &Population {
        match &*self.all {
            [only] => only,
            all => &all[all.partition_point(|one| u64::from(one.first) <= number) - 1],
        }
    }

    /// When the groups that have an end of their own end, after the start of the run, and the
    /// indices that their users have in a thread; the first to end last.
    pub fn ends_in(&self, thread: &Share) -> Vec<(u64, Range<u32>)> {
        let index = |number| thread.of(number) as u32;
        let of = |one: &Population| {
            let range = index(one.first)..index(one.first + one.users);
            one.end_ns.map(|end_ns| (end_ns, range))
        };
        let mut ends: Vec<_> = self.all.iter().filter_map(of).collect();
        ends.sort_by_key(|(end_ns, _)| std::cmp::Reverse(*end_ns));
        ends
    }
}

impl Population {
    /// When this user starts, after the start of the run.
    pub fn start_ns(&self, number: u32) -> u64 {
        let within = self.ramp_up.start_ns(number - self.first, self.users);
        self.start_ns.saturating_add(within)
    }

    /// The user's number in its group, from 0.
    pub fn number_in_group(&self, number: u64) -> u64 {
        u64::from(self.before) + self.number_within(number)
    }

    /// The user's number in this population, from 0.
    fn number_within(&self, number: u64) -> u64 {
        number - u64::from(self.first)
    }

    /// The user's number among all who draw rows of a feeder, from 0; `None`: it draws none.
    #[inline]
    pub fn number_at_feeder(&self, feeder: usize, number: u64) -> Option<u64> {
        let before = self.feeders.get(feeder).copied().flatten()?;
        Some(before + self.number_within(number))
    }
}

fn several(plan: &Plan, populations: &[PopulationPlan]) -> Vec<Population> {
    let mut first = 0;
    let mut before = vec![0_u64; plan.feeders.len()];
    let mut all = Vec::new();
    for (place, one) in populations.iter().enumerate() {
        let start_ns = ms_to_ns(one.start_ms);
        let feeders = plan
            .feeders
            .iter()
            .zip(&mut before)
            .map(|(feeder, before)| {
                let named = one.feeders.as_ref();
                if named.is_some_and(|names| !names.contains(&feeder.name)) {
                    return None;
                }
                let here = *before;
                *before += u64::from(one.users);
                Some(here)
            });
        all.push(Population {
            place,
            first,
            users: one.users,
            before: one.users_before,
            start_ns,
            ramp_up: ramp(one.ramp_up_ms, one.ramp_up_steps),
            end_ns: one.duration_ms.map(|span_ms| start_ns + ms_to_ns(span_ms)),
            iterations: one.iterations_per_user.unwrap_or(u64::MAX),
            feeders: feeders.collect(),
        });
        first += one.users;
    }
    all
}

fn ramp(span_ms: f64, steps: Option<u32>) -> Ramp {
    Ramp {
        span_ns: ms_to_ns(span_ms),
        steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::share::tests::one_of;
    use proptest::prelude::*;
    use serde_json::json;

    fn of(sizes: &[u32]) -> Populations {
        let groups: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(place, users)| {
                json!({"name": format!("p{place}"), "users": users, "start_ms": 100 * place, "ramp_up_ms": 50,
                    "duration_ms": 1000 - 200 * place as i64, "iterations_per_user": place + 1})
            })
            .collect();
        let plan = json!({"version": 1, "target": {"url": "http://h:1"},
            "load": {"model": "closed", "populations": groups},
            "scenarios": [{"steps": [{"path": "/"}]}], "stop": {}});
        Populations::new(&crate::check::read_plan(&plan.to_string()).unwrap())
    }

    proptest! {
        /// Each user belongs to one group, and every thread has its part of each, to within one user.
        #[test]
        fn groups_are_shared_out_evenly(sizes in proptest::collection::vec(1u32..50, 1..5), threads in 1usize..5) {
            let all = of(&sizes);
            prop_assert_eq!(all.users(), sizes.iter().sum::<u32>());
            let mut counted = vec![0; sizes.len()];
            for number in 0..all.users() {
                counted[all.of(number.into()).place] += 1;
            }
            prop_assert_eq!(&counted, &sizes);
            let mut shared = vec![0; sizes.len()];
            for thread in 0..threads {
                for (end_ns, range) in all.ends_in(&one_of(thread, threads)) {
                    let place = sizes.iter().enumerate().position(|(place, _)| end_ns == (1000 - 100 * place as u64) * 1_000_000).unwrap();
                    let part = sizes[place] as usize / threads;
                    prop_assert!((part..=part + 1).contains(&range.len()));
                    prop_assert!(range.clone().all(|index| all.of(u64::from(index) * threads as u64 + thread as u64).place == place));
                    shared[place] += range.len() as u32;
                }
            }
            prop_assert_eq!(&shared, &sizes);
        }
    }

    #[test]
    fn a_user_starts_in_its_groups_ramp_and_is_numbered_within_it() {
        let all = of(&[4, 2]);
        let starts: Vec<u64> = (0..6)
            .map(|number| all.of(number.into()).start_ns(number) / 1000)
            .collect();
        assert_eq!(starts, [0, 12_500, 25_000, 37_500, 100_000, 125_000]);
        assert_eq!(all.of(5).number_in_group(5), 1);
        assert_eq!((all.of(3).iterations, all.of(4).iterations), (1, 2));
        let ends: Vec<u64> = all
            .ends_in(&one_of(0, 1))
            .iter()
            .map(|(end_ns, _)| end_ns / 1_000_000)
            .collect();
        assert_eq!(ends, [1000, 900]);
    }
}
