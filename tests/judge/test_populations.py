"""Little's law where several groups of users come and go: the yardstick is the sum that the plan asks for."""

from __future__ import annotations

import pytest

from prony.evidence.trial import Evidence, PopulationFacts
from prony.judge.checks.little import little, planned_users
from prony.judge.drift import level_rows
from prony.judge.finding import Kind
from prony.judge.limits import CheckLimits
from tests.judge.factory import OPENED_MS, WINDOW_S, healthy, part, window

OPENS_S = OPENED_MS / 1000
STAYS = PopulationFacts(name="stays", users=6)
LEAVES = PopulationFacts(name="leaves", users=4, start_s=OPENS_S, ramp_up_s=2, end_s=OPENS_S + 7)
USER_S = 6 * WINDOW_S + 7.0 + 6.5 + 6.0 + 5.5
"""Of the two groups within the window: the users of the second start every half second."""


def grouped(cycle_s: float, *groups: PopulationFacts) -> Evidence:
    """Users of these groups, simulated for so long altogether."""
    users = sum(group.users for group in groups)
    load = part(healthy(), "load", users=users, at_once=10, populations=groups)
    return window(load, clipped_cycle_s=cycle_s, service_time_sum_s=cycle_s, in_flight_integral_s=cycle_s)


def test_the_yardstick_is_the_sum_over_groups() -> None:
    evidence = grouped(USER_S * 0.998, STAYS, LEAVES)
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    assert planned_users(evidence.engine.window, evidence.load) == pytest.approx(USER_S / WINDOW_S)
    found = little(evidence, CheckLimits())
    assert found.kind is Kind.FINE
    assert found.value == pytest.approx(-0.002, abs=0.0015)


def test_steps_of_a_group_are_those_of_the_engine() -> None:
    stepped = LEAVES.model_copy(update={"ramp_up_steps": 2})
    evidence = grouped(1.0, stepped)
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    expected = (2 * 7 + 2 * 6) / WINDOW_S
    assert planned_users(evidence.engine.window, evidence.load) == pytest.approx(expected)


def test_a_group_that_never_came_is_seen_although_the_others_are_there() -> None:
    found = little(grouped(6 * WINDOW_S, STAYS, LEAVES), CheckLimits())
    assert (found.conforms, found.code) == (False, "users_missing")
    assert found.value == pytest.approx(6 / 8.5 - 1, abs=0.0015)


def test_a_group_that_does_not_end_is_seen_too() -> None:
    found = little(grouped(USER_S + 4 * 3, STAYS, LEAVES), CheckLimits())
    assert (found.conforms, found.code) == (False, "too_many_users")


def test_where_iterations_end_a_group_the_engine_says_how_many_there_were() -> None:
    counted = LEAVES.model_copy(update={"end_s": None, "iterations_per_user": 5})
    evidence = window(grouped(70.0, STAYS, counted), users_integral_s=70.1)
    found = little(evidence, CheckLimits())
    assert found.kind is Kind.FINE
    assert found.value == pytest.approx(70 / 70.1 - 1, abs=0.002)


def test_rows_in_which_all_are_there_who_can_be_are_level() -> None:
    evidence = grouped(USER_S, STAYS, LEAVES.model_copy(update={"users": 40}))
    assert evidence.engine is not None
    rows = evidence.engine.rows
    assert level_rows(rows, evidence.load) == [row for row in rows if (row.users or 0) >= 10]
