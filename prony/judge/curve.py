"""The headline times as a distribution curve, and lower bounds on its percentiles without delays."""

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
"""Delays of at least this many mean delays are bounded per request; shorter ones are taken as uniform."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Observed headline times in ms, ascending from 0, and the share of requests up to each."""

    ms: list[float]
    share: list[float]
    mean_ms: float
    below: list[float]
    """Per point: the share of requests that took less."""
    hull: list[int]
    """Per point: the index of its predecessor on the lower convex hull of `below`. From any point to the
    right the steepest slope is to a hull point, and along the hull the slope is unimodal.
    """

    @staticmethod
    def of(evidence: Evidence) -> Curve | None:
        window = measured(evidence)
        histogram = None if window is None else headline(window, evidence.load.model)
        if window is None or histogram is None:
            return None
        return _curve(histogram, window.completed, without_response(evidence))

    def place(self, share: float) -> int | None:
        """Index of the percentile; None where it falls among requests without a time."""
        at = bisect_left(self.share, share - 1e-9)
        return at if at < len(self.ms) else None

    def at(self, share: float) -> float:
        """Time in ms of a share of the requests; 0 below the first, infinite among those without a time."""
        at = self.place(share) if share > 0 else 0
        return math.inf if at is None else self.ms[at]

    def mean_below(self, share: float) -> float:
        """Mean (ms) without this share of the longest requests; failed requests count as the longest."""
        shares = np.minimum(self.share, max(0.0, self.share[-1] - share))
        return float(np.dot(np.diff(shares), self.ms[1:]) / shares[-1]) if shares[-1] > 0 else 0.0

    def without(self, p: float, delayed_ms: Callable[[float], float]) -> float:
        """Lowest possible time (ms) of percentile p without delays. `delayed_ms`: mean delay of a request
        that takes this long without delays. A request delayed across a point reached at least the next one.
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
