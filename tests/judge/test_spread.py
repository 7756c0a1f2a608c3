"""The check `spread`: a fair hash of few connections is uneven by chance, and is not accused."""

from __future__ import annotations

import random

import pytest

from prony.judge.checks.spread import SpreadLimits, by_fair_hash, spread
from prony.judge.finding import Finding, Kind
from tests.judge import factory as f

HEALTHY = f.healthy()


def judged(*counts: int) -> Finding:
    found = spread(f.part(HEALTHY, "server_window", connections_by_process=counts), SpreadLimits())
    assert found is not None
    return found


@pytest.mark.parametrize("counts", [(64, 0), (20, 4), (30, 10, 2, 0)])
def test_what_a_fair_hash_seldom_does_is_a_condition(counts: tuple[int, ...]) -> None:
    found = judged(*counts)
    assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, "uneven", True)
    assert found.value == pytest.approx(counts[0] * len(counts) / sum(counts))


@pytest.mark.parametrize("counts", [(32, 32), (7, 4, 3, 2), (1, 0)])
def test_what_it_does_is_not(counts: tuple[int, ...]) -> None:
    assert (judged(*counts).kind, judged(*counts).code) == (Kind.FINE, "ok")


def test_connections_that_were_not_read_are_a_condition() -> None:
    several = f.part(HEALTHY, "server_window", connections_by_process=None, processes=4)
    found = spread(several, SpreadLimits())
    assert found is not None
    assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, "unread", True)
    assert spread(f.part(several, "server_window", processes=1), SpreadLimits()) is None


@pytest.mark.parametrize("connections", [16, 32, 64])
def test_a_fair_hash_over_four_processes_is_hardly_ever_accused(connections: int) -> None:
    draw = random.Random(1)
    fired = 0
    for _ in range(1000):
        processes = [draw.randrange(4) for _ in range(connections)]
        counts = sorted((processes.count(one) for one in range(4)), reverse=True)
        fired += judged(*counts).code == "uneven"
    assert fired <= 20


def test_the_tail_of_a_fair_hash_is_binomial() -> None:
    assert by_fair_hash(2, 2, 2) == pytest.approx(0.5)
    assert by_fair_hash(0, 8, 4) == 1.0
    assert by_fair_hash(1001, 2000, 2) == pytest.approx(0.982, abs=0.001)
    assert by_fair_hash(2000, 2000, 2) < 1e-300
