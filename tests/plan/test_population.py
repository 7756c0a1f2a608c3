"""Several groups of users: what fits together, and what the engine is told."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from prony.load.contract import EngineLoad, engine_plan
from prony.load.facts import load_facts
from prony.plan.load import DRAIN_S, ClosedLoad, Connections, SteadyWindow, WholeRun
from prony.plan.planfile import LoadKeys
from prony.plan.planfile_read import expand
from prony.plan.population import Population, most_at_once
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.plan.workload import Feeder, Scenario, Workload


def walked(**more: Any) -> Workload:
    look, pay = Step(name="look", path="/look"), Step(name="pay", path="/pay/${rows.id}")
    return Workload(
        name="shop",
        scenarios=(Scenario(name="browse", steps=(look,)), Scenario(name="buy", steps=(pay,))),
        feeders={"rows": Feeder(file="rows.csv", order="sequence", at_end="recycle")},
        **more,
    )


MANY = Population(name="many", users=9, ramp_up_s=3, duration_s=10, scenarios=("browse",))
FEW = Population(name="few", users=2, start_s=5, iterations_per_user=4, scenarios=("buy",))


def trial(*populations: Population, **changes: Any) -> TrialPlan:
    values: dict[str, Any] = {
        "workload": walked(), "load": ClosedLoad.model_validate({"populations": populations}),
        "measured": WholeRun(),
    }  # fmt: skip
    return TrialPlan(**{**values, **changes})


def test_users_are_counted_and_the_run_is_bounded_by_its_groups() -> None:
    plan = trial(MANY, FEW)
    assert plan.load == ClosedLoad(users=11, populations=(MANY, FEW))
    assert plan.load_name == "closed-11-in-2-groups"
    assert plan.load.started_s == 5
    alone = trial(MANY, workload=walked().model_copy(update={"scenarios": walked().scenarios[:1]}))
    assert alone.deadline_s == 10 + DRAIN_S
    assert alone.measured_s == 10


def test_the_engine_is_told_each_group_and_who_draws_rows() -> None:
    load = EngineLoad(
        url="http://h:1", workload=walked(), load=ClosedLoad(users=11, populations=(MANY, FEW)), cpus=()
    )
    told = engine_plan(load)["load"]
    assert "users" not in told
    many, few = told["populations"]
    assert (many["users"], many["start_ms"], many["ramp_up_ms"], many["duration_ms"]) == (9, 0, 3000, 10_000)
    assert (many["feeders"], few["feeders"]) == ([], ["rows"])
    assert (few["iterations_per_user"], few["start_ms"], few["scenarios"]) == (4, 5000, ["buy"])


def test_the_judge_is_told_the_sum_and_the_most_at_once() -> None:
    late = MANY.model_copy(update={"name": "late", "start_s": 12.0})
    facts = load_facts(ClosedLoad(users=20, populations=(MANY, late, FEW)), walked(), Connections())
    assert (facts.users, facts.at_once, facts.ramp_up_s) == (20, 11, 15)
    assert [one.end_s for one in facts.populations] == [10, 22, None]


@pytest.mark.parametrize(
    ("populations", "expected"),
    [
        ([{"name": "a", "users": 2}], 2),
        ([{"name": "a", "users": 4, "ramp_up_s": 8, "duration_s": 4.5}], 3),
        ([{"name": "a", "users": 4, "duration_s": 5}, {"name": "b", "users": 3, "start_s": 5}], 4),
        ([{"name": "a", "users": 4, "iterations_per_user": 1}, {"name": "b", "users": 3, "start_s": 5}], 7),
    ],
)
def test_how_many_are_there_together(populations: list[dict[str, Any]], expected: int) -> None:
    assert most_at_once([Population(**one) for one in populations]) == expected


def test_started_users_are_those_of_the_engine() -> None:
    linear = Population(name="a", users=4, start_s=1, ramp_up_s=2)
    assert [linear.started(at) for at in (0.9, 1, 1.4, 1.5, 2.9, 3)] == [0, 1, 1, 2, 4, 4]
    stepped = linear.model_copy(update={"ramp_up_steps": 2})
    assert [stepped.started(at) for at in (1, 1.9, 2)] == [2, 2, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measured": WholeRun(iterations_per_user=3)}, "iterations_per_user"),
        ({"measured": SteadyWindow(window_s=5)}, "'many'"),
        ({"measured": WholeRun(duration_s=9, warm_up_s=1)}, "'many'"),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        trial(MANY, FEW, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "few"}, "'few'"),
        ({"scenarios": ("brows",)}, "'brows'.*browse, buy"),
        ({"scenarios": ("buy",)}, "'browse'"),
        ({"feeders": ("raws",)}, "'raws'"),
        ({"scenarios": (), "think": "1s"}, "'buy'.*think"),
        ({"scenarios": (), "feeders": ()}, "'rows'"),
        ({"duration_s": None}, "duration_s"),
    ],
)
def test_what_a_group_cannot_be_is_said_by_name(change: dict[str, Any], message: str) -> None:
    changed = Population.model_validate(MANY.model_dump(exclude_defaults=True) | change)
    with pytest.raises(ValidationError, match=message):
        trial(changed, FEW)


def test_ramps_stand_in_the_groups_and_the_sum_is_right() -> None:
    with pytest.raises(ValidationError, match="ramp_up_s"):
        ClosedLoad.model_validate({"populations": [MANY], "ramp_down_s": 3})
    with pytest.raises(ValidationError, match=r"5.*9"):
        ClosedLoad(users=5, populations=(MANY,))


def test_a_plan_file_says_them_in_words() -> None:
    keys = LoadKeys.model_validate({"populations": [{"name": "a", "users": 3, "think": "2s", "start_s": 1}]})
    (load,) = expand(keys)
    assert isinstance(load, ClosedLoad)
    assert (load.users, load.populations[0].think.ms) == (3, 2000)
    with pytest.raises(ValidationError, match="users and populations"):
        LoadKeys.model_validate({"users": 3, "populations": [{"name": "a", "users": 3}]})
    with pytest.raises(ValidationError, match="session"):
        LoadKeys.model_validate({"session": "user", "populations": [{"name": "a", "users": 3}]})
