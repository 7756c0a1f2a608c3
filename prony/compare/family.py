"""Several pairs at once: Holm's step-down, and variances that learn from each other. Must not know
sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special as untyped_special

from prony.compare.ratio import RatioResult

special: Any = untyped_special

FEWEST_VARIANCES = 3
"""Variances from which a prior is estimated."""
UNEQUAL = 0.1
"""Chance of variances as unequal as these, were they equal, below which they are not moderated."""
MOST_PRIOR = 1e3
"""Degrees of freedom of a prior at most: equal variances."""


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
class Prior:
    """The distribution of the variances of one observation, over the pairs of a family: scaled inverse
    chi-square.
    """

    variance: float
    freedom: float


def prior_of(found: Sequence[RatioResult]) -> Prior | None:
    """From the variances of a family of ratios, by the moments of their logarithms. None with too few of
    them, or where Bartlett's test says that they are not equal: one odd server would borrow the others' small
    variance. Sources: Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3 (1), 3,
    section 6.2; Bartlett 1937.
    """
    known = [(_variance(one), one.freedom) for one in found if one.error and one.freedom]
    if len(known) < FEWEST_VARIANCES:
        return None
    variances, freedoms = (np.asarray(column, dtype=np.float64) for column in zip(*known, strict=True))
    if _bartlett(variances, freedoms) < UNEQUAL:
        return None
    logs = np.log(variances) - special.digamma(freedoms / 2) + np.log(freedoms / 2)
    centre = float(logs.mean())
    beyond = float(logs.var(ddof=1) - special.polygamma(1, freedoms / 2).mean())
    if beyond <= 0:
        return Prior(float((variances * freedoms).sum() / freedoms.sum()), MOST_PRIOR)
    half = _inverse_trigamma(beyond)
    return Prior(math.exp(centre + float(special.digamma(half)) - math.log(half)), min(2 * half, MOST_PRIOR))


def moderated(found: RatioResult, prior: Prior) -> RatioResult:
    """The same ratio with the variance between its own and the prior's, each weighed by its degrees of
    freedom, which add up (Smyth 2004, section 4).
    """
    if not found.error or not found.freedom:
        return found
    freedom = found.freedom + prior.freedom
    own = _variance(found)
    variance = (found.freedom * own + prior.freedom * prior.variance) / freedom
    error = found.error * math.sqrt(variance / own)
    centre = math.log(found.ratio)
    half = float(special.stdtrit(freedom, 0.5 + found.confidence / 2)) * error
    return replace(
        found,
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        error=error,
        freedom=freedom,
        p_value=2 * float(special.stdtr(freedom, -abs(centre) / error)),
        method=f"{found.method}, moderated",
    )


def _variance(found: RatioResult) -> float:
    """Of one observation: of a block's difference, or of a trial of either server."""
    share = 1 / found.n if found.paired else (1 / found.n_a + 1 / found.n_b)
    return (found.error or 0.0) ** 2 / share


def _bartlett(variances: Any, freedoms: Any) -> float:
    """p-value of equal variances."""
    whole, count = float(freedoms.sum()), len(variances)
    pooled = float((variances * freedoms).sum()) / whole
    statistic = whole * math.log(pooled) - float((freedoms * np.log(variances)).sum())
    scale = 1 + (float((1 / freedoms).sum()) - 1 / whole) / (3 * (count - 1))
    return float(special.chdtrc(count - 1, statistic / scale))


def _inverse_trigamma(value: float) -> float:
    """y with trigamma(y) = value, by Newton's method (Smyth 2004, appendix)."""
    y = 0.5 + 1 / value
    for _ in range(50):
        step = float(special.polygamma(1, y)) * (1 - float(special.polygamma(1, y)) / value)
        step /= float(special.polygamma(2, y))
        y += step
        if abs(step / y) < 1e-8:
            break
    return y
