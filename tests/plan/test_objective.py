"""Objectives: what is understood, what is refused and how, and when they are met."""

from __future__ import annotations

import pytest

from prony.errors import UsageError
from prony.plan.objective import objectives, pressure


def test_one_and_several() -> None:
    one = objectives("p99<50ms")[0]
    assert (one.figure, one.below_ms, str(one)) == ("p99_ms", 50.0, "p99 < 50 ms")
    both = objectives(" p99.9 < 1s, mean<300us")
    assert [(o.figure, o.below_ms) for o in both] == [("p999_ms", 1000.0), ("mean_ms", 0.3)]


@pytest.mark.parametrize("bad", ["", "p99", "p98<5ms", "p99<5", "p99>5ms", "p99<0ms", "p99<5ms,", "p99<-1ms"])
def test_others_are_refused_with_what_there_is(bad: str) -> None:
    with pytest.raises(UsageError, match=r"p99\.9.*such as 'p99<50ms'"):
        objectives(bad)


def test_pressure_is_of_the_tightest() -> None:
    wanted = objectives("p99<50ms,mean<1ms")
    assert pressure(wanted, {"p99_ms": 25.0, "mean_ms": 0.9}) == pytest.approx(0.9)
    assert pressure(wanted, {"p99_ms": 100.0, "mean_ms": 0.9}) == pytest.approx(2.0)
    assert pressure(wanted, {"p99_ms": 25.0}) is None
