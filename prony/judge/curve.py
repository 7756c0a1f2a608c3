"""The times that are figures as a curve, and how low a percentile of it may have been without delays. Must
not know what delayed anything.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from prony.evidence.engine import Histogram
from prony.evidence.trial import Evidence
from prony.judge.times import headline, read_times, without_response
from prony.judge.window import measured

LARGE = 2.0
"""A delay of at least so many times the mean one is looked for request by request; smaller ones are even."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Of the times that are figures: each one that was seen, after 0, and the share of requests up to it."""

    ms: list[float]
    share: list[float]
    mean_ms: float
    below: list[float]
    """At each place the share of requests that took less."""
    hull: list[int]
    """Of each place the one before it on the lower convex hull of those shares: from any point to the right
    the steepest slope is to one of these, and along them it rises and falls once.
    """

    @staticmethod
    def of(evidence: Evidence) -> Curve | None:
        window = measured(evidence)
        histogram = None if window is None else headline(window, evidence.load.model)
        if window is None or histogram is None:
            return None
        return _curve(histogram, window.completed, without_response(evidence))

    def place(self, share: float) -> int | None:
        """Where the percentile is; None among the requests that have no time."""
        at = bisect_left(self.share, share - 1e-9)
        return at if at < len(self.ms) else None

    def at(self, share: float) -> float:
        """0 below the first request."""
        at = self.place(share) if share > 0 else 0
        return math.inf if at is None else self.ms[at]

    def mean_below(self, share: float) -> float:
        """Of all requests but this share, the longest ones; those that failed are the first of them."""
        shares = np.minimum(self.share, max(0.0, self.share[-1] - share))
        return float(np.dot(np.diff(shares), self.ms[1:]) / shares[-1]) if shares[-1] > 0 else 0.0

    def without(self, p: float, delayed_ms: Callable[[float], float]) -> float:
        """The lowest time that percentile p can have had without delays; of a request that took so long
        without them the mean is `delayed_ms`. What was moved across a place came to the next one, at least.
        """
        at = self.place(p) or 0
        while at > 0:
            there, mean = self.ms[at], delayed_ms(self.ms[at - 1])
            if there >= LARGE * mean:
                other, slope = min(at, bisect_right(self.ms, there - LARGE * mean)) - 1, 0.0
                while other >= 0 and (p - self.below[other]) / (there - self.ms[other]) > slope:
                    slope = (p - self.below[other]) / (there - self.ms[other])
                    other = self.hull[other]
                if p - self.share[at - 1] > mean * slope:
                    return there - delayed_ms(there)
            at -= 1
        return 0.0


@lru_cache(maxsize=4)
def _curve(histogram: Histogram, completed: int, failed: int) -> Curve | None:
    times = read_times(histogram, completed, failed)
    if times is None or times.count < 1:
        return None
    ms = [0.0, *(times.responses.middle_ns / 1e6).tolist()]
    share = [0.0, *(np.cumsum(times.responses.counts) / times.count).tolist()]
    below, hull = [0.0, *share[:-1]], [-1]
    for at in range(1, len(ms)):
        last = at - 1
        while (other := hull[last]) >= 0 and (below[last] - below[other]) * (ms[at] - ms[other]) >= (
            below[at] - below[other]
        ) * (ms[last] - ms[other]):
            last = other
        hull.append(last)
    return Curve(ms, share, times.mean_ms, below, hull)
