"""Percentiles with distribution-free intervals; failed requests count as longer than any response.

For requests that share a queue the sample is divided by the design effect (coverage in docs/truth.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from prony.judge.clustering import FEWEST_ROWS, Seconds, design_effect, few, mean_effect
from prony.judge.histogram import Decoded

STEPS_PER_HALVING = 5
CONFIDENCE = 0.95
USEFUL_TAIL = 0.5
"""Share of the tail beyond a useful upper end, at least: for p99 the end lies below p99.5."""
HIGHEST_OF_ROWS = 99.0
MARGIN = 2.0
"""Planned ÷ needed requests, in addition to the small-sample factor. Independent requests then sufficed for
p99 in 90, 99 and 100 % of simulated windows of 5, 10 and 30 s; with 1.5 in 80, 93 and 64 %.
"""
MOST_LOG = 100.0
"""Cap of a mean's log half-width: finite, but uninformative."""
FAR = 12.0
"""Standard deviations beyond which a binomial number has no weight."""
FEWEST = 6
"""Fewest samples whose order statistics bound a median."""


@dataclass(frozen=True, slots=True)
class Ranks:
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Percentile:
    """Times in ms. Infinite: among failed requests, or an unbounded upper end."""

    value_ms: float
    low_ms: float
    high_ms: float
    above_ms: float
    """Longest observed time, timeouts included: lower bound of an infinite value."""
    responses_ms: float | None = None
    """The same percentile of the responses alone; None where nothing failed."""
    open: bool = False
    """Whether the effective sample leaves the upper end unknown."""


@dataclass(frozen=True, slots=True)
class PercentilePoint:
    """One point of the latency-by-percentile curve; `inverse` is 1 / (1 - percentile / 100), the log axis."""

    percentile: float
    value_ms: float
    inverse: float


@dataclass(frozen=True, slots=True)
class Times:
    """Response times and the number of requests without a response, which count as longer than any."""

    responses: Decoded
    failed: int = 0
    longest_ms: float = 0.0
    """Of any request; a timeout counts with its elapsed time, as in the mean."""
    mean_ms: float = 0.0
    shortest_ms: float | None = None
    seconds: Seconds | None = None
    """Seconds of the same requests; their correlation widens the intervals."""
    watched: Decoded | None = None
    """The times that `seconds` describe, where they differ from `responses`."""

    @property
    def count(self) -> int:
        return round(self.responses.count) + self.failed

    def supports(self, percentile: float, confidence: float = CONFIDENCE) -> bool:
        """By count alone: a test of correlation would select trials in which none happened to show."""
        return self.count >= useful_samples(percentile, confidence)

    def worth(self, percentile: float) -> int:
        """Effective sample size for this percentile: equivalent number of independent requests, or 0."""
        if self.count < 1:
            return 0
        if self.seconds is None:
            return self.count
        watched = self.watched or self.responses
        # Rows have no point between p99 and the maximum: beyond p99 the effect is at least that of p99.
        judged = {percentile, min(percentile, HIGHEST_OF_ROWS)}
        effects = (design_effect(self.seconds, watched.percentile_ns(p) or 0.0, 1 - p / 100) for p in judged)
        return max(1, round(self.count / max(effects)))

    def mean_interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Of all requests (ms), log scale; infinite where not known, open above where requests failed."""
        watched = self.watched or self.responses
        spread_s2 = max(0.0, watched.moment(2) - watched.moment(1) ** 2)
        effect = None if self.seconds is None else mean_effect(self.seconds, spread_s2)
        if effect is None or self.responses.count < FEWEST or self.responses.moment(1) <= 0:
            return -math.inf, math.inf
        variance_s2 = max(0.0, self.responses.moment(2) - self.responses.moment(1) ** 2)
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        alone_s = self.responses.moment(1)
        factor = math.exp(min(z * math.sqrt(variance_s2 * effect / self.responses.count) / alone_s, MOST_LOG))
        if self.failed:
            return alone_s * 1000 / factor, math.inf
        return self.mean_ms / factor, self.mean_ms * factor

    def percentile(self, percentile: float, confidence: float = CONFIDENCE) -> Percentile | None:
        """With its interval, whether or not the sample supports it; None without a request."""
        if self.count < 1:
            return None
        ranks = self._ranks(percentile, confidence)
        alone_ns = self.responses.percentile_ns(percentile) if self.failed else None
        return Percentile(
            value_ms=self._at(self.responses.rank(percentile, self.count)),
            low_ms=self._at(ranks.low),
            high_ms=math.inf if ranks.high is None else self._at(ranks.high),
            above_ms=self.longest_ms,
            responses_ms=None if alone_ns is None else alone_ns / 1e6,
            open=ranks.high is None,
        )

    def _ranks(self, percentile: float, confidence: float) -> Ranks:
        count, worth = self.count, self.worth(percentile)
        ranks = rank_interval(worth, percentile, confidence)
        high = None if ranks.high is None else -(-ranks.high * count // worth)
        return Ranks((ranks.low - 1) * count // worth + 1, high)

    def _at(self, rank: int) -> float:
        return math.inf if rank > round(self.responses.count) else self.responses.at_rank_ns(rank) / 1e6


def percentile_series(times: Times) -> tuple[PercentilePoint, ...]:
    """Points of a chart with a log axis in 1/(1-p), as far as the sample supports and without failures."""
    points: list[PercentilePoint] = []
    for step in range(64 * STEPS_PER_HALVING):
        beyond = 0.5 ** (step / STEPS_PER_HALVING)
        percentile = 100 * (1 - beyond)
        if times.count < 1 or (percentile > 0 and not times.supports(percentile)):
            break
        value_ms = times._at(times.responses.rank(percentile, times.count))
        if math.isinf(value_ms):
            break
        points.append(PercentilePoint(percentile, value_ms, 1 / beyond))
    return tuple(points)


def rank_interval(count: int, percentile: float, confidence: float = CONFIDENCE) -> Ranks:
    """The l-th and the u-th of `count` samples: with B binomial(count, p), P(B < l) and P(B >= u) are at most
    (1 - confidence) / 2 each.

    Source: Hahn & Meeker 1991, Statistical Intervals, section 5.2. Raises ValueError for a percentile outside
    (0, 100) or a count below 1.
    """
    if not 0 < percentile < 100 or count < 1:
        raise ValueError(f"p{percentile:g} of {count} samples has no interval")
    tail = (1 - confidence) / 2
    first, below = _binomial(count, percentile / 100)
    # The largest l with P(B <= l - 1) <= tail, and the smallest u with P(B <= u - 1) >= 1 - tail.
    low = first + int(np.searchsorted(below, tail, side="right"))
    high = first + int(np.searchsorted(below, 1 - tail)) + 1
    return Ranks(max(1, low), high if high <= count else None)


def _binomial(count: int, share: float) -> tuple[int, NDArray[np.float64]]:
    """The least of the numbers within FAR standard deviations of the mean, and P(B <= each of them). By the
    ratio of each probability to the one before: SciPy's function is exact, too, and takes 0.25 s to import.
    """
    far = FAR * (math.sqrt(count * share * (1 - share)) + 1)
    first, last = max(0, math.floor(count * share - far)), min(count, math.ceil(count * share + far))
    numbers = np.arange(first, last, dtype=np.float64)
    steps = np.log((count - numbers) / (numbers + 1)) + math.log(share) - math.log1p(-share)
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(logs - logs.max())
    return first, np.cumsum(weights) / weights.sum()


def useful_samples(percentile: float, confidence: float = CONFIDENCE) -> int:
    """Fewest samples with half of the tail beyond the upper end: n >= (z / (1 - USEFUL_TAIL))^2 p / (1 - p),
    1,522 for p99. Raises ValueError for a percentile outside (0, 100).
    """
    if not 0 < percentile < 100:
        raise ValueError(f"p{percentile:g} is outside 0 to 100")
    share = percentile / 100
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    return max(FEWEST, math.ceil((z / (1 - USEFUL_TAIL)) ** 2 * share / (1 - share)))


def planned_samples(percentile: float, rows: int) -> int:
    """Useful samples × small-sample factor × margin for weak correlation, for `rows` seconds."""
    return math.ceil(MARGIN * few(max(rows, FEWEST_ROWS)) * useful_samples(percentile))


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Two order statistics over trials; None below six, whose whole range covers less than 95 %."""
    if not values:
        return None
    ranks = rank_interval(len(values), 50.0)
    ordered = sorted(values)
    bounded = ranks.high is not None and 0.5 ** len(values) <= (1 - CONFIDENCE) / 2
    return (ordered[ranks.low - 1], ordered[(ranks.high or 1) - 1]) if bounded else None
