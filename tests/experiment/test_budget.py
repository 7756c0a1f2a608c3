"""Is there room for these trials? By made-up clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prony.experiment.budget import Budget
from tests.report.factory import record


def test_trials_begin_only_where_they_end_in_time() -> None:
    budget = Budget(100.0)
    assert budget.has_room(0.0, {"a": 500.0}), "before anything was run"
    budget.begin(1000.0)
    budget.took("a", 20.0)
    # 40 s used, 20 s as the longest of a, 40 s as planned.
    assert budget.has_room(1040.0, {"a": 5.0, "b": 40.0})
    assert not budget.has_room(1041.0, {"a": 5.0, "b": 40.0})


def test_the_longest_trial_of_a_cell_decides_not_the_last() -> None:
    budget = Budget(100.0)
    budget.begin(0.0)
    budget.took("a", 50.0)
    budget.took("a", 5.0)
    assert not budget.has_room(55.0, {"a": 5.0})
    budget.begin(50.0)
    assert not budget.has_room(55.0, {"a": 5.0}), "it has begun once"


def test_cells_of_which_none_has_ended_take_what_is_planned_at_the_pace_so_far() -> None:
    budget = Budget(100.0)
    budget.begin(0.0)
    budget.took("a", 20.0, planned_s=40.0)
    assert budget.has_room(20.0, {"b": 160.0})
    assert not budget.has_room(20.0, {"b": 161.0})


def test_what_earlier_runs_took_counts() -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    earlier = [
        record("a", block).model_copy(
            update={"cell": "a", "started_at": at, "ended_at": at + timedelta(seconds=20 + block)}
        )
        for block in (0, 0, 1)
    ]
    budget = Budget.of(100.0, earlier)
    assert (budget.spent_s, budget.longest_s) == (61.0, {"a": 21.0})
    assert budget.has_room(1000.0, {"a": 1.0})
    assert not Budget.of(81.0, earlier).has_room(1000.0, {"a": 1.0})


def test_a_clock_that_went_back_between_two_trials_takes_no_time_away() -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    back = record("a", 0).model_copy(update={"started_at": at, "ended_at": at - timedelta(hours=1)})
    assert Budget.of(100.0, [back]).spent_s == 0.0
