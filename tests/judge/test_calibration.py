"""The change-point penalty: false alarms stay below 5 % on level noise, and steps that matter are found.

Seeded simulations; the numbers stand in docs/method.md. A window fires when throughput *or* p50 changes,
so both series are drawn, independently of each other, which is the worst case.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from prony.judge.checks.steady import SteadyWindowLimits
from prony.steady.changes import Changes, find_changes, log_levels

LIMITS = SteadyWindowLimits()
LEAST = math.log1p(LIMITS.steady_change)
WINDOWS = 250


def noise(rng: np.random.Generator, rows: int, cv: float, rho: float) -> NDArray[np.float64]:
    """AR(1) noise of standard deviation cv; rho = 0 is white."""
    shocks = rng.standard_normal(rows)
    series = np.empty(rows)
    series[0] = shocks[0]
    for i in range(1, rows):
        series[i] = rho * series[i - 1] + math.sqrt(1 - rho * rho) * shocks[i]
    return cv * series


def look(series: NDArray[np.float64]) -> Changes:
    return find_changes(series, penalty=LIMITS.steady_penalty, least=LEAST)


def fires(series: NDArray[np.float64]) -> bool:
    return abs(look(series).largest) > LEAST


@pytest.mark.parametrize("rows", [9, 30, 60])
@pytest.mark.parametrize("cv", [0.01, 0.05])
@pytest.mark.parametrize(("rho", "most"), [(0.0, 0.02), (0.5, 0.08)])
def test_level_noise_rarely_fires(rows: int, cv: float, rho: float, most: float) -> None:
    """Truth: white below 0.5 %, rho = 0.5 at most 4.5 %. `most` leaves three standard errors of
    250 windows.
    """
    rng = np.random.default_rng(20261121)
    alarms = sum(fires(noise(rng, rows, cv, rho)) or fires(noise(rng, rows, cv, rho)) for _ in range(WINDOWS))
    assert alarms / WINDOWS <= most


def test_all_level_noise_together_stays_below_five_percent() -> None:
    rng = np.random.default_rng(5)
    alarms = windows = 0
    for rows in (9, 20, 30, 60):
        for cv in (0.01, 0.03, 0.05):
            for rho in (0.0, 0.25, 0.5):
                for _ in range(60):
                    windows += 1
                    alarms += fires(noise(rng, rows, cv, rho)) or fires(noise(rng, rows, cv, rho))
    assert alarms / windows < 0.05


@pytest.mark.parametrize(
    ("rows", "cv", "step", "least_found"),
    [
        (30, 0.01, 0.05, 0.98),
        (30, 0.01, -0.05, 0.98),
        (60, 0.02, 0.05, 0.95),
        (30, 0.03, 0.10, 0.90),
        (9, 0.01, 0.10, 0.85),
    ],
)
def test_steps_that_matter_are_found(rows: int, cv: float, step: float, least_found: float) -> None:
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(100):
        series = noise(rng, rows, cv, 0.0)
        series[rows // 2 :] += math.log1p(step)
        changes = look(series)
        found += abs(changes.largest - math.log1p(step)) < 0.04 and not changes.is_trend
    assert found / 100 >= least_found


def test_slopes_that_matter_are_found() -> None:
    rng = np.random.default_rng(8)
    found = sum(fires(noise(rng, 30, 0.01, 0.0) + np.linspace(0, 0.08, 30)) for _ in range(100))
    assert found >= 95


def test_a_step_is_not_called_a_slope_nor_a_slope_a_step() -> None:
    rng = np.random.default_rng(9)
    step = noise(rng, 40, 0.01, 0.0)
    step[20:] += 0.1
    assert not look(step).is_trend
    assert look(step).cuts == (20,)
    slope = noise(rng, 40, 0.01, 0.0) + np.linspace(0, 0.2, 40)
    assert look(slope).is_trend
    assert look(slope).largest == pytest.approx(0.2, abs=0.03)


def test_small_steps_below_the_limit_are_left_alone() -> None:
    series = np.zeros(40)
    series[20:] = 0.01
    assert look(series + noise(np.random.default_rng(1), 40, 0.001, 0.0)).largest == pytest.approx(
        0, abs=0.0199
    )
    assert look(series + noise(np.random.default_rng(1), 40, 0.001, 0.0)).cuts == ()


def test_resolution_is_what_would_have_been_found() -> None:
    """A step half as large again as the stated resolution is found nearly always, half of it nearly never."""
    rng = np.random.default_rng(10)
    above = below = 0
    for _ in range(100):
        series = noise(rng, 40, 0.02, 0.0)
        resolution = look(series).resolution
        series[20:] += 1.5 * resolution
        above += bool(look(series).cuts)
        series[20:] -= resolution
        below += bool(look(series).cuts)
    assert above >= 90
    assert below <= 20


def test_degenerate_series() -> None:
    assert look(np.empty(0)).largest == 0
    assert look(np.zeros(1)).cuts == ()
    assert look(np.zeros(5)).cuts == ()
    assert math.isinf(look(np.zeros(5)).resolution)
    assert look(np.zeros(50)).largest == 0
    assert log_levels([0.0, 0.0]).tolist() == [0.0, 0.0]
    assert log_levels([100.0, 0.0])[1] == pytest.approx(math.log(5))
