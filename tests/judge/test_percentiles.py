"""Order statistics bound percentiles as often as they say, and a percentile that nothing bounds says so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prony.judge.clustering import Seconds
from prony.judge.histogram import Decoded, decode, merge
from prony.judge.percentiles import (
    Times,
    median_interval,
    percentile_series,
    rank_interval,
    useful_samples,
)
from prony_selftest.percentile_coverage import rows_of
from tests.judge import factory as f


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


def evenly(count: int) -> Decoded:
    """1, 2, 3 … ms."""
    values = np.arange(1, count + 1, dtype=np.float64) * 1e6
    return Decoded(values, values, np.ones_like(values))


def test_a_histogram_gives_values() -> None:
    found = Times(evenly(10_000)).percentile(99.0)
    assert found is not None
    assert found.value_ms == 9900
    assert found.low_ms < 9900 < found.high_ms
    assert found.high_ms - found.low_ms < 50
    assert found.responses_ms is None
    assert Times(evenly(0)).percentile(99.0) is None


def test_a_tail_that_no_sample_bounds_has_no_upper_end() -> None:
    found = Times(evenly(100)).percentile(99.9)
    assert found is not None
    assert found.high_ms == math.inf
    assert found.open
    assert not Times(evenly(100)).supports(99.9)


@pytest.mark.parametrize("percentile", [50.0, 90.0, 99.0, 99.9])
@pytest.mark.parametrize("cluster", [1, 2, 50, 1000, 30_000])
def test_the_value_lies_within_its_interval_whatever_the_requests_are_worth(
    cluster: int, percentile: float
) -> None:
    """Up to one step in the middle of the window, which leaves them worth one."""
    rng = np.random.default_rng(2)
    level = np.where(np.arange(30_000) < 15_000, 5.0, 15.0) if cluster == 30_000 else 1.0
    drawn = level * np.repeat(np.exp(0.2 * rng.standard_normal(30_000 // cluster)), cluster) * 1e6
    drawn *= np.exp(0.05 * rng.standard_normal(30_000))
    ordered = np.sort(drawn)
    times = Times(Decoded(ordered, ordered, np.ones_like(ordered)), seconds=Seconds.of(rows_of(drawn)))
    found = times.percentile(percentile)
    assert found is not None
    assert found.low_ms <= found.value_ms <= found.high_ms
    if cluster == 30_000 and percentile == 50.0:
        assert times.worth(percentile) < 10
        assert found.low_ms < 6, "a step to 15 ms says nothing against a median of 5 ms"


def test_a_percentile_is_printed_by_number_and_not_by_what_these_times_happen_to_show() -> None:
    noise = np.exp(0.1 * np.random.default_rng(3).standard_normal(30_000))
    drawn = np.repeat(np.linspace(1, 9, 30), 1000) * noise * 1e6
    ordered = np.sort(drawn)
    times = Times(Decoded(ordered, ordered, np.ones_like(ordered)), seconds=Seconds.of(rows_of(drawn)))
    assert times.worth(99.0) < useful_samples(99.0)
    assert times.supports(99.0)
    found = times.percentile(99.0)
    assert found is not None
    assert found.open
    assert not Times(evenly(1521)).supports(99.0)


def test_failed_requests_are_longer_than_any_response() -> None:
    """990 responses of 1 to 990 ms and 10 that failed after 30 s: p99 is the longest response."""
    times = Times(evenly(990), failed=10, longest_ms=30_000)
    p99, p90 = times.percentile(99.0), times.percentile(90.0)
    assert p99 is not None
    assert p90 is not None
    assert (p99.value_ms, p99.high_ms, p99.responses_ms) == (990, math.inf, 981)
    assert (p90.value_ms, p90.responses_ms) == (900, 891)
    assert p90.high_ms < 990
    more = Times(evenly(989), failed=11, longest_ms=30_000).percentile(99.0)
    assert more is not None
    assert (more.value_ms, more.above_ms, more.responses_ms) == (math.inf, 30_000, 980)
    assert math.isfinite(more.low_ms)


def test_where_every_request_failed_nothing_is_known_but_that_it_took_longer() -> None:
    found = Times(evenly(0), failed=2000, longest_ms=500).percentile(50.0)
    assert found is not None
    assert (found.value_ms, found.low_ms, found.high_ms, found.above_ms) == (math.inf,) * 3 + (500,)
    assert found.responses_ms is None


def test_the_series_ends_where_the_sample_ends() -> None:
    series = percentile_series(Times(decode(f.histogram(count=1522))))
    assert series[0].percentile == 0
    assert series[0].inverse == 1
    assert 98 < series[-1].percentile <= 99
    values = [point.value_ms for point in series]
    assert values == sorted(values)
    assert percentile_series(Times(merge([]))) == ()
    cut = percentile_series(Times(decode(f.histogram(count=20_000)), failed=2_300))
    assert 87 < cut[-1].percentile < 90, "it stops where the failed requests begin"


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
