"""The check `spread`: a fair hash of few connections is uneven by chance, and is not accused."""

from __future__ import annotations

import random

import pytest

from prony.judge.checks.spread import SpreadLimits, by_fair_hash, spread
from prony.judge.finding import Status
from tests.judge import factory as f

HEALTHY = f.healthy()


def status_of(*counts: int) -> Status:
    finding = spread(f.part(HEALTHY, "server_window", connections_by_process=counts), SpreadLimits())
    assert finding is not None
    return finding.status


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((64, 0), Status.SUSPECT),
        ((20, 4), Status.SUSPECT),
        ((30, 10, 2, 0), Status.SUSPECT),
        ((32, 32), Status.VALID),
        ((7, 4, 3, 2), Status.VALID),
        ((1, 0), Status.VALID),
    ],
)
def test_only_what_a_fair_hash_seldom_does_is_suspect(counts: tuple[int, ...], expected: Status) -> None:
    assert status_of(*counts) is expected


def test_connections_that_were_not_read_are_unknown_not_even() -> None:
    several = f.part(HEALTHY, "server_window", connections_by_process=None, processes=4)
    finding = spread(several, SpreadLimits())
    assert finding is not None
    assert finding.status is Status.UNKNOWN
    assert "the connections of its 4 processes were not read" in finding.reason
    assert spread(f.part(several, "server_window", processes=1), SpreadLimits()) is None


@pytest.mark.parametrize("connections", [16, 32, 64])
def test_a_fair_hash_over_four_processes_is_hardly_ever_suspect(connections: int) -> None:
    draw = random.Random(1)
    fired = 0
    for _ in range(1000):
        processes = [draw.randrange(4) for _ in range(connections)]
        counts = sorted((processes.count(one) for one in range(4)), reverse=True)
        fired += status_of(*counts) is Status.SUSPECT
    assert fired <= 20


def test_the_tail_of_a_fair_hash_is_binomial() -> None:
    assert by_fair_hash(2, 2, 2) == pytest.approx(0.5)
    assert by_fair_hash(0, 8, 4) == 1.0
    assert by_fair_hash(1001, 2000, 2) == pytest.approx(0.982, abs=0.001)
    assert by_fair_hash(2000, 2000, 2) < 1e-300
