"""Change points of one figure over the trials of one setting: where the level changed, and by how much.
Arrays in, frozen values out. The caller splits a series where the host, the JDK or the plan changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats as untyped_stats

from prony.compare.claim import BAND
from prony_serve.trends import otava

stats: Any = untyped_stats

FEWEST_EACH = 5
"""Minimum trials on either side of a change: with fewer, a t-test mostly tests one outlier."""
FEWEST = 2 * FEWEST_EACH
"""Minimum trials of a series that is searched."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the level between values `index - 1` and `index`. Levels are weighted geometric means over
    the trials up to the neighbouring changes.
    """

    index: int
    before: float
    after: float
    trials_before: int
    trials_after: int
    p_value: float
    """Two-sided t-test of the sessions' mean logarithms with a pooled variance: a few sessions that agree by
    chance have a variance of their own near 0. The position was searched for, so it ranks changes and is no
    error rate; docs/serve.md has the measured rate.
    """

    @property
    def ratio(self) -> float:
        """after ÷ before."""
        return self.after / self.before


def changes(
    values: Sequence[float], sessions: Sequence[object] | None = None, weights: Sequence[float] | None = None
) -> tuple[Change, ...]:
    """All changes of at least BAND with FEWEST_EACH trials on either side, ascending. Values must be positive
    and in order of time; any other series has no changes.

    `sessions` groups the values, such as by experiment: trials of one night are alike, so the test's sample
    is the session (None: each trial). `weights`: of each value, above 0 to 1 (None: all alike); a session has
    the mean of its values'.
    """
    if len(values) < FEWEST or not all(math.isfinite(value) and value > 0 for value in values):
        return ()
    at = [index for index in otava.indices(values, BAND) if 0 < index < len(values)]
    each = range(len(values)) if sessions is None else sessions
    series = _Series(values, each, [1.0] * len(values) if weights is None else weights)
    while (weak := _weakest(series.changes(at))) is not None:
        at.remove(weak)
    return tuple(series.changes(at))


def _weakest(candidates: Sequence[Change]) -> int | None:
    """Index of the next change to remove (too few trials, not significant, too small), or None."""
    short = [change for change in candidates if _fewer(change) < FEWEST_EACH]
    if short:
        return min(short, key=lambda change: (_fewer(change), abs(math.log(change.ratio)))).index
    doubtful = [change for change in candidates if change.p_value > otava.MOST_P_VALUE]
    if doubtful:
        return max(doubtful, key=lambda change: change.p_value).index
    small = [change for change in candidates if abs(math.log(change.ratio)) < math.log1p(BAND)]
    return min(small, key=lambda change: abs(math.log(change.ratio))).index if small else None


def _fewer(change: Change) -> int:
    return min(change.trials_before, change.trials_after)


@dataclass(frozen=True, slots=True)
class _Series:
    values: Sequence[float]
    sessions: Sequence[object]
    weights: Sequence[float]

    def changes(self, at: Sequence[int]) -> list[Change]:
        """The change at each index."""
        edges = [0, *at, len(self.values)]
        return [self._change(*edges[k : k + 3]) for k in range(len(at))]

    def _change(self, begin: int, at: int, end: int) -> Change:
        before, after = (level(self.values[a:b], self.weights[a:b]) for a, b in ((begin, at), (at, end)))
        p_value = _p_value(self._sides(begin, at), self._sides(at, end))
        return Change(at, before, after, at - begin, end - at, p_value)

    def _sides(self, begin: int, end: int) -> NDArray[np.float64]:
        """Per session its mean logarithm, and its weight."""
        grouped: dict[object, list[tuple[float, float]]] = {}
        for k in range(begin, end):
            grouped.setdefault(self.sessions[k], []).append((self.values[k], self.weights[k]))
        means = [
            (math.log(level(*zip(*of, strict=True))), fmean(w for _, w in of)) for of in grouped.values()
        ]
        return np.array(means).T


def _p_value(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """1 with fewer than two sessions' worth on a side; 0 when both sides are constant and differ."""
    if np.ptp(left[0]) == 0 and np.ptp(right[0]) == 0 and min(left.shape[1], right.shape[1]) > 1:
        return 1.0 if left[0, 0] == right[0, 0] else 0.0
    summaries = []
    for means, weights in (left, right):
        n = weights.sum() ** 2 / (weights**2).sum()
        if round(n, 6) < 2:
            return 1.0
        mean = np.average(means, weights=weights)
        summaries.append((mean, math.sqrt(np.average((means - mean) ** 2, weights=weights) * n / (n - 1)), n))
    return float(stats.ttest_ind_from_stats(*summaries[0], *summaries[1], equal_var=True).pvalue)


def level(values: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted geometric mean."""
    return math.exp(
        math.fsum(w * math.log(v) for v, w in zip(values, weights, strict=True)) / math.fsum(weights)
    )
