"""Repeated looks: the boundaries are exact, the intervals hold at every look, and what is said follows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prony.compare import Claim, Looks, Sample, compare, ratio
from prony.compare.ratio import repeated_ratio
from prony.compare.sequential import boundaries


def crossed_by(looks: Looks, alpha: float, rounds: int, draw: str) -> dict[int, float]:
    """Simulated: the share of null experiments in which |t| passed its boundary at this look or before."""
    rng = np.random.default_rng(4)
    size = (rounds, looks.most)
    x = rng.standard_normal(size) if draw == "normal" else rng.standard_t(3, size)
    total, square = x.cumsum(axis=1), (x * x).cumsum(axis=1)
    out = np.zeros(rounds, dtype=bool)
    found = {}
    for n, limit in boundaries(looks, alpha).items():
        deviation = np.sqrt((square[:, n - 1] - total[:, n - 1] ** 2 / n) / (n - 1))
        out |= np.abs(total[:, n - 1]) / n > limit * deviation / math.sqrt(n)
        found[n] = float(out.mean())
    return found


@pytest.mark.parametrize("looks", [Looks(5, 20), Looks(5, 10), Looks(3, 12)])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3])
def test_the_error_is_spent_as_planned(looks: Looks, alpha: float) -> None:
    """At every look, not only at the last: within five standard errors of 100,000 experiments."""
    for n, share in crossed_by(looks, alpha, 100_000, "normal").items():
        planned = looks.spent(n, alpha)
        assert share == pytest.approx(planned, abs=5 * math.sqrt(planned / 100_000))


def test_heavy_tails_cross_no_more_often() -> None:
    assert crossed_by(Looks(5, 20), 0.05, 20_000, "heavy")[20] <= 0.05


def test_a_single_look_is_the_ordinary_interval() -> None:
    assert boundaries(Looks(8, 8), 0.05)[8] == pytest.approx(stats.t.ppf(0.975, 7))
    rng = np.random.default_rng(2)
    a, b = list(rng.lognormal(0, 0.05, 8)), list(rng.lognormal(0, 0.05, 8))
    once = repeated_ratio(a, b, range(8), range(8), Looks(8, 8))
    plain = ratio(a, b, range(8), range(8))
    assert once.low is not None
    assert once.high is not None
    assert once.low <= (plain.low or 0.0) * (1 + 1e-9)
    assert (plain.high or 0.0) <= once.high * (1 + 1e-9)


def test_looking_costs_width_and_more_so_with_more_looks() -> None:
    plain = stats.t.ppf(0.975, 9)
    few, many = boundaries(Looks(5, 10), 0.05)[10], boundaries(Looks(5, 30), 0.05)[10]
    assert plain < few < many


@pytest.mark.parametrize(("first", "most"), [(2, 10), (6, 5), (0, 0)])
def test_absurd_looks_are_refused(first: int, most: int) -> None:
    with pytest.raises(ValueError, match="looks from"):
        Looks(first, most)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_absurd_errors_are_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        boundaries(Looks(5, 6), alpha)


def test_more_blocks_than_planned_are_refused() -> None:
    with pytest.raises(ValueError, match="last look"):
        repeated_ratio([1.0] * 7, [2.0] * 7, range(7), range(7), Looks(3, 6))


def samples(rng: np.random.Generator, levels: dict[str, float], blocks: int) -> list[Sample]:
    made = []
    for block in range(blocks):
        luck = rng.normal(0, 0.03)
        made += [
            Sample(name, block, level * math.exp(luck + rng.normal(0, 0.02)))
            for name, level in levels.items()
        ]
    return made


class TestComparison:
    LOOKS = Looks(5, 12)

    def test_swapping_inverts_and_units_do_not_matter(self) -> None:
        rng = np.random.default_rng(3)
        a, b = rng.lognormal(0.1, 0.1, 7), rng.lognormal(0, 0.1, 7)
        one = repeated_ratio(list(a), list(b), range(7), range(7), self.LOOKS)
        other = repeated_ratio(list(1e3 * b), list(1e3 * a), range(7), range(7), self.LOOKS)
        assert one.low is not None
        assert other.high is not None
        assert one.low * other.high == pytest.approx(1)

    def test_a_long_tail_to_one_side_widens_the_interval_there(self) -> None:
        """One trial of seven is 40 % slower: t alone would say more than it knows on that side."""
        a = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 0.6]
        found = repeated_ratio(a, [1.0] * 7, range(7), range(7), self.LOOKS)
        assert found.low is not None
        assert found.high is not None
        logs = np.log(a)
        half = boundaries(self.LOOKS, 0.05)[7] * float(logs.std(ddof=1)) / math.sqrt(7)
        assert found.high == pytest.approx(math.exp(float(logs.mean()) + half))
        assert found.low < math.exp(float(logs.mean()) - half) * 0.99

    def test_symmetric_trials_have_the_interval_of_t(self) -> None:
        a = [0.97, 0.98, 0.99, 1.0, 1 / 0.99, 1 / 0.98, 1 / 0.97]
        found = repeated_ratio(a, [1.0] * 7, range(7), range(7), self.LOOKS)
        half = boundaries(self.LOOKS, 0.05)[7] * float(np.log(a).std(ddof=1)) / math.sqrt(7)
        assert found.low == pytest.approx(math.exp(-half))
        assert found.high == pytest.approx(math.exp(half))

    def test_before_the_first_look_nothing_is_reported(self) -> None:
        pair = compare(
            samples(np.random.default_rng(1), {"a": 2, "b": 1}, 4), "requests_per_s", looks=self.LOOKS
        ).pairs[0]
        assert pair.claim is Claim.OPEN
        assert pair.low is None
        assert pair.n == 4

    def test_a_broken_block_does_not_count(self) -> None:
        made = samples(np.random.default_rng(1), {"a": 2, "b": 1}, 6)
        made[0] = made[0]._replace(conforms=False, why="errors: many")
        found = compare(made, looks=self.LOOKS)
        assert found.pairs[0].n == 5
        assert found.pairs[0].better == "a"
        assert [one.block for one in found.servers[0].missing] == [0]

    def test_pairs_share_the_error(self) -> None:
        made = samples(np.random.default_rng(1), {"a": 1.0, "b": 1.0, "c": 1.0}, 6)
        alone = compare([s for s in made if s.server != "c"], looks=self.LOOKS).pairs[0]
        among = compare(made, looks=self.LOOKS).pairs[0]
        assert alone.low is not None
        assert among.low is not None
        assert among.low < alone.low
        assert among.confidence == pytest.approx(1 - 0.05 / 3)

    def test_never_wider_than_decided(self) -> None:
        """The claim follows from the very interval that is printed."""
        for seed in range(20):
            for pair in compare(
                samples(np.random.default_rng(seed), {"a": 1.03, "b": 1.0}, 8), looks=self.LOOKS
            ).pairs:
                assert pair.low is not None
                assert pair.high is not None
                assert (pair.better == "a") == (pair.low > 1.01 and pair.high > 1.02)
