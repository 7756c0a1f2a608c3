"""Change points of one figure over the trials of one setting: where its level changed, and by how much.
Arrays in, frozen values out.

Must not know servers, settings or dates. The caller splits a series where the host or the JDK changed: what
differs across such a break is no change of the server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats as untyped_stats

from prony.compare import otava
from prony.compare.comparison import BAND

stats: Any = untyped_stats

FEWEST_EACH = 5
"""Trials on either side of a change. With fewer, a t-test on a place that was searched for is mostly a test
of one outlier.
"""
FEWEST = 2 * FEWEST_EACH
"""Trials below which a series is not searched."""

Detector = Callable[[Sequence[float], float], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Change:
    """The level changed between value `index - 1` and value `index`. Levels are geometric means over the
    trials between the neighbouring changes.
    """

    index: int
    before: float
    after: float
    trials_before: int
    trials_after: int
    p_value: float
    """Welch's t-test of the logarithms of both levels, two-sided. The place was searched for, so it is a rank
    among changes and no error rate; docs/serve.md has the measured one.
    """

    @property
    def ratio(self) -> float:
        """after ÷ before."""
        return self.after / self.before


def changes(
    values: Sequence[float], *, least: float = BAND, detector: Detector = otava.indices
) -> tuple[Change, ...]:
    """Every change of at least `least` (a share) with FEWEST_EACH trials on either side, in order. Values are
    positive and in the order of time; a series with one that is not has no changes.
    """
    if len(values) < FEWEST or not all(math.isfinite(one) and one > 0 for one in values):
        return ()
    at = [index for index in detector(values, least) if 0 < index < len(values)]
    while (weak := _weakest(values, at, least)) is not None:
        at.remove(weak)
    edges = [0, *at, len(values)]
    return tuple(_change(values, *edges[k : k + 3]) for k in range(len(at)))


def _weakest(values: Sequence[float], at: Sequence[int], least: float) -> int | None:
    """The change to take away next: one with too few trials on a side, one that is not significant (any more,
    as its neighbour went), one that is too small; None when all stand. Its neighbours are then judged anew.
    """
    edges = [0, *at, len(values)]
    found = [_change(values, *edges[k : k + 3]) for k in range(len(at))]
    short = [one for one in found if _fewer(one) < FEWEST_EACH]
    if short:
        return min(short, key=lambda one: (_fewer(one), abs(math.log(one.ratio)))).index
    doubtful = [one for one in found if one.p_value > otava.MOST_P_VALUE]
    if doubtful:
        return max(doubtful, key=lambda one: one.p_value).index
    small = [one for one in found if abs(math.log(one.ratio)) < math.log1p(least)]
    return min(small, key=lambda one: abs(math.log(one.ratio))).index if small else None


def _fewer(change: Change) -> int:
    return min(change.trials_before, change.trials_after)


def _change(values: Sequence[float], begin: int, at: int, end: int) -> Change:
    before, after = values[begin:at], values[at:end]
    return Change(at, _level(before), _level(after), len(before), len(after), _p_value(before, after))


def _p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """1 where it cannot be told; 0 where neither level has any spread and they differ."""
    if min(len(before), len(after)) < 2:
        return 1.0
    left, right = np.log(before), np.log(after)
    if np.ptp(left) == 0 and np.ptp(right) == 0:
        return 1.0 if left[0] == right[0] else 0.0
    told = [(part.mean(), part.std(ddof=1), len(part)) for part in (left, right)]
    return float(stats.ttest_ind_from_stats(*told[0], *told[1], equal_var=False).pvalue)


def _level(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
