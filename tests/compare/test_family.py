"""Holm's procedure, intervals that agree with it, and moderated variances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from prony.compare import RatioResult, ratio
from prony.compare.family import holm_levels, moderated, prior_of


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


def family(rng: np.random.Generator, spreads: list[float], trials: int = 4) -> list[RatioResult]:
    """Pairs of equal servers with these spreads of a block's difference."""
    made = []
    for spread in spreads:
        values = list(np.exp(rng.normal(0, spread, trials)))
        made.append(ratio(values, [1.0] * trials, range(trials), range(trials)))
    return made


class TestModeratedVariances:
    def test_equal_variances_are_borrowed(self) -> None:
        found = family(np.random.default_rng(1), [0.03] * 30)
        prior = prior_of(found)
        assert prior is not None
        assert prior.variance == pytest.approx(0.03**2, rel=0.4)
        narrow = [math.log((m.high or 0) / (m.low or 1)) for m in (moderated(one, prior) for one in found)]
        wide = [math.log((one.high or 0) / (one.low or 1)) for one in found]
        assert np.mean(narrow) < 0.75 * np.mean(wide)

    def test_one_odd_server_keeps_its_own(self) -> None:
        guarded = [
            prior_of(family(np.random.default_rng(seed), [0.01] * 5 + [0.15])) is None for seed in range(40)
        ]
        assert np.mean(guarded) >= 0.95

    def test_few_variances_are_no_family(self) -> None:
        assert prior_of(family(np.random.default_rng(1), [0.03] * 2)) is None

    @pytest.mark.parametrize("odd", [1.0, 2.0, 4.0])
    def test_intervals_still_cover(self, odd: float) -> None:
        """Six pairs, one of them noisier: the truth of the noisy one is inside in at least 93 of 100."""
        inside = count = 0
        for seed in range(300):
            found = family(np.random.default_rng(seed), [0.03] * 5 + [0.03 * odd], 5)
            prior = prior_of(found)
            last = found[-1] if prior is None else moderated(found[-1], prior)
            count += 1
            inside += (last.low or 0) <= 1 <= (last.high or 0)
        assert inside / count >= 0.92
