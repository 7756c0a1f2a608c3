use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::*;
use crate::scenario::compile::{Scenarios, Server};
use crate::scenario::redirect::TargetOrigin;

fn compiled(steps: Value, variables: Value) -> Result<Scenarios, String> {
    let plan = json!({"version": 1, "target": {"url": "http://h:1"}, "load": {"model": "closed", "users": 1},
        "scenarios": [{"variables": variables, "steps": steps}], "stop": {"total_requests": 1}});
    let plan = crate::check::read_plan(&plan.to_string()).map_err(|error| error.0)?;
    let origin = TargetOrigin {
        secure: false,
        authority: "h:1".to_owned(),
    };
    let servers = [Server {
        origin: &origin,
        host: "h",
    }];
    Scenarios::compile(&plan, &servers).map_err(|error| error.0)
}

/// A user of compiled scenarios.
struct Walker {
    scenarios: Scenarios,
    cursor: Cursor,
    vars: Vars,
    rng: SmallRng,
    passed: Passed,
}

impl Walker {
    fn new(steps: Value, variables: Value) -> Self {
        let scenarios = compiled(steps, variables).unwrap();
        let mut vars = Vars::new(scenarios.shape.unwrap());
        let mut rng = SmallRng::seed_from_u64(1);
        for (slot, text) in &scenarios.variables {
            let value = text.text(&scenarios.shared, &mut vars, &mut rng);
            vars.set(*slot, value);
        }
        Self {
            cursor: Cursor::new(scenarios.program.as_ref().unwrap()),
            scenarios,
            vars,
            rng,
            passed: Passed::default(),
        }
    }

    /// The names of the requests of one iteration; a service time of 10 ns each.
    fn iteration(&mut self) -> (Vec<String>, Advance) {
        let program = self.scenarios.program.as_ref().unwrap();
        self.vars.forget_captured(self.scenarios.shape.unwrap());
        self.cursor.begin(program, 0);
        let mut names = Vec::new();
        loop {
            let stop = program.advance(
                &mut self.cursor,
                &mut self.vars,
                (&self.scenarios.shared, &mut self.rng),
                Unanswered::default(),
                1_000,
                &mut self.passed,
            );
            let Advance::Request(step) = stop else {
                return (names, stop);
            };
            let figure = self.scenarios.steps[usize::from(step)].figure;
            let mut name = self.scenarios.figures[figure].step.clone();
            for (slot, value) in self.vars.captured.iter().enumerate() {
                if slot < 2
                    && let Some(value) = value
                {
                    name += &format!(" {}", String::from_utf8_lossy(value));
                }
            }
            names.push(name);
            self.cursor.spend(usize::MAX, 10, false);
            assert!(names.len() < 10_000);
        }
    }

    fn walked(&mut self) -> Vec<String> {
        self.iteration().0
    }
}

fn step(name: &str) -> Value {
    json!({"name": name, "path": "/"})
}

#[test]
fn loops_give_their_rounds_a_number_and_an_element() {
    let mut walker = Walker::new(
        json!([{"loop": {"over": ["x", "y"], "as": "e", "index": "i"}, "steps": [step("a")]},
            {"loop": {"count": 0}, "steps": [step("never")]}, {"loop": {"count": 2}, "steps": [step("b")]}]),
        json!([]),
    );
    assert_eq!(walker.walked(), ["a x 0", "a y 1", "b y 1", "b y 1"]);
}

#[test]
fn a_loop_goes_over_the_elements_of_a_value() {
    let each = |more: Value| {
        let mut each = json!({"each": "list", "as": "e"});
        each.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([{"loop": each, "steps": [step("a"), {"set": [["list", "[]"]]}]}, step("end")])
    };
    for (list, more, expected) in [
        (
            r#"["x", 7, null, {"k": 1}]"#,
            json!({}),
            vec!["x", "7", "", r#"{"k":1}"#],
        ),
        (
            r#"["x", null]"#,
            json!({"as_json": true}),
            vec![r#""x""#, "null"],
        ),
        ("[]", json!({}), vec![]),
        (r#"{"a": 1}"#, json!({}), vec![]),
        ("no list", json!({}), vec![]),
    ] {
        // The list is the one that was there when the loop began.
        let mut walker = Walker::new(each(more), json!([["list", list]]));
        let walked = walker.walked();
        let (end, rounds) = walked.split_last().unwrap();
        assert!(end.starts_with("end"));
        let held = |round: usize| if round == 0 { list } else { "[]" };
        let expected = expected.iter().enumerate();
        let expected = expected.map(|(round, element)| format!("a {} {element}", held(round)));
        assert_eq!(rounds, expected.collect::<Vec<_>>(), "{list}");
    }
    for (wrong, part) in [
        (json!({"each": "list", "count": 2}), "at most one"),
        (json!({"each": "other"}), "nothing in this scenario"),
        (json!({"count": 2, "as_json": true}), "without each"),
    ] {
        let steps = json!([{"loop": wrong, "steps": [step("a")]}]);
        let refusal = compiled(steps, json!([["list", "[]"]])).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn a_loop_ends_when_its_condition_fails_and_is_given_up_when_it_cannot() {
    let condition = json!({"left": "${i}", "op": "<", "right": "3"});
    let mut walker = Walker::new(
        json!([{"loop": {"while": condition, "index": "i"}, "steps": [step("a")]}, step("end")]),
        json!([]),
    );
    // The number is set as a round begins, so the condition still sees that of the round before.
    assert_eq!(walker.walked().len(), 5);
    let mut endless = Walker::new(
        json!([{"loop": {}, "steps": [{"set": [["x", "1"]]}]}, step("a")]),
        json!([]),
    );
    assert_eq!(endless.iteration(), (vec![], Advance::Lost));
}

#[test]
fn conditions_choose_between_two_lists() {
    let mut walker = Walker::new(
        json!([{"if": {"left": "${kind}", "op": "matches", "right": "^b.g$"}, "steps": [step("yes")], "else": [step("no")]},
            {"set": [["kind", "small"]]}, {"if": {"all": [{"exists": "kind"}, {"not": {"exists": "other"}}]}, "steps": [step("set")]}]),
        json!([["kind", "big"]]),
    );
    assert_eq!(walker.walked(), ["yes big", "set small"]);
    // A variable is kept over iterations.
    assert_eq!(walker.walked(), ["no small", "set small"]);
}

#[test]
fn once_interleaved_and_shared_visits_are_counted_over_iterations() {
    let mut walker = Walker::new(
        json!([{"once": true, "steps": [step("login")]}, {"choice": "interleave", "steps": [step("a"), step("b")]},
            {"share": {"percent": 25}, "steps": [step("s")]}]),
        json!([]),
    );
    let all: Vec<String> = (0..8).flat_map(|_| walker.walked()).collect();
    let count = |name: &str| all.iter().filter(|one| *one == name).count();
    assert_eq!(
        (count("login"), count("a"), count("b"), count("s")),
        (1, 4, 4, 2)
    );
    assert_eq!(all[..2], ["login", "a"]);
}

#[test]
fn a_share_is_rounded_as_asked() {
    let visits = |percent: f64, rounding: &str| {
        let share = json!({"percent": percent, "rounding": rounding});
        let mut walker = Walker::new(
            json!([step("a"), {"share": share, "steps": [step("s")]}]),
            json!([]),
        );
        let sent = (1..=12).filter(|_| walker.walked().len() == 2);
        sent.collect::<Vec<i32>>()
    };
    assert_eq!(visits(30.0, "down"), [4, 7, 10]);
    assert_eq!(visits(30.0, "nearest"), [2, 6, 9, 12]);
    assert_eq!(visits(50.0, "nearest"), [2, 4, 6, 8, 10, 12]);
    assert_eq!(visits(100.0, "nearest").len(), 12);
    assert!(visits(0.0, "nearest").is_empty());
}

#[test]
fn a_random_choice_keeps_to_its_weights() {
    let mut walker = Walker::new(
        json!([{"choice": "random", "weights": [3, 1], "steps": [step("a"), {"group": true, "steps": [step("b"), step("b")]}]}]),
        json!([]),
    );
    let second = (0..40_000).filter(|_| walker.walked().len() == 2).count();
    // Binomial with p = 1/4: the deviation is 87, five of them are never seen.
    assert!((9_565..=10_435).contains(&second), "{second}");
}

/// When the passages of a pace with these phases are due, for a user who comes by again `every_ms`.
fn passages(phases: &Value, every_ms: u64, count: usize) -> Vec<u64> {
    let steps = json!([{"pace": {"phases": phases, "per": "run"}}, step("a")]);
    let walker = Walker::new(steps, json!([]));
    let program = walker.scenarios.program.as_ref().unwrap();
    let mut cursor = Cursor::new(program);
    let Some(Op::Follow(rate, last, first)) = program.ops.first() else {
        panic!("{:?}", program.ops);
    };
    let start_ns = 5_000_000_000;
    let comes_ns = |number: usize| start_ns + number as u64 * every_ms * 1_000_000;
    (0..count)
        .map(|number| program.follow(&mut cursor, rate, (*last, *first), comes_ns(number)))
        .map(|due_ns| (due_ns - start_ns) / 1_000_000)
        .collect()
}

#[test]
fn a_pace_follows_a_rate_that_changes() {
    let phases = json!([{"duration_ms": 1000, "from_per_s": 4, "to_per_s": 4},
        {"duration_ms": 1000, "from_per_s": 0, "to_per_s": 0}, {"duration_ms": 1000, "from_per_s": 2, "to_per_s": 2}]);
    // With users enough each is due when the integral of the rate has grown by one.
    let due = passages(&phases, 0, 6);
    assert_eq!(due, [0, 250, 500, 750, 2000, 2500]);
    // One who comes every 400 ms misses some, and they are not made up for.
    assert_eq!(passages(&phases, 400, 5), [0, 400, 800, 2100, 2600]);
    let ended = passages(&phases, 0, 7)[6];
    assert!(ended > 24 * 3600 * 1000, "{ended}");
    let ramp = json!([{"duration_ms": 2000, "from_per_s": 0, "to_per_s": 4}]);
    assert_eq!(passages(&ramp, 0, 4), [0, 1000, 1414, 1732]);
}

#[test]
fn a_pace_has_a_rate_or_phases() {
    let refused =
        |pace: Value| compiled(json!([{"pace": pace}, step("a")]), json!([])).unwrap_err();
    let phase = json!({"duration_ms": 1, "from_per_s": 1, "to_per_s": 1});
    assert!(refused(json!({})).contains("expected one of them"));
    assert!(refused(json!({"per_min": 1, "phases": [phase]})).contains("expected one of them"));
    let still = json!({"phases": [{"duration_ms": 0, "from_per_s": 1, "to_per_s": 1}]});
    assert!(refused(still).contains("a time above 0"));
}

#[test]
fn pauses_add_up_and_a_pace_waits_for_the_rest() {
    let mut walker = Walker::new(
        json!([{"pause": {"kind": "constant", "ms": 2}}, {"pause": {"kind": "constant", "ms": 3}},
            {"name": "a", "path": "/", "think_before": {"kind": "constant", "ms": 1}}]),
        json!([]),
    );
    walker.walked();
    assert_eq!(walker.passed.pause_ns, 6_000_000);
    let mut paced = Walker::new(json!([{"pace": {"per_min": 60000}}, step("a")]), json!([]));
    paced.walked();
    assert_eq!(paced.passed.pause_ns, 0);
    paced.walked();
    assert_eq!(paced.passed.pause_ns, 1_000_000);
    // The second place waits for the first one's passage when both have a name, and not without it.
    let pace = |name: &str| json!({"pace": {"per_min": 60000, "name": name}});
    let waits = |names: [&str; 2]| {
        let steps = json!([pace(names[0]), pace(names[1]), step("a")]);
        let mut walker = Walker::new(steps, json!([]));
        walker.walked();
        walker.passed.pause_ns
    };
    assert_eq!(
        (waits(["one", "one"]), waits(["one", "other"])),
        (1_000_000, 0)
    );
}

#[test]
fn a_transaction_is_the_sum_of_its_requests() {
    let mut walker = Walker::new(
        json!([{"transaction": "all", "steps": [step("a"), {"transaction": "part", "steps": [{"name": "b", "path": "/", "repeat": 2}]}]},
            {"transaction": "nothing", "steps": [{"if": false, "steps": [step("c")]}]}]),
        json!([]),
    );
    assert_eq!(walker.walked(), ["a", "b", "b"]);
    let sums: Vec<(u32, u64)> = walker
        .passed
        .ended
        .iter()
        .map(|one| (one.requests, one.service_ns))
        .collect();
    assert_eq!(sums, [(2, 20), (3, 30)]);
}

#[test]
fn blocks_that_cannot_work_are_refused() {
    for (block, part) in [
        (
            json!({"once": true, "if": true, "steps": [step("a")]}),
            "exactly one",
        ),
        (
            json!({"loop": {"count": 1, "over": []}, "steps": [step("a")]}),
            "at most one",
        ),
        (json!({"once": true}), "at least one step"),
        (
            json!({"pause": {"kind": "none"}, "steps": [step("a")]}),
            "no steps",
        ),
        (
            json!({"choice": "random", "weights": [1], "steps": [step("a"), step("b")]}),
            "one weight for each",
        ),
        (
            json!({"if": {"left": "a"}, "steps": [step("a")]}),
            "expected a condition",
        ),
        (
            json!({"if": {"left": "${x}", "op": "==", "right": ""}, "steps": [step("a")]}),
            "not known",
        ),
        (
            json!({"share": {"percent": 101}, "steps": [step("a")]}),
            "0 to 100",
        ),
        (json!({"set": [["uuid", "1"]]}), "none of"),
        (json!({"group": true, "else": [], "stops": []}), "stops"),
    ] {
        let refusal = compiled(json!([block, step("z")]), json!([])).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
    let mut deep = step("a");
    for _ in 0..40 {
        deep = json!({"group": true, "steps": [deep]});
    }
    assert!(
        compiled(json!([deep]), json!([]))
            .unwrap_err()
            .contains("deeper")
    );
}

/// Any nesting of blocks, with the number of requests of its first iteration where no chance is in it.
fn any_block() -> impl Strategy<Value = (Value, u64)> {
    let leaf =
        (1u32..3).prop_map(|repeat| (json!({"path": "/", "repeat": repeat}), u64::from(repeat)));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let list = proptest::collection::vec(inner, 1..3);
        let split = |list: Vec<(Value, u64)>| {
            let total: u64 = list.iter().map(|(_, count)| count).sum();
            (
                list.into_iter().map(|(block, _)| block).collect::<Vec<_>>(),
                total,
            )
        };
        prop_oneof![
            (list.clone(), 0u64..3).prop_map(move |(list, count)| {
                let (steps, total) = split(list);
                (
                    json!({"loop": {"count": count}, "steps": steps}),
                    total * count,
                )
            }),
            (list.clone(), list.clone(), any::<bool>()).prop_map(move |(yes, no, holds)| {
                let ((steps, one), (others, other)) = (split(yes), split(no));
                (
                    json!({"if": holds, "steps": steps, "else": others}),
                    if holds { one } else { other },
                )
            }),
            list.clone().prop_map(move |list| {
                let (steps, total) = split(list);
                (json!({"transaction": "t", "steps": steps}), total)
            }),
            list.prop_map(move |list| {
                let (steps, total) = split(list);
                (
                    json!({"loop": {"over": ["x", "y"], "as": "e"}, "steps": steps}),
                    total * 2,
                )
            }),
        ]
    })
}

proptest! {
    /// However blocks are nested, an iteration ends, and sends exactly what is written down.
    #[test]
    fn any_program_ends_with_its_exact_total(blocks in proptest::collection::vec(any_block(), 1..4)) {
        let total: u64 = blocks.iter().map(|(_, count)| count).sum();
        let mut steps: Vec<Value> = blocks.into_iter().map(|(block, _)| block).collect();
        steps.push(json!({"set": [["done", "1"]]}));
        let mut walker = Walker::new(json!(steps), json!([]));
        for _ in 0..2 {
            let (names, stop) = walker.iteration();
            prop_assert_eq!((names.len() as u64, stop), (total, Advance::Walked));
        }
    }
}
