"""The interval of a mean of correlated rows covers, and narrows as it should."""

from __future__ import annotations

import numpy as np
import pytest

from prony.steady.precision import LEAST_ROWS, half_width


def correlated(rng: np.random.Generator, rows: int, rho: float) -> list[float]:
    noise = rng.standard_normal(rows)
    for at in range(1, rows):
        noise[at] = rho * noise[at - 1] + np.sqrt(1 - rho**2) * noise[at]
    return [float(value) for value in 1000 * (1 + 0.05 * noise)]


@pytest.mark.parametrize(("rho", "least"), [(0.0, 0.94), (0.5, 0.92), (0.7, 0.89)])
def test_it_covers_the_mean_of_correlated_rows(rho: float, least: float) -> None:
    rng = np.random.default_rng(3)
    covered = known = 0
    for _ in range(1000):
        rows = correlated(rng, 60, rho)
        half = half_width(rows)
        known += half is not None
        covered += half is not None and abs(np.mean(rows) - 1000) <= half * np.mean(rows)
    assert known >= 990
    assert covered / known >= least


def test_few_rows_say_nothing_and_equal_ones_are_exact() -> None:
    assert half_width([5.0] * (LEAST_ROWS - 1)) is None
    assert half_width([0.0] * 30) is None
    assert half_width([5.0] * 30) == 0.0
