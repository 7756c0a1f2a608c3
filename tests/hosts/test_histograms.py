"""Histograms of several engines as one: samples, means and quantiles are those of all values."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from prony.evidence.engine import Histogram
from prony.load.histograms import added, unpacked
from prony_hosts.load.histograms import added_up, quantile_ns
from tests.load.test_histograms import VALUES, decoded, recorded, text


def histogram(values: list[int]) -> Histogram:
    mean = sum(values) / len(values)
    known = {"mean_ns": mean, "min_ns": min(values), "max_ns": max(values)}
    return Histogram(count=len(values), v2=text(values), **known)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.floats(0.01, 1.0))
def test_the_sum_has_the_quantiles_of_all_values(parts: list[list[int]], share: float) -> None:
    whole = [value for part in parts for value in part]
    together = added([unpacked(text(part)) for part in parts])
    rank = max(1, -int(-(len(whole) * share - 1e-9) // 1))
    exact = sorted(whole)[rank - 1]
    assert quantile_ns(together, share) == recorded([]).get_highest_equivalent_value(exact)
    assert quantile_ns(decoded(text([])), share) is None


def test_samples_means_and_extremes_are_those_of_all() -> None:
    both = added_up([histogram([1000, 3000]), None, histogram([8000])])
    assert both is not None
    assert (both.count, both.mean_ns, both.min_ns, both.max_ns) == (3, 4000, 1000, 8000)
    assert added_up([None, None]) is None
    alone = histogram([5])
    assert added_up([alone, None]) is alone
