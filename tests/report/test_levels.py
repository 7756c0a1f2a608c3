"""Variance by level in words: what is saved, and when no mix is named."""

from __future__ import annotations

import pytest

from prony.compare.levels import Levels
from prony.report.levels import stretches, words

from . import factory


def test_the_time_saved_is_a_share_of_the_time_now() -> None:
    found = Levels(0.001, 0.05, 30, 10, window_s=10, process_s=10, between_low=0.03)
    assert found.relative_time(30) == pytest.approx(15.5, abs=0.1)
    assert "(94 % less time for the same width)" in words(found)


def test_no_mix_is_named_where_processes_may_not_differ() -> None:
    said = words(Levels(0.02, 0.01, 3, 10, window_s=10, process_s=90, between_low=0.0))
    assert "less time" not in said
    assert "Too few processes to say how many windows are cheapest." in said


def test_windows_of_one_process_are_cut_at_whole_rows() -> None:
    (trial,) = factory.foreign_load().trials
    engine = trial.record.evidence.engine
    assert engine is not None
    rows = [row.completed for row in engine.rows if row.in_window]
    each = len(rows) // 2
    assert stretches(trial, 2) == pytest.approx([sum(rows[:each]) / each, sum(rows[each : 2 * each]) / each])
    assert stretches(trial, len(rows)) == []


def test_the_cheapest_number_of_windows_is_named() -> None:
    said = words(Levels(0.02, 0.01, 5, 10, window_s=10, process_s=90, between_low=0.005))
    assert ": 6 windows of this length per process (60 s) are the cheapest" in said
