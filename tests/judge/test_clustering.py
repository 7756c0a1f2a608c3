"""The design effect is 1 for independent requests, and the known factor for requests in clusters."""

from __future__ import annotations

import numpy as np
import pytest

from prony.judge.clustering import design_effect
from prony.selftest.percentile_coverage import rows_of


def effects(cluster: int, seed: int = 1, requests: int = 30_000) -> list[float]:
    """Of p90, in 40 windows of log-normal times that `cluster` requests in a row share."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(40):
        times = np.repeat(np.exp(0.4 * rng.standard_normal(requests // cluster)), cluster) * 1e6
        threshold = float(np.quantile(times, 0.9))
        found.append(design_effect(rows_of(times), threshold, 0.1))
    return found


def test_independent_requests_know_what_they_are() -> None:
    assert 1.0 <= np.median(effects(1)) < 1.4


@pytest.mark.parametrize("cluster", [5, 20])
def test_requests_that_share_their_time_are_worth_one_of_their_cluster(cluster: int) -> None:
    assert np.median(effects(cluster)) == pytest.approx(cluster, rel=0.35)


def test_what_the_rows_do_not_show_widens_nothing() -> None:
    times = np.exp(np.random.default_rng(1).standard_normal(3000)) * 1e6
    assert design_effect(rows_of(times)[:4], 1e6, 0.5) == 1.0
    assert design_effect((), 1e6, 0.5) == 1.0
    assert design_effect(rows_of(np.full(3000, 1e6)), 1e6, 0.5) == 1.0
    assert design_effect(rows_of(times), 0.0, 0.5) == 1.0
