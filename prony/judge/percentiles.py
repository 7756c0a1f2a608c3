"""Distribution-free intervals of percentiles, by order statistics. Must not know where samples come from.

Within a trial requests are taken as independent, which those that share a queue are not: the interval is the
best that so many samples can support. Over trials the sample is the trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import special as untyped_special

from prony.judge.histogram import Decoded

special: Any = untyped_special

CONFIDENCE = 0.95
USEFUL_TAIL = 0.5
"""The upper end is useful when at least this share of the tail lies beyond it: below p99.5 for p99."""
FEWEST = 6
"""Samples below which no order statistic bounds even a median."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The order statistics (from 1) that bound a percentile; `high` is None where no sample bounds it."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """Of a percentile in ms; `high_ms` is None where the sample has no upper bound for it."""

    low_ms: float
    high_ms: float | None


def rank_interval(count: int, percentile: float, confidence: float = CONFIDENCE) -> Ranks:
    """The l-th and the u-th of `count` samples: with B binomial(count, p), P(B < l) and P(B >= u) are at most
    (1 - confidence) / 2 each.

    Source: Hahn & Meeker 1991, Statistical Intervals, section 5.2. Raises ValueError for a percentile outside
    (0, 100) or a count below 1.
    """
    if not 0 < percentile < 100 or count < 1:
        raise ValueError(f"p{percentile:g} of {count} samples has no interval")
    share, tail = percentile / 100, (1 - confidence) / 2
    # The largest l with P(B <= l - 1) <= tail, and the smallest u with P(B <= u - 1) >= 1 - tail.
    low = _first(count, lambda rank: _cdf(rank, count, share) > tail)
    high = _first(count, lambda rank: _cdf(rank, count, share) >= 1 - tail) + 1
    return Ranks(max(1, low), high if high <= count else None)


def interval_ms(histogram: Decoded, percentile: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Of a percentile of a histogram; None when it is empty."""
    count = round(histogram.count)
    if count < 1:
        return None
    ranks = rank_interval(count, percentile, confidence)
    low_ns = histogram.percentile_ns(100 * ranks.low / count)
    high_ns = None if ranks.high is None else histogram.percentile_ns(100 * ranks.high / count)
    if low_ns is None:
        return None
    return Interval(low_ns / 1e6, None if high_ns is None else high_ns / 1e6)


def useful_samples(percentile: float, confidence: float = CONFIDENCE) -> int:
    """The fewest samples whose interval has a useful upper end, with at least half of the tail beyond it.

    n (1 - p) (1 - USEFUL_TAIL) >= z sqrt(n p (1 - p)), so n >= (z / (1 - USEFUL_TAIL))^2 p / (1 - p): 1,522
    for p99. 459 samples only make it likely that one lies beyond p99; the upper end is then the maximum.
    Raises ValueError for a percentile outside (0, 100).
    """
    if not 0 < percentile < 100:
        raise ValueError(f"p{percentile:g} is outside 0 to 100")
    share = percentile / 100
    z = float(special.ndtri(0.5 + confidence / 2))
    return max(FEWEST, math.ceil((z / (1 - USEFUL_TAIL)) ** 2 * share / (1 - share)))


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Of the median over trials: two order statistics at least as sure as `confidence`; None below six
    trials, where the range of all of them covers it with less than 95 %.
    """
    if not values:
        return None
    ranks = rank_interval(len(values), 50.0, confidence)
    ordered = sorted(values)
    bounded = ranks.high is not None and _cdf(0, len(values), 0.5) <= (1 - confidence) / 2
    return (ordered[ranks.low - 1], ordered[(ranks.high or 1) - 1]) if bounded else None


def _cdf(successes: int, count: int, share: float) -> float:
    return float(special.bdtr(successes, count, share))


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The smallest number of successes in 0..count for which a condition that stays true holds."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
