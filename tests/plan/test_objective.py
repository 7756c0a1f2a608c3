"""Objectives: what is understood, what is refused and how, and when they are met."""

from __future__ import annotations

import pytest

from prony.errors import UsageError
from prony.plan.objective import objectives, searchable


def test_one_and_several() -> None:
    one = objectives("p99<50ms")[0]
    assert (one.figure, one.below_ms, str(one)) == ("p99_ms", 50.0, "p99 < 50 ms")
    both = objectives(" p99.9 < 1s, mean<300us")
    assert [(o.figure, o.below_ms) for o in both] == [("p999_ms", 1000.0), ("mean_ms", 0.3)]


@pytest.mark.parametrize("bad", ["", "p99", "p98<5ms", "p99<5", "p99>5ms", "p99<0ms", "p99<5ms,", "p99<-1ms"])
def test_others_are_refused_with_what_there_is(bad: str) -> None:
    with pytest.raises(UsageError, match=r"p99\.9.*'p99<50ms'"):
        objectives(bad)


def test_a_maximum_is_refused_for_a_new_search_and_still_read_in_an_old_one() -> None:
    with pytest.raises(UsageError, match=r"max.*'p99\.9<50ms'"):
        searchable("p99<10ms,max<50ms")
    assert objectives("max<50ms")[0].figure == "max_ms"
    assert searchable("p99<10ms,mean<1ms") == objectives("p99<10ms,mean<1ms")
