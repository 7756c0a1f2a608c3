"""Residual drift: the bound holds where the truth is known, and is not wider than it must be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from prony.steady.approach import Approach, Floats, approach, rows_needed

LIMIT = 0.03
WINDOW = 30


def noise(rng: np.random.Generator, rows: int, spread: float, rho: float) -> Floats:
    """A stationary series in which neighbours resemble each other by `rho`."""
    drawn = rng.normal(0, 1, rows + 50)
    made = np.empty_like(drawn)
    made[0] = drawn[0]
    for at in range(1, drawn.size):
        made[at] = rho * made[at - 1] + math.sqrt(1 - rho * rho) * drawn[at]
    return spread * made[50:]


def gap(rows: int, share: float, tau_s: float) -> Floats:
    found: Floats = np.log(1 - share * np.exp(-(np.arange(rows) + 0.5) / tau_s))
    return found


def found(series: Floats, window: int = WINDOW, regime: NDArray[np.int_] | None = None) -> Approach:
    rows = np.arange(series.size, dtype=float)
    made = approach(series, rows + 0.5, rows >= series.size - window, regime)
    assert made is not None
    return made


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize(("share", "tau_s"), [(0.3, 60.0), (0.2, 120.0), (0.1, 300.0), (0.05, 300.0)])
def test_a_window_off_its_plateau_is_rarely_within_the_bound(share: float, tau_s: float, rho: float) -> None:
    rng = np.random.default_rng(7)
    rows = 100
    rise = gap(rows, share, tau_s)
    off = -float(rise[-WINDOW:].mean())
    assert off > LIMIT
    passed = sum(found(rise + noise(rng, rows, 0.01, rho)).bound < LIMIT for _ in range(200))
    assert passed <= 20, f"{passed} of 200 windows that are {off:.1%} below their plateau"


def test_the_bound_covers_what_remains() -> None:
    rng = np.random.default_rng(8)
    rise = gap(100, 0.1, 120.0)
    off = -float(rise[-WINDOW:].mean())
    held = sum(found(rise + noise(rng, 100, 0.01, 0.3)).bound >= off for _ in range(200))
    assert held >= 185


def test_a_level_window_is_within_the_bound_when_the_rows_are_enough() -> None:
    rng = np.random.default_rng(9)
    needed = rows_needed(0.01, 0.0, WINDOW, LIMIT)
    passed = sum(found(noise(rng, round(1.3 * needed), 0.01, 0.0)).bound < LIMIT for _ in range(100))
    assert passed >= 90
    too_few = sum(found(noise(rng, round(0.5 * needed), 0.01, 0.0)).bound < LIMIT for _ in range(100))
    assert too_few <= 20


def test_ten_seconds_alone_show_nothing() -> None:
    rng = np.random.default_rng(10)
    passed = sum(found(noise(rng, 15, 0.01, 0.0), window=10).bound < LIMIT for _ in range(200))
    assert passed <= 20


def test_noisier_and_stickier_series_need_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        rows_needed(0.005, 0, 30, LIMIT) < rows_needed(0.01, 0, 30, LIMIT) < rows_needed(0.01, 0.5, 30, LIMIT)
    )
    monkeypatch.setattr("prony.steady.approach.MOST_ROWS", 600)
    assert rows_needed(0.5, 0.5, 30, LIMIT) == 600


def test_a_move_to_other_cpus_is_no_approach() -> None:
    """A step where the regime changes is taken out; without saying so it is a gap that closed."""
    rng = np.random.default_rng(11)
    series = noise(rng, 200, 0.005, 0.0)
    moved = np.where(np.arange(200) < 60, -0.3, 0.0)
    regime = (np.arange(200) >= 60).astype(int)
    assert found(series + moved, regime=regime).bound == pytest.approx(found(series, regime=regime).bound)


def test_trials_of_one_server_are_pooled_as_regimes_of_one_approach() -> None:
    """A gap that no single trial shows is shown by five of them."""
    rng = np.random.default_rng(12)
    rows = 60
    trials = [noise(rng, rows, 0.01, 0.0) + level for level in (0.0, 0.05, -0.03, 0.02, 0.01)]
    at = np.tile(np.arange(rows) + 0.5, 5)
    window = np.tile(np.arange(rows) >= rows - WINDOW, 5)
    pooled = approach(np.concatenate(trials), at, window, np.repeat(np.arange(5), rows))
    assert pooled is not None
    assert pooled.bound < LIMIT < min(found(trial).bound for trial in trials)


def test_a_slope_downwards_is_bounded_as_one_upwards() -> None:
    rng = np.random.default_rng(13)
    fall = -gap(100, 0.2, 300.0)
    made = found(fall + noise(rng, 100, 0.005, 0.0))
    assert made.remaining < -0.05
    assert made.bound > 0.1


def test_exact_rows_are_level() -> None:
    made = found(np.zeros(60))
    assert made.remaining == 0
    assert made.bound < LIMIT


def test_a_soak_is_thinned_and_says_how_many_rows_it_had() -> None:
    rng = np.random.default_rng(14)
    made = found(noise(rng, 28_800, 0.05, 0.5), window=28_000)
    assert made.rows == 28_800
    assert made.bound < 0.01  # the line's: 5 % noise, rows like their neighbours


@pytest.mark.parametrize(("rows", "window"), [(7, 3), (0, 0), (30, 0)])
def test_too_little_to_tell_is_none(rows: int, window: int) -> None:
    at = np.arange(rows, dtype=float)
    assert approach(np.zeros(rows), at + 0.5, at >= rows - window) is None


def test_rows_to_come_make_the_bound_that_can_be_expected() -> None:
    rng = np.random.default_rng(15)
    level = noise(rng, 130, 0.005, 0.0)
    at = np.arange(130, dtype=np.float64) + 0.5
    inside = at >= 100
    now = approach(np.where(inside, np.nan, level), at, inside)
    later = approach(level, at, inside)
    assert now is not None
    assert later is not None
    assert (now.rows, later.rows) == (100, 130)
    assert now.bound == pytest.approx(later.bound, rel=0.5)


def test_a_line_that_never_ends_is_bounded_by_its_change_over_the_window() -> None:
    """Three hours that fall by 10 %: no approach of at most 300 s is left to see, but the trend is."""
    rng = np.random.default_rng(16)
    rows = 10_800
    made = found(noise(rng, rows, 0.1, 0.3) - 0.1 * np.arange(rows) / rows, window=rows)
    assert made.bound > 0.09


@pytest.mark.parametrize("horizon_s", [20.0, 60.0, 300.0])
@pytest.mark.parametrize(("before", "window"), [(0, 10), (20, 10), (60, 20)])
def test_a_creeping_server_stays_within_what_is_still_to_come(
    before: int, window: int, horizon_s: float
) -> None:
    """15 % to come when the window opens, a time constant of 60 s, 1.5 % noise: wherever it is until the
    horizon, the interval holds it.
    """
    rng = np.random.default_rng(17)
    rows = before + window
    at = np.arange(rows, dtype=np.float64) + 0.5

    def level(t: Floats | float) -> Floats:
        return np.asarray(np.log(1 - 0.15 * np.exp(-(np.asarray(t) - before) / 60.0)))

    inside = at >= before
    truth = float(level(rows + horizon_s)) - float(level(at)[inside].mean())
    held = 0
    for _ in range(200):
        made = approach(level(at) + noise(rng, rows, 0.015, 0.0), at, inside, horizon_s=horizon_s)
        assert made is not None
        held += made.low <= truth <= made.high
    assert held >= 192


def test_the_interval_to_a_horizon_grows_with_it_and_shrinks_with_rows() -> None:
    rng = np.random.default_rng(18)

    def width(rows: int, horizon_s: float) -> float:
        widths = []
        for _ in range(20):
            at = np.arange(rows, dtype=np.float64) + 0.5
            made = approach(noise(rng, rows, 0.01, 0.0), at, at >= rows - 10, horizon_s=horizon_s)
            assert made is not None
            widths.append(made.high - made.low)
        return float(np.median(widths))

    assert width(60, 20.0) < width(60, 60.0) < width(60, 300.0)
    assert width(240, 60.0) < width(60, 60.0) / 3


def test_the_difference_of_two_servers_is_known_better_than_their_sum() -> None:
    rng = np.random.default_rng(19)
    at = np.arange(100, dtype=np.float64) + 0.5
    one, other = (approach(noise(rng, 100, 0.01, 0.0), at, at >= 80, horizon_s=60.0) for _ in range(2))
    assert one is not None
    assert other is not None
    low, high = one.less(other)
    assert low <= 0 <= high
    assert high - low < (one.high - one.low) + (other.high - other.low)
