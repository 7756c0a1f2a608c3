"""A new experiment against earlier ones: the interval is that of a further experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from prony.compare.noninferiority import against_earlier
from prony_selftest.statistics import Rate


def experiment(rng: np.random.Generator, trials: int, between: float, within: float) -> list[float]:
    level = rng.normal(0, between)
    return [math.exp(level + rng.normal(0, within)) for _ in range(trials)]


@pytest.mark.parametrize(("experiments", "trials"), [(3, 5), (6, 5), (6, 2)])
def test_the_interval_covers_an_experiment_with_the_same_build(experiments: int, trials: int) -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(500):
        earlier = [experiment(rng, 5, 0.02, 0.01) for _ in range(experiments)]
        found = against_earlier(experiment(rng, trials, 0.02, 0.01), earlier)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 1 <= found.high
    assert Rate(hits, 500).could_be(0.94, 1.0)


def test_an_interval_over_trials_alone_would_not() -> None:
    """So this simulation can tell."""
    from prony.compare.ratio import ratio

    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(500):
        found = ratio(experiment(rng, 5, 0.02, 0.005), experiment(rng, 5, 0.02, 0.005))
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 1 <= found.high
    assert not Rate(hits, 500).could_be(0.8, 1.0)


def test_fewer_than_three_experiments_have_no_interval() -> None:
    found = against_earlier([1.0, 1.1], [[1.0, 1.1], [1.2, 1.1]])
    assert (found.low, found.high) == (None, None)
    assert found.ratio == pytest.approx(math.sqrt(1.1) / (1.1 * 1.2 * 1.1) ** 0.25)


def test_a_shorter_experiment_is_known_less() -> None:
    earlier = [[1.0, 1.02, 0.98], [1.01, 1.0, 1.03], [0.99, 1.0, 1.02]]
    long, short = against_earlier([1.0, 1.0, 1.0], earlier), against_earlier([1.0], earlier)
    assert short.error is not None
    assert long.error is not None
    assert short.error > long.error


def test_what_has_no_ratio_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        against_earlier([], [[1.0]])
    with pytest.raises(ValueError, match="positive"):
        against_earlier([1.0], [[0.0]])
