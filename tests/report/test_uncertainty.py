"""How far the figure of a cell may be off: the interval over its trials, the budget, what it rests on; and
whether that is good enough for `--strict`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest

from prony.cli.showing import exit_code
from prony.compare.summary import half_width
from prony.errors import ExitCode
from prony.judge.finding import Bias, Finding
from prony.plan.load import OpenLoad
from prony.report.cell_view import HEADLINE, CellView
from prony.report.result import ResultView

from . import factory

SERVER = "spring-tomcat"


def result(trials: int, *troubles: Finding, only: int | None = None) -> ResultView:
    """So many trials of a server; `troubles` in all of them, or in this one."""
    made = [
        factory.trial(factory.record(SERVER, block), *(troubles if only in (None, block) else ()))
        for block in range(trials)
    ]
    return factory.experiment(made, [SERVER], quick=False, blocks=max(2, trials), published=False)


def cell_of(view: ResultView) -> CellView:
    (cell,) = view.cells
    return cell


def noisy(high: float) -> Finding:
    return factory.finding("isolation", bias={HEADLINE: Bias(high=high)}, advice="stop it")


def test_a_source_is_the_mean_of_what_it_does_to_each_trial() -> None:
    (line,) = cell_of(result(4, noisy(0.1), only=2)).budget(HEADLINE)
    assert (line.source, line.code, line.low, line.advice) == ("isolation", "found", 0.0, "stop it")
    assert line.high == pytest.approx(1.1 ** (1 / 4) - 1)
    assert cell_of(result(4, noisy(0.1))).budget("mean_ms") == ()


def test_a_side_that_one_trial_leaves_open_is_open() -> None:
    (line,) = cell_of(result(3, factory.SATURATED, only=1)).budget(HEADLINE)
    assert (line.low, line.high) == (0.0, None)


def test_lines_come_the_largest_first_and_add_up() -> None:
    small = factory.finding("warm", bias={HEADLINE: Bias(low=-0.01, high=0.02)})
    cell = cell_of(result(3, small, noisy(0.1)))
    assert [line.source for line in cell.budget(HEADLINE)] == ["isolation", "warm"]
    uncertainty = cell.uncertainty(HEADLINE)
    assert uncertainty is not None
    assert uncertainty.bias_high == pytest.approx(1.02 * 1.1 - 1)
    assert uncertainty.bias_low == pytest.approx(-0.01)


def test_a_derived_figure_has_the_budget_of_what_it_is_derived_from() -> None:
    (line,) = cell_of(result(3, noisy(0.1))).budget("requests_per_s_per_gib")
    assert line.high == pytest.approx(0.1)


def test_trials_without_a_figure_lie_where_others_were_seen() -> None:
    cell = cell_of(result(4, factory.FAILING, only=3))
    (line,) = cell.budget(HEADLINE)
    logs = [math.log(trial.figures[HEADLINE]) for trial in cell.counting]
    assert (line.source, line.code) == ("missing", "missing")
    assert line.high == pytest.approx(math.expm1((max(logs) - fmean(logs)) / 4))
    assert line.low == pytest.approx(math.expm1((min(logs) - fmean(logs)) / 4))


def test_the_interval_is_that_of_the_mean_over_trials() -> None:
    cell = cell_of(result(5))
    uncertainty = cell.uncertainty(HEADLINE)
    assert uncertainty is not None
    half = half_width([trial.figures[HEADLINE] for trial in cell.counting])
    assert (uncertainty.low, uncertainty.high) == pytest.approx((math.expm1(-half), math.expm1(half)))
    assert uncertainty.worst == pytest.approx((uncertainty.low, uncertainty.high))


@pytest.mark.parametrize("trials", [1, 2])
def test_of_one_or_two_trials_it_reaches_as_far_as_their_own(trials: int) -> None:
    cell = cell_of(result(trials))
    off, own = cell.uncertainty(HEADLINE), [trial.estimates[HEADLINE] for trial in cell.counting]
    assert off is not None
    assert off.low is not None
    assert off.high is not None
    mean = math.exp(fmean(math.log(e.value) for e in own))
    assert all(mean * (1 + off.low) <= e.value <= mean * (1 + off.high) for e in own)
    assert mean * (1 + off.low) == pytest.approx(min(e.low or 0 for e in own))
    assert mean * (1 + off.high) == pytest.approx(max(e.high or 0 for e in own))


@pytest.mark.parametrize("took_ms", [2.8, 6.5, 9.6, 201.1])
def test_an_interval_that_ends_at_the_value_is_none_below_or_above_it(took_ms: float) -> None:
    """All responses took the same time: rounding must not put the end on the wrong side."""
    made = factory.trial(factory.constant(factory.record(SERVER), took_ms))
    view = factory.experiment([made], [SERVER], quick=False, published=False)
    for figure in ("p50_ms", "p99_ms"):
        uncertainty = cell_of(view).uncertainty(figure)
        assert uncertainty is not None
        low, high = uncertainty.low, uncertainty.high
        assert low is not None
        assert high is not None
        assert -0.01 < low <= 0 <= high < 0.01
        Bias(low=low, high=high)


def test_an_interval_that_one_trial_does_not_have_is_not_known() -> None:
    uncertainty = cell_of(result(2)).uncertainty("server_cpu_us_per_request")
    assert uncertainty is not None
    assert (uncertainty.low, uncertainty.high) == (None, None)
    assert cell_of(result(2, factory.FAILING)).uncertainty(HEADLINE) is None


def test_what_it_rests_on_is_each_condition_once_of_the_trials_that_conform() -> None:
    cell = cell_of(result(3, factory.BLIND))
    assert [(c.check, c.text) for c in cell.provided] == [("warm", factory.BLIND.provided)]
    assert cell_of(result(3, factory.BLIND, factory.FAILING)).provided == ()


@pytest.mark.parametrize(
    ("view", "strict", "code"),
    [
        (result(5), None, ExitCode.OK),
        (result(5), 0.05, ExitCode.OK),
        (result(5), 0.0001, ExitCode.NO_FIGURE),
        (result(5, noisy(0.1)), None, ExitCode.OK),
        (result(5, noisy(0.1)), 0.05, ExitCode.NO_FIGURE),
        (result(5, noisy(0.1)), 0.2, ExitCode.OK),
        (result(5, factory.SATURATED), None, ExitCode.OK),
        (result(5, factory.SATURATED), 0.99, ExitCode.NO_FIGURE),
        (result(1), 0.05, ExitCode.OK),
        (result(3, factory.FAILING, only=0), None, ExitCode.OK),
        (result(3, factory.FAILING), None, ExitCode.NO_FIGURE),
        (result(3, factory.FAILING), 0.5, ExitCode.NO_FIGURE),
    ],
)
def test_the_exit_code_says_whether_there_is_a_figure_and_how_good(
    view: ResultView, strict: float | None, code: ExitCode
) -> None:
    assert exit_code(view, strict) == code


def test_of_too_few_requests_for_a_p99_a_lower_percentile_is_asked() -> None:
    view = factory.changed(
        result(3), lambda one: replace(one, figures={k: v for k, v in one.figures.items() if k != "p99_ms"})
    )
    (part,) = view.parts
    (cell,) = part.cells
    planned = cell.cell.model_copy(update={"trial": factory.trial_plan(OpenLoad(rate_per_s=100))})
    replanned = replace(view, parts=(replace(part, cells=(replace(cell, cell=planned),)),))
    assert cell_of(replanned).headline_figure == replanned.parts[0].headline_figure == "p95_ms"
    assert exit_code(replanned, 0.5) == ExitCode.OK
    assert exit_code(replanned, 1e-6) == ExitCode.NO_FIGURE


def test_a_figure_without_an_interval_is_not_good_enough_for_any_share() -> None:
    """Two seconds of window: the rate has no interval, and the one trial is all there is."""

    def short(view: ResultView) -> ResultView:
        (trial,) = view.trials
        engine = trial.record.evidence.engine
        assert engine is not None
        rows = tuple(row for row in engine.rows if not row.in_window)
        evidence = trial.record.evidence.model_copy(
            update={"engine": engine.model_copy(update={"rows": rows})}
        )
        changed = replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))
        return factory.changed(view, lambda _: changed)

    view = short(result(1))
    assert exit_code(view) == ExitCode.OK
    assert exit_code(view, 0.99) == ExitCode.NO_FIGURE
