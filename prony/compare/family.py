"""Several pairs at once: Holm's step-down, and the number of further trials that would settle a pair. Must
not know sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special as untyped_special

from prony.compare.ratio import RatioResult
from prony.compare.sequential import boundaries

special: Any = untyped_special

SPREAD_CONFIDENCE = 0.9
"""Confidence of each end of the spread's interval: one planned number in ten is too small."""
POWER = 0.8
"""Chance that the planned trials settle the pair."""
MOST_TRIALS = 1000
"""Larger numbers are not printed."""


def holm_levels(p_values: Sequence[float], alpha: float = 0.05) -> tuple[float, ...]:
    """For each pair, the significance level at which Holm's procedure decided.

    The r-th smallest of k p-values is tested at alpha / (k - r + 1); after the first that is not significant
    all others stay at that level. An interval at confidence 1 - level therefore excludes 1 exactly for the
    pairs that Holm rejects, so that interval and decision cannot contradict each other.
    """
    count = len(p_values)
    levels = [0.0] * count
    level = alpha
    stopped = False
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        if not stopped:
            level = alpha / (count - rank)
            stopped = p_values[index] > level
        levels[index] = level
    return tuple(levels)


@dataclass(frozen=True, slots=True)
class MoreTrials:
    """Further trials per server; `most` is None where no practical number is enough, and with repeated looks
    where it would take more than are planned.
    """

    least: int
    most: int | None


def more_trials(
    result: RatioResult, band: float, level: float, power: float = POWER, sure: float = SPREAD_CONFIDENCE
) -> MoreTrials | None:
    """Further trials per server that detect a difference of `band` with probability `power`.

    The observed ratio takes no part: a plan that trusts it stops where noise looks like a result. Only the
    spread is taken from the trials, as both ends of its interval: s sqrt(f / q) with q the chi-square
    quantiles of f degrees of freedom at `sure` and 1 - `sure`. A half-width and a margin for power must fit
    into log(1 + band): then equal servers are called equivalent, and servers that differ by the band or more
    are distinguished. A true ratio between 1 and the edge of the band may stay inconclusive for any number of
    trials.
    """
    if result.error is None or result.freedom is None or result.n < 1 or result.error == 0:
        return None
    # What the standard error would be with one trial per server (or one block).
    share = 1 / result.n if result.paired else (1 / result.n_a + 1 / result.n_b) / 2
    spread = result.error / math.sqrt(share)
    ends = (
        spread * math.sqrt(result.freedom / (2 * float(special.gammaincinv(result.freedom / 2, chance))))
        for chance in (sure, 1 - sure)
    )
    least, most = (_further(result, end, math.log1p(band), level, power) for end in ends)
    if least is None:
        return MoreTrials(MOST_TRIALS, None)
    return MoreTrials(least, most)


def _further(result: RatioResult, spread: float, room: float, level: float, power: float) -> int | None:
    """The fewest further trials at this spread; 0 where those so far are enough."""
    last = result.n + MOST_TRIALS if result.looks is None else result.looks.most
    trials = np.arange(max(2, result.n), last + 1)
    freedom = (1 if result.paired else 2) * (trials - 1)
    if result.looks is None:
        critical = special.stdtrit(freedom, 1 - level / 2)
    else:
        limits = boundaries(result.looks, level)
        critical = np.asarray([limits.get(int(count), math.inf) for count in trials])
    # Either end of the band may be missed, so each gets half of what may go wrong.
    margin = special.stdtrit(freedom, (1 + power) / 2)
    enough = np.flatnonzero((critical + margin) * spread / np.sqrt(trials) <= room)
    return int(trials[enough[0]]) - result.n if enough.size else None
