"""A plan within a given time: the fewest trials, what may follow, and what is said beforehand."""

from __future__ import annotations

from prony.plan import workload
from prony.plan.budget import FEWEST, within
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.part import Part, Search
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan, fixed

TRIAL_S = 6 + 5 + 10 + 1
"""Start, warm-up, window, stop."""


def plan(trials: int = 5, parts: tuple[Part, ...] = (Part(name="one", title="One"),)) -> Plan:
    trial = TrialPlan(
        workload=workload.load("hello"),
        load=ClosedLoad(users=8),
        measured=SteadyWindow(window_s=10),
        warm_up=fixed(5.0),
        scaling_probe=False,
    )
    cells = tuple(
        cell_of(part.name, server, Launch(address=server), trial, trials, controls=1)
        for part in parts
        for server in "ab"
    )
    return Plan(name="p", command="run", title="t", parts=parts, cells=cells, seed=1)


def test_the_planned_trials_and_blocks_that_may_follow() -> None:
    made = within(plan(), 20 * 2 * TRIAL_S + 12)
    assert [cell.trials for cell in made.cells] == [5, 5]
    assert [cell.controls for cell in made.cells] == [0, 0]
    assert made.parts[0].until_clear == 20
    assert made.budget_s == 20 * 2 * TRIAL_S + 12
    assert "5 trials" in made.changes[-1]
    assert "about 15" in made.changes[-1]
    assert Plan.model_validate(made.as_stored()) == made


def test_where_the_planned_trials_do_not_fit_there_are_the_fewest() -> None:
    made = within(plan(), 4 * 2 * TRIAL_S + 12)
    assert [cell.trials for cell in made.cells] == [FEWEST] * 2
    assert made.parts[0].until_clear == 4
    assert made.estimate_s <= 4 * 2 * TRIAL_S + 12 + 12, "conformance apart"


def test_where_the_fewest_do_not_fit_it_says_what_would() -> None:
    made = within(plan(), 60)
    assert [cell.trials for cell in made.cells] == [FEWEST] * 2
    assert (made.budget_s, made.parts[0].until_clear) == (60, None)
    assert "--budget 3m" in made.changes[-1]
    assert "block" not in made.changes[-1]


def test_a_budget_shorter_than_a_block_says_what_holds_one_and_when_it_ends() -> None:
    made = within(plan(), 30)
    assert "--budget 1m" in made.changes[-1]
    assert "--budget 3m" in made.changes[-1]
    assert made.estimate_s == 2 * TRIAL_S


def test_what_trials_took_here_before_replaces_the_estimate() -> None:
    cells = tuple(cell.model_copy(update={"took_s": 10.0}) for cell in plan().cells)
    made = within(plan().model_copy(update={"cells": cells}), 6 * 10 + 12)
    assert [cell.trials for cell in made.cells] == [FEWEST] * 2
    assert "--budget" not in made.changes[-1]
    assert made.cells[0].under(ClosedLoad(users=1)).trial_s == TRIAL_S, "another load, another duration"


def test_one_time_for_all_parts_and_room_to_choose() -> None:
    parts = (Part(name="one", title="One"), Part(name="two", title="Two"))
    made = within(plan(parts=parts), 20 * 4 * TRIAL_S + 24)
    assert {part.budget_s for part in made.parts} == {made.budget_s}
    assert {part.until_clear for part in made.parts} == {5 + 2 * 15}


def test_what_is_counted_otherwise_gets_no_blocks() -> None:
    assert within(plan(trials=1), 600).parts[0].until_clear is None
    search = Search(objectives="p99<50ms", highest_per_s=1e5, resolution=0.05, most_trials=3)
    made = within(plan(parts=(Part(name="one", title="t", shape="capacity", search=search),)), 600)
    assert (made.parts[0].until_clear, made.budget_s) == (None, 600)


def test_until_clear_keeps_its_last_look() -> None:
    assert within(plan(parts=(Part(name="one", title="t", until_clear=7),)), 1800).parts[0].until_clear == 7


def test_explained_trials_take_their_time_from_the_budget() -> None:
    asked = plan()
    cells = tuple(cell.model_copy(update={"explain": True}) for cell in asked.cells)
    made = within(asked.model_copy(update={"cells": cells}), 20 * 2 * TRIAL_S + 12)
    assert made.parts[0].until_clear == 19, "one block less than without"
    assert "4.4 min" in made.changes[-1]
    made = within(asked.model_copy(update={"cells": cells}), (2 * FEWEST + 1) * TRIAL_S)
    assert "2 explained" in made.changes[-1]
