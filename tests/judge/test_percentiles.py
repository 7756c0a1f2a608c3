"""Order statistics bound percentiles as often as they say, and a percentile that nothing bounds says so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prony.judge.histogram import Decoded
from prony.judge.percentiles import interval_ms, median_interval, rank_interval, useful_samples


@pytest.mark.parametrize("percentile", [50.0, 90.0, 99.0, 99.9])
@pytest.mark.parametrize("count", [6, 100, 459, 1522, 20_000])
def test_each_end_is_missed_with_at_most_half_of_the_error(count: int, percentile: float) -> None:
    ranks = rank_interval(count, percentile)
    below = stats.binom(count, percentile / 100)
    assert 1 <= ranks.low <= count
    assert ranks.low == 1 or below.cdf(ranks.low - 1) <= 0.025
    if ranks.high is None:
        assert below.sf(count - 1) > 0.025  # even the maximum is too low too often
    else:
        assert below.sf(ranks.high - 1) <= 0.025
        assert below.sf(ranks.high - 2) > 0.025  # and none below it would do


def test_the_interval_covers_the_true_percentile() -> None:
    rng = np.random.default_rng(1)
    truth = math.exp(stats.norm.ppf(0.99))
    ranks = rank_interval(2000, 99.0)
    assert ranks.high is not None
    covered = 0
    for _ in range(500):
        values = np.sort(np.exp(rng.normal(0, 1, 2000)))
        covered += values[ranks.low - 1] <= truth <= values[ranks.high - 1]
    assert covered >= 465


def test_459_samples_bound_p99_by_their_maximum_and_1522_usefully() -> None:
    assert rank_interval(459, 99.0).high == 459
    assert rank_interval(300, 99.0).high is None
    needed = useful_samples(99.0)
    assert needed == 1522
    high = rank_interval(needed, 99.0).high
    assert high is not None
    assert high <= math.ceil(0.995 * needed) + 1


def test_the_higher_the_percentile_the_more_samples() -> None:
    needed = [useful_samples(p) for p in (50.0, 90.0, 99.0, 99.9, 99.99)]
    assert needed == sorted(needed)
    assert needed[-1] > 150_000


def test_a_histogram_gives_values() -> None:
    values = np.arange(1, 10_001, dtype=np.float64) * 1e6
    found = interval_ms(Decoded(values, values, np.ones_like(values)), 99.0)
    assert found is not None
    assert found.high_ms is not None
    assert found.low_ms < 9900 < found.high_ms
    assert found.high_ms - found.low_ms < 50
    empty = np.empty(0)
    assert interval_ms(Decoded(empty, empty, empty), 99.0) is None


def test_a_tail_that_no_sample_bounds_has_no_upper_end() -> None:
    values = np.arange(1, 101, dtype=np.float64) * 1e6
    found = interval_ms(Decoded(values, values, np.ones_like(values)), 99.9)
    assert found is not None
    assert found.high_ms is None


def test_a_median_needs_six_trials() -> None:
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) is None
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0, 6.0]) == (1.0, 6.0)
    low, high = median_interval([float(v) for v in range(1, 21)]) or (0.0, 0.0)
    assert (low, high) == (6.0, 15.0)
    assert median_interval([]) is None


@pytest.mark.parametrize(("count", "percentile"), [(0, 50.0), (10, 0.0), (10, 100.0)])
def test_what_has_no_interval_is_refused(count: int, percentile: float) -> None:
    with pytest.raises(ValueError, match="no interval"):
        rank_interval(count, percentile)
