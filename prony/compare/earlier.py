"""A new experiment compared with earlier ones: the sample is the experiment, not the trial.

Trials of an experiment share its hour, its boot and the host's state, so only the spread between experiments
shows how much a further one varies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special as untyped_special

from prony.compare.ratio import RatioResult

special: Any = untyped_special

FEWEST_EXPERIMENTS = 3
"""Fewest experiments for an interval."""
METHOD = "prediction from experiments"


def against_earlier(
    values: Sequence[float], experiments: Sequence[Sequence[float]], *, confidence: float = 0.95
) -> RatioResult:
    """`values` (of a new experiment) ÷ those of earlier ones, with the interval of a further experiment.

    With m₁ … mₖ the mean logarithms of the earlier experiments, m̄ and s their mean and standard deviation, a
    further experiment of the same build lies within m̄ ± t s √(1 + 1/k), t of k - 1 degrees of freedom: the
    interval of the ratio has that width. With fewer trials than the earlier ones the additional variance is
    added. Source: prediction interval, Hahn & Meeker 1991, Statistical Intervals, section 4.3. Raises
    ValueError for a side without a value, or a value without a logarithm.
    """
    earlier = [list(series) for series in experiments if series]
    if not values or not earlier:
        raise ValueError("a ratio needs at least one trial on each side")
    if any(not math.isfinite(value) or value <= 0 for series in (list(values), *earlier) for value in series):
        raise ValueError("a ratio needs positive, finite values: exclude the others and report why")
    means = np.asarray([np.log(series).mean() for series in earlier])
    centre = float(np.log(values).mean() - means.mean())
    count = len(earlier)
    trials = sum(len(series) for series in earlier)
    if count < FEWEST_EXPERIMENTS:
        return RatioResult(math.exp(centre), None, None, confidence, METHOD, len(values), len(values), trials)
    variance = float(means.var(ddof=1)) * (1 + 1 / count) + _fewer(len(values), earlier)
    error = math.sqrt(variance)
    half = float(special.stdtrit(count - 1, 0.5 + confidence / 2)) * error
    return RatioResult(
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        confidence=confidence,
        method=METHOD,
        n=len(values),
        n_a=len(values),
        n_b=trials,
        error=error,
        freedom=count - 1,
    )


def _fewer(count: int, experiments: Sequence[Sequence[float]]) -> float:
    """Variance of an experiment of `count` trials minus that at the (harmonic) mean size; at least 0."""
    freedom = sum(len(series) - 1 for series in experiments)
    if not freedom:
        return 0.0
    squares = sum(float(((np.log(series) - np.log(series).mean()) ** 2).sum()) for series in experiments)
    usual = len(experiments) / sum(1 / len(series) for series in experiments)
    return max(0.0, squares / freedom * (1 / count - 1 / usual))
