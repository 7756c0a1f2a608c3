"""Several pairs at once: Holm's step-down, and the number of further trials that would settle a pair. Must
not know sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special as untyped_special

from prony.compare.ratio import RatioResult
from prony.compare.sequential import boundaries

special: Any = untyped_special

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


def more_trials(result: RatioResult, band: float, level: float, power: float = POWER) -> int | None:
    """Further trials per server that would settle the pair with probability `power`; None above MOST_TRIALS,
    and with repeated looks above the planned number.

    Assumes that ratio and spread stay as observed. Settled: the interval excludes 1 (half-width below |log
    ratio|) or lies inside the band (half-width below log(1 + band) - |log ratio|), whichever takes fewer
    trials.
    """
    if result.error is None or result.n < 1:
        return None
    distance = abs(math.log(result.ratio))
    room = math.log1p(band) - distance
    if result.error == 0:
        return None
    # What the standard error would be with one trial per server (or one block).
    share = 1 / result.n if result.paired else (1 / result.n_a + 1 / result.n_b) / 2
    spread = result.error / math.sqrt(share)
    trials = np.arange(result.n + 1, result.n + MOST_TRIALS + 1)
    if result.looks is not None:
        trials = np.arange(result.n + 1, result.looks.most + 1)
    freedom = (1 if result.paired else 2) * (trials - 1)
    error = spread / np.sqrt(trials)
    if result.looks is None:
        sure = special.stdtrit(freedom, 1 - level / 2)
    else:
        limits = boundaries(result.looks, level)
        sure = np.asarray([limits[int(count)] for count in trials])
    apart = (sure + special.stdtrit(freedom, power)) * error <= distance
    # Either bound may be missed, so each gets half of the error.
    same = (sure + special.stdtrit(freedom, (1 + power) / 2)) * error <= room
    enough = np.flatnonzero(apart | same)
    return int(enough[0]) + 1 if enough.size else None
