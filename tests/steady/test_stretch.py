"""Which rows the bound is taken from: of one trial, of several, and while a server still warms up."""

from __future__ import annotations

import numpy as np
import pytest

from prony.steady.limits import SteadyLimits
from prony.steady.stretch import Stretch, level_up_to, residual_drift
from prony.trial.warming import NextWindow, SteadyWatch
from tests.judge import factory as f


def made(level: Stretch | None) -> Stretch:
    assert level is not None
    return level


def test_rows_before_a_change_are_left_out() -> None:
    rows = f.rows(f.noisy(4000, 40, 0.005) + f.noisy(8000, 60, 0.005))
    found = made(level_up_to(rows, opens_ms=70_000.0).of("rate"))
    assert found.window_rows == 30
    assert 38 <= float(found.at_s[0]) <= 45


def test_the_warm_up_on_other_cpus_has_a_level_of_its_own() -> None:
    before = f.rows(f.noisy(16_000, 30, 0.005))
    own = f.rows(f.noisy(8000, 60, 0.005), first_s=30)
    found = made(level_up_to(own, before, opens_ms=60_000.0).of("rate"))
    assert set(found.regime) == {0, 1}
    bound = residual_drift([found])
    assert bound is not None
    assert bound.bound < 0.03
    assert made(level_up_to([*before, *own], opens_ms=60_000.0).of("rate")).at_s[0] >= 30


def test_a_silent_second_is_left_out_and_a_noisy_series_is_not() -> None:
    rates = f.noisy(8000, 60, 0.005)
    rates[45] = 0.0
    assert made(level_up_to(f.rows(rates), opens_ms=30_000.0).of("rate")).logs.size == 59
    assert made(level_up_to(f.rows(f.noisy(8000, 60, 0.2)), opens_ms=30_000.0).of("rate")).logs.size == 60


def test_p50_is_asked_in_an_open_loop() -> None:
    slower = [row.model_copy(update={"p50_ns": None}) for row in f.rows(f.noisy(8000, 60, 0.005))]
    assert level_up_to(slower, opens_ms=30_000.0).of("p50") is None
    assert level_up_to(slower, opens_ms=30_000.0).of("rate") is not None


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_hardly_a_row_is_no_stretch(rows: int) -> None:
    assert level_up_to(f.rows([8000.0] * rows), f.rows([8000.0] * 20), opens_ms=0.0).of("rate") is None


def test_trials_together_show_what_each_cannot() -> None:
    trials = [
        made(level_up_to(f.rows(f.noisy(8000 * by, 60, 0.01, seed)), opens_ms=30_000.0).of("rate"))
        for seed, by in enumerate((1.0, 1.05, 0.97, 1.02, 1.01))
    ]
    alone = [found.bound for one in trials if (found := residual_drift([one])) is not None]
    together = residual_drift(trials)
    assert together is not None
    assert together.bound < 0.03 < min(alone)
    assert residual_drift([]) is None


def test_a_weak_trend_in_each_of_five_trials_is_a_strong_one() -> None:
    """4 % over a minute: each trial finds no change, all five together do."""
    rise = np.linspace(-0.04, 0.0, 60)
    trials = [
        made(
            level_up_to(
                f.rows(list(np.array(f.noisy(8000, 60, 0.02, seed)) * np.exp(rise))), opens_ms=30_000.0
            ).of("rate")
        )
        for seed in range(5)
    ]
    together = residual_drift(trials)
    assert together is not None
    assert together.bound > 0.03
    assert together.remaining > 0


def test_a_watch_waits_until_the_window_can_be_expected_to_be_shown() -> None:
    rates = f.noisy(8000, 200, 0.01)

    def length_s(coming: NextWindow | None) -> int:
        watch = SteadyWatch(6, 150, 0.0, 6, coming)
        for row in f.rows(rates):
            if watch.row(row, None):
                break
        return len(watch.rows)

    alone = length_s(None)
    waited = length_s(NextWindow(30.0))
    assert alone < 15
    assert 40 <= waited < 150
    earlier = tuple(f.rows(f.noisy(8000, 60, 0.01, seed=3)))
    later = [row.model_copy(update={"t_ms": row.t_ms - 60_000}) for row in earlier]
    assert length_s(NextWindow(30.0, same_cpus=later)) < waited


def test_the_watch_waits_by_the_limits_that_the_window_is_judged_by() -> None:
    """One that may be 10 % off is not waited for until 3 % is shown, nor one opened there that may be 1 %."""

    def length_s(remaining: float, change: float = 0.02) -> int:
        limits = SteadyLimits(change=change, remaining=remaining)
        watch = SteadyWatch(6, 150, 0.0, 6, NextWindow(30.0), limits)
        for row in f.rows(f.noisy(8000, 200, 0.01)):
            if watch.row(row, None):
                break
        return len(watch.rows)

    assert length_s(0.10) < length_s(0.03) < length_s(0.01)


def test_the_watch_calls_level_what_the_plan_does() -> None:
    climbing = [8000 * 1.006**second for second in range(60)]

    def steady(change: float) -> bool:
        watch = SteadyWatch(6, 20, 0.0, 10, None, SteadyLimits(change=change))
        for row in f.rows(climbing):
            if watch.row(row, None):
                break
        return watch.steady

    assert not steady(0.02)
    assert steady(0.10)


def test_a_rising_server_is_waited_for_until_the_cap_and_what_is_cut_off_is_known() -> None:
    rates = np.array(f.noisy(8000, 40, 0.01)) * (1 - 0.3 * np.exp(-np.arange(40) / 60))
    watch = SteadyWatch(6, 30, 0.0, 6, NextWindow(30.0))
    for row in f.rows(list(rates)):
        if watch.row(row, None):
            break
    assert len(watch.rows) == 30
    assert watch.residual_drift is not None
    assert watch.residual_drift > 0.1
