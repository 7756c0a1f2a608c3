"""The design effect is 1 for independent requests, and the known factor for requests in clusters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from prony.judge.clustering import Seconds, design_effect
from prony.judge.histogram import Decoded
from prony.judge.percentiles import Times, percentile_series, planned_samples, useful_samples
from prony.judge.times import NAMED, supported
from prony_selftest.percentile_coverage import rows_of


def effects(cluster: int, seed: int = 1, requests: int = 30_000) -> list[float]:
    """Of p90, in 40 windows of log-normal times that `cluster` requests in a row share."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(40):
        times = np.repeat(np.exp(0.4 * rng.standard_normal(requests // cluster)), cluster) * 1e6
        threshold = float(np.quantile(times, 0.9))
        found.append(design_effect(Seconds.of(rows_of(times)), threshold, 0.1))
    return found


def test_independent_requests_know_what_they_are() -> None:
    assert 1.0 <= np.median(effects(1)) < 1.4


@pytest.mark.parametrize("cluster", [5, 20])
def test_requests_that_share_their_time_are_worth_one_of_their_cluster(cluster: int) -> None:
    assert np.median(effects(cluster)) == pytest.approx(cluster, rel=0.35)


def test_what_the_rows_do_not_show_widens_nothing() -> None:
    times = np.exp(np.random.default_rng(1).standard_normal(3000)) * 1e6
    assert design_effect(Seconds.of(rows_of(times)[:4]), 1e6, 0.5) == 1.0
    assert design_effect(Seconds.of(()), 1e6, 0.5) == 1.0
    assert design_effect(Seconds.of(rows_of(np.full(3000, 1e6))), 1e6, 0.5) == 1.0
    assert design_effect(Seconds.of(rows_of(times)), 0.0, 0.5) == 1.0


def clustered(cluster: int, requests: int = 30_000) -> Times:
    """Log-normal times, of which so many that follow each other are the same."""
    rng = np.random.default_rng(4)
    drawn = np.repeat(np.exp(0.4 * rng.standard_normal(requests // cluster)), cluster) * 1e6
    ordered = np.sort(drawn)
    return Times(Decoded(ordered, ordered, np.ones_like(ordered)), seconds=Seconds.of(rows_of(drawn)))


def test_what_the_requests_are_worth_widens_the_interval_and_prints_no_percentile_less() -> None:
    """30,000 requests are enough to print p99.9; those that came in fifties do not bound it."""
    alone, together = clustered(1), clustered(50)
    assert alone.count == together.count == 30_000
    assert together.worth(99.9) < 15_351
    assert set(supported(alone)) == set(supported(together)) == set(NAMED)
    assert (supported(alone)["p999_ms"].open, supported(together)["p999_ms"].open) == (False, True)
    assert percentile_series(together)[-1].percentile == percentile_series(alone)[-1].percentile > 99.9


@pytest.mark.parametrize("seconds", [10, 30])
def test_as_many_requests_as_are_planned_are_worth_a_p99(seconds: int) -> None:
    rng = np.random.default_rng(6)
    enough = 0
    for _ in range(100):
        drawn = np.exp(0.4 * rng.standard_normal(planned_samples(99.0, seconds))) * 1e6
        ordered = np.sort(drawn)
        rows = Seconds.of(rows_of(drawn, seconds))
        times = Times(Decoded(ordered, ordered, np.ones_like(ordered)), seconds=rows)
        enough += times.worth(99.0) >= useful_samples(99.0)
    assert enough >= 94


def test_the_interval_of_a_mean_is_wider_where_requests_resemble_each_other() -> None:
    def half_ms(times: Times) -> float:
        low_ms, high_ms = replace(times, mean_ms=times.responses.moment(1) * 1000).mean_interval()
        return (high_ms - low_ms) / 2

    known_ms = 1.96 * float(np.std(clustered(1).responses.middle_ns)) / 1e6 / math.sqrt(30_000)
    assert half_ms(clustered(1)) == pytest.approx(known_ms, rel=0.25)
    assert half_ms(clustered(50)) == pytest.approx(known_ms * math.sqrt(50), rel=0.35)


def test_the_interval_of_a_mean_covers_it() -> None:
    """Of log-normal times in clusters of 20, in 400 windows: 95 % with a standard error of 1.1 %."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        drawn = np.repeat(np.exp(0.4 * rng.standard_normal(150)), 20) * 1e6
        times = Times(Decoded(drawn, drawn, np.ones_like(drawn)), seconds=Seconds.of(rows_of(drawn)))
        mean_ms = float(drawn.mean()) / 1e6
        low_ms, high_ms = replace(times, mean_ms=mean_ms).mean_interval()
        held += low_ms <= math.exp(0.08) <= high_ms
    assert 0.92 <= held / 400 <= 0.985


def test_a_mean_that_failed_requests_may_raise_has_no_upper_end() -> None:
    low_ms, high_ms = replace(clustered(1), failed=1).mean_interval()
    assert low_ms > 0
    assert high_ms == math.inf
    assert Times(clustered(1).responses).mean_interval() == (-math.inf, math.inf)
