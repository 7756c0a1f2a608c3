"""Ratios: by hand, by symmetry, and by coverage simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from prony.compare import RatioResult, ratio

POSITIVE = st.floats(1e-3, 1e6)
SIDE = st.lists(POSITIVE, min_size=3, max_size=9)


class TestByHand:
    def test_paired(self) -> None:
        """Differences of logs are ln 1.1 three times and ln 1.21 once: mean 1.25 ln 1.1, deviation ln 1.1 /
        2.
        """
        a, b = [1.1, 2.2, 3.3, 4.84], [1.0, 2.0, 3.0, 4.0]
        found = ratio(a, b, [0, 1, 2, 3], [0, 1, 2, 3])
        unit = math.log(1.1)
        half = 3.182446305284263 * (unit / 2) / 2
        assert found.method == "paired t on logs"
        assert found.ratio == pytest.approx(math.exp(1.25 * unit))
        assert found.low == pytest.approx(math.exp(1.25 * unit - half))
        assert found.high == pytest.approx(math.exp(1.25 * unit + half))
        assert (found.n, found.freedom) == (4, 3)

    def test_welch_is_scipys(self) -> None:
        a, b = [100.0, 104.0, 99.0, 111.0], [90.0, 97.0, 91.0]
        found = ratio(a, b)
        reference = stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
        interval = reference.confidence_interval(0.95)
        assert found.method == "Welch t on logs"
        assert found.p_value == pytest.approx(reference.pvalue)
        assert found.low == pytest.approx(math.exp(interval.low))
        assert found.high == pytest.approx(math.exp(interval.high))

    def test_pairing_removes_what_a_block_shares(self) -> None:
        """A host that drifts by a factor of two is no reason to doubt a ratio that holds in
        every block.
        """
        drift = [1.0, 1.3, 1.7, 2.0]
        a = [110.0 * d * e for d, e in zip(drift, (1.0, 1.001, 0.999, 1.0), strict=True)]
        b = [100.0 * d for d in drift]
        paired = ratio(a, b, range(4), range(4))
        unpaired = ratio(a, b)
        assert paired.low is not None
        assert paired.low > 1.09
        assert unpaired.low is not None
        assert unpaired.low < 1

    def test_a_broken_block_is_left_out_and_too_many_are_not(self) -> None:
        a, b = [100.0, 101.0, 102.0, 103.0], [100.0, 101.0, 102.0]
        assert ratio(a, b, [0, 1, 2, 3], [0, 1, 3]).method == "paired t on logs"
        assert ratio(a, b, [0, 1, 2, 3], [0, 1, 3]).n == 3
        assert ratio(a, b, [0, 1, 2, 3], [4, 5, 6]).method == "Welch t on logs"

    def test_trials_of_one_block_are_averaged(self) -> None:
        found = ratio([4.0, 1.0, 2.0, 2.0], [1.0, 1.0, 1.0], [0, 0, 1, 2], [0, 1, 2])
        assert found.n == 3
        assert found.ratio == pytest.approx(2.0)

    def test_too_few(self) -> None:
        found = ratio([2.0, 2.2], [1.0, 1.0])
        assert found.low is None
        assert found.p_value is None
        assert found.ratio == pytest.approx(math.sqrt(4.4))

    @pytest.mark.parametrize("bad", [[], [0.0, 1.0, 2.0], [-1.0, 1.0, 1.0], [math.nan, 1.0, 1.0]])
    def test_what_has_no_ratio_is_refused(self, bad: list[float]) -> None:
        with pytest.raises(ValueError, match="ratio"):
            ratio(bad, [1.0, 2.0, 3.0])

    def test_identical_trials(self) -> None:
        assert ratio([5.0] * 3, [5.0] * 3).p_value == 1.0
        assert ratio([6.0] * 3, [5.0] * 3).p_value == 0.0


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SIDE, SIDE)
def test_swapping_the_servers_inverts_everything(a: list[float], b: list[float]) -> None:
    ab, ba = ratio(a, b), ratio(b, a)
    assume(ab.low is not None and ab.high is not None and ab.high < 1e100 and ab.low > 1e-100)
    assert ba.low is not None
    assert ba.high is not None
    assert ab.ratio * ba.ratio == pytest.approx(1)
    assert (ab.low or 0) * ba.high == pytest.approx(1)
    assert ab.p_value == pytest.approx(ba.p_value, abs=1e-9)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(POSITIVE, POSITIVE), min_size=3, max_size=9),
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e3),
)
def test_units_do_not_matter(pairs: list[tuple[float, float]], unit: float, factor: float) -> None:
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    blocks = range(len(pairs))
    plain = ratio(a, b, blocks, blocks)
    scaled = ratio([v * unit for v in a], [v * unit for v in b], blocks, blocks)
    shifted = ratio([v * factor for v in a], b, blocks, blocks)
    assert scaled.ratio == pytest.approx(plain.ratio)
    assert scaled.error == pytest.approx(plain.error or 0, abs=1e-9)
    assert shifted.ratio == pytest.approx(plain.ratio * factor)
    assert shifted.error == pytest.approx(plain.error or 0, abs=1e-9)


ROUNDS = 1500


def covers(found: RatioResult, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


@pytest.mark.parametrize("trials", [3, 5, 10])
@pytest.mark.parametrize("paired", [True, False])
def test_coverage_on_log_normal_trials(trials: int, paired: bool) -> None:
    """95 % intervals cover the truth in 93 to 97.5 of 100 experiments (Welch is a little wide at n = 3)."""
    rng = np.random.default_rng(100 + trials)
    truth = 1.07
    covered = 0
    for _ in range(ROUNDS):
        block = rng.normal(0, 0.05, trials)
        a = truth * np.exp(block + rng.normal(0, 0.02, trials))
        b = np.exp((block if paired else rng.normal(0, 0.05, trials)) + rng.normal(0, 0.02, trials))
        blocks = range(trials) if paired else None
        covered += covers(ratio(list(a), list(b), blocks, blocks), truth)
    assert 0.93 <= covered / ROUNDS <= (0.985 if trials == 3 and not paired else 0.97)


@pytest.mark.parametrize("shape", ["bimodal", "heavy"])
def test_coverage_where_trials_are_not_log_normal(shape: str) -> None:
    """Every second start 20 % slow; or Student's t with three degrees of freedom. Ten pairs; the mean is the
    truth.
    """
    rng = np.random.default_rng(17)

    def draw() -> np.ndarray:
        if shape == "bimodal":
            return np.where(rng.random(10) < 0.5, np.log(0.8), 0.0) + rng.normal(0, 0.01, 10)
        return 0.02 * rng.standard_t(3, 10)

    covered = sum(
        covers(ratio(np.exp(draw()), np.exp(draw()), range(10), range(10)), 1.0) for _ in range(ROUNDS)
    )
    assert 0.93 <= covered / ROUNDS <= 0.98


class TestSkewness:
    """Of two equal servers one has a long tail to one side."""

    def draw(self, rng: np.random.Generator, count: int) -> tuple[list[float], list[float]]:
        skewed = 0.05 - rng.exponential(0.05, count)
        return list(np.exp(skewed)), list(np.exp(rng.normal(0, 0.01, count)))

    @pytest.mark.parametrize("count", [10, 20])
    def test_the_interval_holds(self, count: int) -> None:
        """The t interval alone missed in 9 and 8 %."""
        rng = np.random.default_rng(4)
        missed = sum(
            not covers(ratio(*self.draw(rng, count), range(count), range(count)), 1.0) for _ in range(2000)
        )
        assert missed / 2000 <= 0.075

    def test_it_is_the_t_interval_without_skewness_or_with_few_pairs(self) -> None:
        steps = np.linspace(-0.02, 0.02, 11)
        level = ratio(list(np.exp(steps)), [1.0] * 11, range(11), range(11))
        assert level.error is not None
        assert level.high == pytest.approx(math.exp(2.2281388 * level.error))
        few = ratio(list(np.exp(steps[:9] ** 2)), [1.0] * 9, range(9), range(9))
        assert few.error is not None
        assert few.high == pytest.approx(few.ratio * math.exp(2.3060041 * few.error))

    def test_identical_trials(self) -> None:
        found = ratio([2.0] * 12, [1.0] * 12, range(12), range(12))
        assert (found.low, found.high) == pytest.approx((2, 2))
