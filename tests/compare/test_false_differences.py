"""How often one server is called different from itself, drawn from its trials."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from prony.compare import Sample, comparison, ratio
from prony.compare import false_differences as module
from prony.compare.false_differences import false_differences
from prony.compare.summary import clopper_pearson


def trials(count: int, spread: float = 0.02, seed: int = 1) -> list[Sample]:
    rng = np.random.default_rng(seed)
    return [Sample("x", block, 1000 * math.exp(rng.normal(0, spread))) for block in range(count)]


def test_about_one_experiment_in_twenty_at_most() -> None:
    found = [false_differences(trials(20, seed=s), each=5, experiments=100, seed=1) for s in range(8)]
    assert all(one is not None for one in found)
    assert sum(one.share for one in found if one) / 8 < 0.09


def test_a_comparison_that_errs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an interval that is half as wide as it should be."""

    def narrow(*args: object, **more: object) -> object:
        made = ratio(*args, **more)  # type: ignore[arg-type]
        assert made.low is not None
        assert made.high is not None
        return replace(made, low=math.sqrt(made.low * made.ratio), high=math.sqrt(made.high * made.ratio))

    monkeypatch.setattr(comparison, "ratio", narrow)
    found = false_differences(trials(20), each=5, experiments=200, seed=1)
    assert found is not None
    assert found.share > 0.05


def test_an_honest_set_of_trials_is_not_accused_by_the_interval() -> None:
    """Draws share trials: their number must not narrow it. 30 % of honest sets were above 5 % before."""
    made = [false_differences(trials(20, seed=s), each=5, experiments=200, seed=1) for s in range(12)]
    found = [one for one in made if one is not None]
    assert len(found) == 12
    assert all(one.low <= 0.05 <= one.high for one in found)
    assert any(clopper_pearson(one.different, one.experiments)[0] > 0.05 for one in found)


def test_an_effect_of_position_and_a_drift_make_no_difference() -> None:
    """The order is balanced, and blocks are trials that followed each other."""
    drifting = [
        s._replace(value=s.value * 0.99**s.block * (0.97 if s.block % 2 else 1))
        for s in trials(20)
        if s.value is not None
    ]
    found = false_differences(drifting, each=5, experiments=200, seed=1)
    assert found is not None
    assert found.low <= 0.05


def test_blocks_are_neighbours_in_balanced_order() -> None:
    for seed in range(20):
        named = module._named(trials(13), (1, 3, 7, 9, 11), random.Random(seed))
        ran = [next(t.block for t in trials(13) if t.value == s.value) for s in named]
        assert ran == [1, 2, 3, 4, 7, 8, 9, 10, 11, 12]
        assert [s.position for s in named] == [0, 1] * 5
        assert 2 <= [s.server for s in named[::2]].count("a") <= 3


@pytest.mark.parametrize(("count", "possible"), [(6, 1), (8, 5), (12, 30)])
def test_no_experiment_is_drawn_twice(count: int, possible: int) -> None:
    """Of 8 trials 3 blocks of 4 that begin with the first trial, or of 3 that begin with the second."""
    found = false_differences(trials(count), each=3, experiments=500, seed=1)
    assert found is not None
    assert found.experiments == possible


def test_trials_without_a_figure_stay_without() -> None:
    made = [s._replace(conforms=s.block % 3 != 0, why="errors") for s in trials(30)]
    found = false_differences(made, each=5, experiments=50, seed=1)
    assert found is not None
    assert found.different <= 2, "their worst admissible values are in the intervals"
    assert found.trials == 20
    assert found.independent == 2


@pytest.mark.parametrize(("count", "each"), [(9, 5), (20, 2)])
def test_too_few(count: int, each: int) -> None:
    assert false_differences(trials(count), each=each, experiments=10, seed=1) is None


def test_the_same_seed_gives_the_same_answer() -> None:
    assert false_differences(trials(12), each=3, experiments=20, seed=5) == false_differences(
        trials(12), each=3, experiments=20, seed=5
    )


@pytest.mark.parametrize(("hits", "rounds"), [(0, 60), (3, 60), (60, 60), (41, 1000)])
def test_the_interval_is_exact(hits: int, rounds: int) -> None:
    exact = stats.binomtest(hits, rounds).proportion_ci(0.95, "exact")
    assert clopper_pearson(hits, rounds) == pytest.approx((exact.low, exact.high))
