"""Intervals of the percentiles of a fast server: many requests in few seconds, whose level differs from
second to second by nothing, or by a few per cent. Runs the judge's functions.
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
"""Standard deviation of the log of a time within a second: that of a fast server."""
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class LevelWorld:
    """The log of the level of a second has this standard deviation, and correlates so with the one before."""

    name: str
    spread: float
    correlation: float = 0.0

    def draw(self, rng: np.random.Generator, per_s: int, seconds: int) -> Floats:
        """The times (ms) of a window, in their order."""
        levels = rng.standard_normal(seconds) * self.spread
        for at in range(1, seconds):
            fresh = math.sqrt(1 - self.correlation**2) * levels[at]
            levels[at] = self.correlation * levels[at - 1] + fresh
        times = np.exp(levels[:, None] + TIMES_SPREAD * rng.standard_normal((seconds, per_s)))
        return np.asarray(times.ravel(), dtype=np.float64)

    def percentile(self, percentile: float) -> float:
        """The true one (ms): over all seconds that there could have been."""
        return math.exp(NORMAL.inv_cdf(percentile / 100) * math.hypot(self.spread, TIMES_SPREAD))


WORLDS = (
    LevelWorld("independent requests", 0.0),
    LevelWorld("levels differ by 2 %", 0.02),
    LevelWorld("levels differ by 5 %", 0.05),
    LevelWorld("levels differ by 5 %, correlation 0.5", 0.05, 0.5),
)
WINDOWS = ((1_000, 10), (10_000, 10), (3_000, 30))
"""Requests per second, and seconds."""


class LevelCovered(NamedTuple):
    """Of many windows: the share whose interval holds the true percentile; the median of the independent
    requests that they count as; and as shares of the true percentile the medians of the ends' distances from
    it, beside the one that 95 % of the windows' own percentiles stay within.
    """

    held: float
    counts_as: float
    below: float
    above: float
    error: float


def level_coverage(
    world: LevelWorld, per_s: int, seconds: int, percentile: float, rounds: int, seed: int = SEED
) -> LevelCovered:
    """Of windows with so many requests in each of their seconds."""
    rng, truth = np.random.default_rng(seed), world.percentile(percentile)
    low, value, high, counts_as = (np.empty(rounds) for _ in range(4))
    for at in range(rounds):
        drawn = world.draw(rng, per_s, seconds) * 1e6
        ordered = np.sort(drawn)
        times = Times(
            Decoded(ordered, ordered, np.ones_like(ordered)), seconds=Seconds.of(rows_of(drawn, seconds))
        )
        found = times.percentile(percentile)
        assert found is not None
        low[at], value[at], high[at] = found.low_ms, found.value_ms, found.high_ms
        counts_as[at] = times.worth(percentile)
    return LevelCovered(
        held=float(((low <= truth) & (truth <= high)).mean()),
        counts_as=float(np.median(counts_as)),
        below=1 - float(np.median(low / value)),
        above=float(np.median(high / value)) - 1,
        error=float(np.quantile(np.abs(np.log(value / truth)), 0.95)),
    )
