"""Median, range and the distribution-free interval, against hand counts and a coverage simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from prony.compare import Summary, summary


def found(values: list[float], confidence: float = 0.95) -> Summary:
    result = summary(values, confidence)
    assert result is not None
    return result


def test_by_hand() -> None:
    result = found([5.0, 1.0, 3.0])
    assert (result.n, result.median, result.lowest, result.highest) == (3, 3.0, 1.0, 5.0)
    assert found([1.0, 2.0, 3.0, 10.0]).median == 2.5


def test_no_interval_below_six_trials() -> None:
    assert found([1.0, 2.0, 3.0, 4.0, 5.0]).ci_low is None
    six = found([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (six.ci_low, six.ci_high) == (1.0, 6.0)
    assert six.ci_coverage == pytest.approx(1 - 2 / 2**6)


def test_interval_ranks_are_the_textbook_ones() -> None:
    """n = 10: ranks 2 and 9 (97.9 %); n = 20: ranks 6 and 15 (95.9 %)."""
    ten = found([float(i) for i in range(1, 11)])
    assert (ten.ci_low, ten.ci_high) == (2.0, 9.0)
    assert ten.ci_coverage == pytest.approx(0.9785, abs=1e-4)
    twenty = found([float(i) for i in range(1, 21)])
    assert (twenty.ci_low, twenty.ci_high) == (6.0, 15.0)
    assert twenty.ci_coverage == pytest.approx(0.9586, abs=1e-4)


def test_what_is_not_a_number_does_not_count() -> None:
    assert found([1.0, math.nan, math.inf]).n == 1
    assert summary([]) is None
    assert summary([math.nan]) is None


@pytest.mark.parametrize("draw", ["lognormal", "bimodal"])
def test_the_interval_covers_the_median_as_often_as_it_says(draw: str) -> None:
    rng = np.random.default_rng(4)
    covered = 0
    rounds = 1500
    for _ in range(rounds):
        if draw == "lognormal":
            values = rng.lognormal(0, 0.3, 8)
            median = 1.0
        else:  # one start in three is slow; the median is that of the fast ones' lower part
            values = np.where(rng.random(8) < 1 / 3, rng.normal(80, 1, 8), rng.normal(100, 1, 8))
            median = 100 + 1 * -0.6744897501960817  # a quarter of the fast two thirds lies below
        result = found(list(values))
        assert result.ci_low is not None
        assert result.ci_high is not None
        covered += result.ci_low <= median <= result.ci_high
    assert covered / rounds >= 0.94
