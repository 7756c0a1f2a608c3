"""Coverage of percentile intervals of a fast server: many requests in few seconds, whose level is constant or
varies by a few per cent from second to second. Runs the judge's functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prony.judge.clustering import Seconds
from prony.judge.histogram import Decoded
from prony.judge.percentiles import Times
from prony_selftest.percentile_coverage import SEED, rows_of

Floats = NDArray[np.float64]
TIMES_SPREAD = 0.1
"""Standard deviation (log) of times within a second, as of a fast server."""
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class LevelWorld:
    """Standard deviation (log) of the seconds' levels, and their correlation with the second before."""

    name: str
    spread: float
    correlation: float = 0.0

    def draw(self, rng: np.random.Generator, per_s: int, seconds: int) -> Floats:
        """Times (ms) of a window, in order."""
        levels = rng.standard_normal(seconds) * self.spread
        for at in range(1, seconds):
            fresh = math.sqrt(1 - self.correlation**2) * levels[at]
            levels[at] = self.correlation * levels[at - 1] + fresh
        times = np.exp(levels[:, None] + TIMES_SPREAD * rng.standard_normal((seconds, per_s)))
        return np.asarray(times.ravel(), dtype=np.float64)

    def percentile(self, percentile: float) -> float:
        """The true percentile (ms), over all possible seconds."""
        return math.exp(NORMAL.inv_cdf(percentile / 100) * math.hypot(self.spread, TIMES_SPREAD))


WORLDS = (
    LevelWorld("independent requests", 0.0),
    LevelWorld("levels differ by 2 %", 0.02),
    LevelWorld("levels differ by 5 %", 0.05),
    LevelWorld("levels differ by 5 %, correlation 0.5", 0.05, 0.5),
)
WINDOWS = ((1_000, 10), (10_000, 10), (3_000, 30))
"""Requests per second, seconds."""


class LevelCovered(NamedTuple):
    """Share of intervals with the true percentile, effective requests, distances of the ends, 95 % error."""

    covered: float
    counts_as: float
    below: float
    above: float
    error: float


def level_coverage(
    world: LevelWorld, per_s: int, seconds: int, percentile: float, rounds: int, seed: int = SEED
) -> LevelCovered:
    """Windows with `per_s` requests in each of their seconds."""
    rng, truth = np.random.default_rng(seed), world.percentile(percentile)
    low, value, high, counts_as = (np.empty(rounds) for _ in range(4))
    for at in range(rounds):
        drawn = world.draw(rng, per_s, seconds) * 1e6
        ordered = np.sort(drawn)
        times = Times(
            Decoded(ordered, ordered, np.ones_like(ordered)), seconds=Seconds.of(rows_of(drawn, seconds))
        )
        interval = times.percentile(percentile)
        assert interval is not None
        low[at], value[at], high[at] = interval.low_ms, interval.value_ms, interval.high_ms
        counts_as[at] = times.worth(percentile)
    return LevelCovered(
        covered=float(((low <= truth) & (truth <= high)).mean()),
        counts_as=float(np.median(counts_as)),
        below=1 - float(np.median(low / value)),
        above=float(np.median(high / value)) - 1,
        error=float(np.quantile(np.abs(np.log(value / truth)), 0.95)),
    )
