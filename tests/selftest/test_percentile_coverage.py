"""Intervals of percentiles hold what they say where requests are independent; the queue shows that they are
tested against something they do not hold.
"""

from __future__ import annotations

import numpy as np
import pytest

from prony.judge.percentiles import useful_samples
from prony_selftest.level_coverage import WORLDS as LEVEL_WORLDS
from prony_selftest.level_coverage import level_coverage
from prony_selftest.percentile_coverage import (
    OVER_TRIALS,
    WORLDS,
    TimesWorld,
    TrialsWorld,
    coverage,
    mean_coverage,
    median_coverage,
)

NAMED = {world.name: world for world in WORLDS}


@pytest.mark.parametrize("name", ["log-normal", "bimodal", "Pareto"])
def test_independent_requests_are_covered(name: str) -> None:
    covered = coverage(NAMED[name], 1522, (50.0, 99.0), 300)
    assert min(one.covered for one in covered.values()) >= 0.92


@pytest.mark.rarely
def test_requests_that_share_a_queue_or_a_pause_are_covered_by_what_the_seconds_show() -> None:
    for name in ("correlated 0.9", "queue, 50% busy", "pauses"):
        alone = coverage(NAMED[name], 30_000, (99.0,), 60, rows=False)[99.0]
        assert alone.covered < 0.72
        assert coverage(NAMED[name], 30_000, (99.0,), 60)[99.0].covered > 0.75


@pytest.mark.rarely
def test_what_is_printed_is_not_chosen_by_what_the_times_show() -> None:
    """Of the trials that happened to show no pauses alone, none would hold the true p99."""
    for name in ("pauses", "queue, 80% busy"):
        covered = coverage(NAMED[name], 1522, (99.0,), 100)[99.0]
        assert covered.printed == 1
        assert covered.covered > 0.55


@pytest.mark.parametrize(
    ("name", "requests", "seconds", "most"),
    [
        ("log-normal", 2000, 10, 0.04),
        ("correlated 0.9", 2000, 10, 0.04),
        ("queue, 50% busy", 2000, 10, 0.045),
        ("queue, 80% busy", 2000, 10, 0.09),
        ("queue, 95% busy", 2000, 10, 0.22),
    ],
)
@pytest.mark.rarely
def test_the_true_mean_seldom_lies_above_the_upper_end(
    name: str, requests: int, seconds: int, most: float
) -> None:
    """The limit is what is known to be missed (docs/truth.md), not the aim of 2.5 %: of a busy queue the aim
    is missed.
    """
    covered = mean_coverage(NAMED[name], requests, seconds, 300)
    assert covered.below <= most


def test_the_true_mean_of_a_world_is_the_one_that_it_draws() -> None:
    means = [NAMED[name].mean() for name in ("log-normal", "Pareto", "queue, 80% busy")]
    assert means == pytest.approx([np.exp(0.08), 2.0, 5.0], rel=1e-3)


@pytest.mark.parametrize("world", WORLDS, ids=[world.name for world in WORLDS])
@pytest.mark.rarely
def test_the_true_percentile_of_a_world_is_the_one_that_it_draws(world: TimesWorld) -> None:
    """The mean rank of the true p90 over many trials: of the marginal, which correlation leaves alone."""

    rng = np.random.default_rng(3)
    shares = [float((world.draw(rng, 2000) <= world.percentile(90.0)).mean()) for _ in range(150)]
    assert np.mean(shares) == pytest.approx(0.9, abs=4 * np.std(shares) / 150**0.5 + 1e-3)


@pytest.mark.parametrize("world", OVER_TRIALS, ids=[world.name for world in OVER_TRIALS])
@pytest.mark.rarely
def test_the_median_over_trials_is_covered(world: TrialsWorld) -> None:

    assert min(median_coverage(world, trials, 1000) for trials in (6, 10, 20)) >= 0.94


@pytest.mark.rarely
def test_many_requests_of_few_seconds_know_as_much_as_their_seconds_do() -> None:
    """2.58 million requests counted as 560: the interval is as wide as the percentile varies, not wider by
    much; and where seconds do not differ nearly all requests count.
    """
    covered = {world.name: level_coverage(world, 2_000, 10, 99.0, 100) for world in LEVEL_WORLDS}
    alone = covered["independent requests"]
    assert alone.counts_as > 0.5 * 20_000
    for name in ("levels differ by 2 %", "levels differ by 5 %"):
        one = covered[name]
        assert one.counts_as < 0.3 * 20_000
        assert one.covered >= 0.9
        assert 0.5 * one.error < one.below < 2 * one.error
    assert covered["levels differ by 2 %"].above < 2.5 * covered["levels differ by 2 %"].error
    # Fewer than a useful upper end takes: `samples` says that there is none.
    assert covered["levels differ by 5 %"].counts_as < useful_samples(99.0)
