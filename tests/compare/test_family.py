"""Holm's procedure, intervals that agree with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from prony.compare import ratio
from prony.compare.claim import holm_levels


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_decisions_are_those_of_statsmodels(p_values: list[float]) -> None:
    levels = holm_levels(p_values)
    mine = [p <= level for p, level in zip(p_values, levels, strict=True)]
    reference = list(multipletests(p_values, alpha=0.05, method="holm")[0])
    # A p-value exactly at its level is a matter of rounding, not of the procedure.
    if all(abs(p * k - 0.05) > 1e-9 for p in p_values for k in range(1, len(p_values) + 1)):
        assert mine == reference


def test_levels_by_hand() -> None:
    assert holm_levels([0.01, 0.04, 0.03]) == pytest.approx((0.05 / 3, 0.025, 0.025))
    assert holm_levels([0.001, 0.9, 0.02]) == pytest.approx((0.05 / 3, 0.05, 0.025))
    assert holm_levels([0.5]) == (0.05,)
    assert holm_levels([]) == ()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(3, 8))
def test_an_interval_at_its_level_leaves_one_out_exactly_when_holm_rejects(seed: int, trials: int) -> None:
    rng = np.random.default_rng(seed)
    sides = [list(rng.lognormal(shift, 0.02, trials)) for shift in (0.0, 0.0, 0.03, 0.06)]
    pairs = [(sides[i], sides[j]) for i in range(4) for j in range(i)]
    looks = [ratio(a, b, range(trials), range(trials)) for a, b in pairs]
    p_values = [look.p_value for look in looks if look.p_value is not None]
    for (a, b), p_value, level in zip(pairs, p_values, holm_levels(p_values), strict=True):
        at_level = ratio(a, b, range(trials), range(trials), confidence=1 - level)
        assert at_level.low is not None
        assert at_level.high is not None
        assert (at_level.low > 1 or at_level.high < 1) == (p_value <= level)
