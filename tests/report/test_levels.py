"""Variance by level in words: what is saved, and when no mix is named."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from prony.compare.levels import Levels
from prony.plan.load import OpenLoad
from prony.report.cell_view import CellView, TrialView
from prony.report.pairs import levels_of, levels_words, stretches

from . import factory


def test_the_time_saved_is_a_share_of_the_time_now() -> None:
    levels = Levels(0.001, 0.05, 30, 10, window_s=10, process_s=10, between_low=0.03)
    assert levels.relative_time(30) == pytest.approx(15.5, abs=0.1)
    assert "94 %" in levels_words(levels)


def test_no_mix_is_named_where_processes_may_not_differ() -> None:
    words = levels_words(Levels(0.02, 0.01, 3, 10, window_s=10, process_s=90, between_low=0.0))
    assert words.count(" %") == 2, "the two variances, and no saving"


def windowed(duration_s: float, rows_per_s: int = 1) -> TrialView:
    """A window from 20 s on; in its second n there are 100 x n requests."""
    (trial,) = factory.foreign_load().trials
    engine = trial.record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    rows = [
        engine.rows[0].model_copy(
            update={"t_ms": 20_000 + t_ms, "duration_ms": 1000 / rows_per_s, "in_window": True,
                    "completed": 100 * math.ceil(t_ms / 1000) / rows_per_s}
        )
        for t_ms in (1000 * (at + 1) / rows_per_s for at in range(int(duration_s * rows_per_s)))
    ]  # fmt: skip
    window = engine.window.model_copy(update={"opened_ms": 20_000.0, "duration_s": duration_s})
    evidence = trial.record.evidence.model_copy(
        update={"engine": engine.model_copy(update={"rows": rows, "window": window})}
    )
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def test_windows_of_one_process_are_cut_by_time() -> None:
    assert stretches(windowed(10), 2) == pytest.approx([300, 800])
    assert stretches(windowed(10, rows_per_s=4), 3) == pytest.approx([230.77, 550, 869.23], abs=30)
    assert stretches(windowed(10), 4) == [], "a row or two are no window"


def test_a_row_that_is_missing_does_not_move_the_windows_after_it() -> None:
    trial = windowed(20)
    engine = trial.record.evidence.engine
    assert engine is not None
    holed = engine.model_copy(update={"rows": engine.rows[:2] + engine.rows[5:]})
    evidence = trial.record.evidence.model_copy(update={"engine": holed})
    trial = replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))
    assert stretches(trial, 2)[1] == pytest.approx(1550)


def test_a_window_that_was_interrupted_is_left_out() -> None:
    assert stretches(windowed(12), 2, least_s=19.8) == []
    assert stretches(windowed(20), 2, least_s=19.8) == pytest.approx([550, 1550])


def test_of_an_open_loop_whose_schedule_sets_the_throughput_nothing_is_reported() -> None:
    trials = [
        factory.trial(factory.record(server, block, place))
        for block in range(4)
        for place, server in enumerate(("spring-tomcat", "spring-jetty"))
    ]
    servers = ["spring-tomcat", "spring-jetty"]
    cells = factory.experiment(trials, servers, quick=False, blocks=4, published=False).parts[0].cells
    levels = levels_of(cells)
    assert levels is not None
    assert levels.of_one_window

    def opened(cell: CellView) -> CellView:
        plan = cell.cell.trial.model_copy(update={"load": OpenLoad(rate_per_s=100, max_users=10)})
        return replace(cell, cell=cell.cell.model_copy(update={"trial": plan}))

    assert levels_of([opened(cell) for cell in cells]) is None


def test_thirds_of_a_window_are_named_as_thirds_and_one_window_is_one() -> None:
    thirds = Levels(0.02, 0.01, 3, 10, window_s=10, process_s=90, between_low=0.005, of_one_window=True)
    assert all(text in levels_words(thirds) for text in ("thirds", "10.0 s", "60 s"))
    single = levels_words(Levels(0.001, 0.05, 30, 10, window_s=10, process_s=10, between_low=0.03))
    assert all(text in single for text in ("1 window", "10 s", "94 %"))


def test_the_cheapest_number_of_windows_is_named() -> None:
    words = levels_words(Levels(0.02, 0.01, 5, 10, window_s=10, process_s=90, between_low=0.005))
    assert all(text in words for text in ("6 windows", "60 s"))
