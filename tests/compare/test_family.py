"""Holm's procedure, intervals that agree with it, and the number of further trials."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from prony.compare import RatioResult, Verdict, ratio
from prony.compare.family import MoreTrials, holm_levels, more_trials
from prony.compare.ratio import verdict


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


def result(log_ratio: float, spread: float, trials: int) -> RatioResult:
    return RatioResult(
        ratio=math.exp(log_ratio),
        low=0.0,
        high=2.0,
        confidence=0.95,
        method="paired t on logs",
        n=trials,
        n_a=trials,
        n_b=trials,
        p_value=0.5,
        error=spread / math.sqrt(trials),
        freedom=trials - 1,
    )


def spread_of(trials: int, spread: float, seed: int, log_ratio: float = 0.0) -> RatioResult:
    values = list(np.exp(np.random.default_rng(seed).normal(log_ratio, spread, trials)))
    return ratio(values, [1.0] * trials, range(trials), range(trials))


class TestMoreTrials:
    def test_the_seen_ratio_takes_no_part(self) -> None:
        planned = {more_trials(result(d, 0.05, 5), 0.02, 0.05) for d in (0.0, 0.03, 0.08)}
        assert len(planned) == 1

    def test_a_range_that_narrows_with_what_is_known_of_the_spread(self) -> None:
        few = more_trials(result(0.0, 0.02, 5), 0.02, 0.05)
        many = more_trials(result(0.0, 0.02, 20), 0.02, 0.05)
        assert few is not None
        assert many is not None
        assert few.most is not None
        assert many.most is not None
        assert few.least < few.most
        assert (20 + many.most) / (20 + many.least) < (5 + few.most) / (5 + few.least)

    def test_a_stricter_level_needs_more(self) -> None:
        loose, strict = (more_trials(result(0.0, 0.03, 5), 0.02, level) for level in (0.05, 0.05 / 3))
        assert loose is not None
        assert strict is not None
        assert (strict.least, strict.most or 0) > (loose.least, loose.most or 0)

    def test_no_practical_number_is_said(self) -> None:
        hopeless = more_trials(result(0.0, 2.0, 5), 0.02, 0.05)
        assert hopeless is not None
        assert hopeless.most is None
        assert more_trials(result(0.0, 0.0, 5), 0.02, 0.05) is None

    def test_what_ran_may_have_been_enough(self) -> None:
        assert more_trials(result(0.02, 0.002, 10), 0.02, 0.05) == MoreTrials(0, 0)

    @pytest.mark.parametrize("truth", [0.0, math.log(1.02), math.log(1.04)])
    def test_the_upper_end_keeps_its_promise(self, truth: float) -> None:
        """Five trials with 2 % spread, then as many more as the upper end says: equal servers, and such that
        differ by the band or more, are told in at least three of four. The seen ratio promised 80 % and held
        it in one of four (a true ratio of 1, 4 % spread).
        """
        settled = 0
        for seed in range(200):
            planned = more_trials(spread_of(5, 0.02, seed, truth), 0.02, 0.05)
            assert planned is not None
            assert planned.most is not None
            found = spread_of(5 + planned.most, 0.02, seed + 10_000, truth)
            settled += verdict(found.low, found.high, 0.02) is not Verdict.INCONCLUSIVE
        assert settled / 200 >= 0.75
