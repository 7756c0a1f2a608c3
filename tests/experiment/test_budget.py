"""Is there room for another block? By made-up clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prony.experiment.budget import Budget
from tests.report.factory import record


def test_a_block_begins_only_where_it_ends_in_time() -> None:
    budget = Budget(100.0)
    assert budget.has_room(0.0)
    budget.block(0.0)
    assert budget.has_room(40.0)  # 40 s used, 40 s for the next
    budget.block(40.0)
    assert not budget.has_room(75.0)  # 75 s used, 40 s for the longest


def test_the_longest_block_decides_not_the_last() -> None:
    budget = Budget(100.0)
    budget.block(0.0)
    budget.block(50.0)
    assert not budget.has_room(55.0)


def test_what_earlier_runs_took_counts() -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    earlier = [
        record("a", block).model_copy(update={"started_at": at, "ended_at": at + timedelta(seconds=20)})
        for block in (0, 0, 1)
    ]
    budget = Budget.of(100.0, earlier)
    assert (budget.spent_s, budget.longest_s) == (60.0, 40.0)
    assert budget.has_room(1000.0)
    assert not Budget.of(99.0, earlier).has_room(1000.0)


def test_a_clock_that_went_back_between_two_trials_takes_no_time_away() -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    back = record("a", 0).model_copy(update={"started_at": at, "ended_at": at - timedelta(hours=1)})
    assert Budget.of(100.0, [back]).spent_s == 0.0
