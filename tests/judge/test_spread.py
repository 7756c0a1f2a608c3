"""The check `spread`: a fair hash of few connections is uneven by chance, and is not accused."""

from __future__ import annotations

import random

import pytest

from prony.judge.checks.spread import SpreadLimits, by_fair_hash, spread
from tests.judge import factory as f

HEALTHY = f.healthy()


def code_of(*counts: int) -> str:
    finding = spread(f.part(HEALTHY, "server_window", connections_by_process=counts), SpreadLimits())
    assert finding is not None
    assert (finding.code == "uneven") is bool(finding.provided)
    assert not finding.bias
    return finding.code


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((64, 0), "uneven"),
        ((20, 4), "uneven"),
        ((30, 10, 2, 0), "uneven"),
        ((32, 32), "ok"),
        ((7, 4, 3, 2), "ok"),
        ((1, 0), "ok"),
    ],
)
def test_only_what_a_fair_hash_seldom_does_is_flagged(counts: tuple[int, ...], expected: str) -> None:
    assert code_of(*counts) == expected


def test_connections_that_were_not_read_are_not_taken_for_even() -> None:
    several = f.part(HEALTHY, "server_window", connections_by_process=None, processes=4)
    finding = spread(several, SpreadLimits())
    assert finding is not None
    assert finding.code == "unread"
    assert finding.provided
    assert spread(f.part(several, "server_window", processes=1), SpreadLimits()) is None


@pytest.mark.parametrize("connections", [16, 32, 64])
def test_a_fair_hash_over_four_processes_is_hardly_ever_flagged(connections: int) -> None:
    draw = random.Random(1)
    fired = 0
    for _ in range(1000):
        processes = [draw.randrange(4) for _ in range(connections)]
        counts = sorted((processes.count(one) for one in range(4)), reverse=True)
        fired += code_of(*counts) == "uneven"
    assert fired <= 20


def test_the_tail_of_a_fair_hash_is_binomial() -> None:
    assert by_fair_hash(2, 2, 2) == pytest.approx(0.5)
    assert by_fair_hash(0, 8, 4) == 1.0
    assert by_fair_hash(1001, 2000, 2) == pytest.approx(0.982, abs=0.001)
    assert by_fair_hash(2000, 2000, 2) < 1e-300
