"""Median and range, against hand counts."""

from __future__ import annotations

import math

from prony.compare import Summary, summary


def found(values: list[float]) -> Summary:
    result = summary(values)
    assert result is not None
    return result


def test_by_hand() -> None:
    result = found([5.0, 1.0, 3.0])
    assert (result.n, result.median, result.lowest, result.highest) == (3, 3.0, 1.0, 5.0)
    assert found([1.0, 2.0, 3.0, 10.0]).median == 2.5


def test_what_is_not_a_number_does_not_count() -> None:
    assert found([1.0, math.nan, math.inf]).n == 1
    assert summary([]) is None
    assert summary([math.nan]) is None
