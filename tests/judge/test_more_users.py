"""The interval of the rise covers: seeded simulations of noisy seconds before and under the probe."""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.trial import Evidence, ScalingProbe
from prony.judge.more_users import rise
from tests.judge import factory as f

RUNS = 400


def seconds(rng: np.random.Generator, count: int, level: float, cv: float, rho: float) -> list[float]:
    """AR(1) seconds around a level."""
    shocks, series = rng.standard_normal(count), np.empty(count)
    series[0] = shocks[0]
    for i in range(1, count):
        series[i] = rho * series[i - 1] + np.sqrt(1 - rho * rho) * shocks[i]
    return [float(value) for value in level * np.exp(cv * series)]


def trial(rng: np.random.Generator, ratio: float, cv: float, rho: float) -> Evidence:
    rows = f.rows(seconds(rng, 52, f.RATE, cv, rho))
    rates = tuple(seconds(rng, 4, f.RATE * ratio, cv, rho))
    probe = ScalingProbe(users=15, rates_per_s=rates, failed_share=0.0)
    return f.engine(f.healthy(), rows=rows).model_copy(update={"scaling_probe": probe})


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("ratio", [1.0, 1.15])
def test_the_interval_covers_the_true_rise(ratio: float, rho: float) -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(RUNS):
        found = rise(trial(rng, ratio, 0.02, rho))
        assert found is not None
        covered += found.low <= ratio - 1 <= found.high
    assert covered / RUNS >= 0.93


def test_a_rise_of_a_fifth_is_never_called_a_capacity_at_3_percent_noise() -> None:
    rng = np.random.default_rng(12)
    found = [rise(trial(rng, 1.2, 0.03, 0.3)) for _ in range(RUNS)]
    assert sum(one is not None and one.high <= 0.10 for one in found) / RUNS <= 0.01
    level = [rise(trial(rng, 1.0, 0.01, 0.3)) for _ in range(RUNS)]
    assert sum(one is not None and one.high <= 0.10 for one in level) / RUNS >= 0.99


def test_nothing_to_compare() -> None:
    assert rise(f.healthy()) is None
    one = ScalingProbe(users=15, rates_per_s=(8000.0,), failed_share=0.0)
    assert rise(f.healthy().model_copy(update={"scaling_probe": one})) is None
    assert rise(f.part(f.probed(f.healthy(), 1.0), "load", users=None)) is None
