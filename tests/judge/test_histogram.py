"""Histograms: decoded as the library would, cut at either end, gaps filled in as
stated.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.evidence.counts import Gap
from prony.evidence.engine import Histogram
from prony.judge.histogram import (
    HistogramError,
    decode,
    fill_gaps,
    merge,
)
from tests.judge import factory as f


def nearest_rank(values: list[int], percentile: str) -> int:
    """The definition, in exact arithmetic: the smallest value that so many percent do not exceed."""
    return sorted(values)[max(1, math.ceil(Fraction(percentile) * len(values) / 100)) - 1]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 3_000_000_000_000), min_size=1, max_size=60))
def test_percentiles_are_nearest_rank_in_the_buckets_of_the_library(values: list[int]) -> None:
    library: Any = HdrHistogram(1, 3_600_000_000_000, 3)
    decoded = decode(f.of_values(values))
    assert decoded.count == len(values)
    for percentile in ("1", "25", "50", "75", "90", "99", "99.9", "100"):
        exact = library.get_highest_equivalent_value(nearest_rank(values, percentile))
        assert decoded.percentile_ns(float(percentile)) == exact


def test_percentiles_come_back_within_three_digits() -> None:
    values = np.random.default_rng(1).lognormal(14, 0.5, 20_000).astype(int)
    decoded = decode(f.of_values(values.tolist()))
    for percentile in ("50", "90", "99", "99.9"):
        exact = nearest_rank(values.tolist(), percentile)
        assert decoded.percentile_ns(float(percentile)) == pytest.approx(exact, rel=2e-3)
    assert decoded.moment(1) == pytest.approx(values.mean() * 1e-9, rel=1e-3)
    assert decoded.moment(3) == pytest.approx(float((values.astype(float) ** 3).mean()) * 1e-27, rel=5e-3)


@pytest.mark.parametrize("text", ["", "HISTF", "nonsense", "HISTFAAAADaF4nD1YXYvr"])
def test_damaged_text_is_one_error(text: str) -> None:
    with pytest.raises(HistogramError):
        decode(Histogram(count=1, v2=text))


def test_merge_is_the_histogram_of_both() -> None:
    a, b = [1_000_000, 2_000_000, 3_000_000], [2_500_000, 9_000_000]
    merged = merge([decode(f.of_values(a)), decode(f.of_values(b))])
    together = decode(f.of_values(a + b))
    for percentile in (20, 40, 60, 80, 100):
        assert merged.percentile_ns(percentile) == together.percentile_ns(percentile)
    assert merge([]).percentile_ns(50) is None
    assert merge([]).max_ns == 0


def test_the_longest_samples_can_be_left_out() -> None:
    decoded = decode(f.of_values([1_000, 2_000, 2_000, 2_000, 9_000]))
    left = decoded.without_longest(3)
    assert left.counts.tolist() == [1.0, 1.0]
    assert left.max_ns == decode(f.of_values([2_000])).max_ns
    assert decoded.without_longest(0).counts.tolist() == decoded.counts.tolist()
    assert decoded.without_longest(7).count == 0


def test_filled_gaps_are_the_known_case_of_coordinated_omission() -> None:
    """1,000 requests/s at 1 ms, frozen for one second of ten: 1,000 waits from 0 to 1 s, of 10,999 in all."""
    plain = decode(f.of_values([1_000_000] * 9_000 + [1_000_000_000]))
    filled = fill_gaps(plain, [Gap(start_ms=5000, duration_ms=1000, in_flight=1)], throughput_per_s=1000)
    assert filled.count == pytest.approx(10_001)
    # rank 9,900.99 of 10,001: the 100 longest of 1,000 uniform waits lie above 900 ms
    assert filled.percentile_ns(99) == pytest.approx(0.9e9, rel=0.01)
    assert plain.percentile_ns(99) == pytest.approx(1e6, rel=0.01)


def test_no_gap_changes_nothing() -> None:
    plain = decode(f.histogram())
    same = fill_gaps(plain, [], 8000)
    assert same.percentile_ns(99) == plain.percentile_ns(99)
    assert fill_gaps(plain, [Gap(start_ms=0, duration_ms=50, in_flight=1)], 0).count == plain.count
