"""One new experiment against earlier ones: the sample is the experiment, not the trial.

Trials of one experiment share its hour, its boot and the host's temper; those of another do not. An interval
over trials of two experiments knows nothing of that; the spread of earlier experiments does.
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
"""With fewer, how much experiments differ is not known, and there is no interval."""
METHOD = "prediction from experiments"


def against_earlier(
    values: Sequence[float], experiments: Sequence[Sequence[float]], *, confidence: float = 0.95
) -> RatioResult:
    """`values` (of a new experiment) ÷ those of earlier ones, with the interval of a further experiment.

    With m₁ … mₖ the mean logarithms of the earlier experiments, m̄ and s their mean and standard deviation, a
    further experiment of the same build lies within m̄ ± t s √(1 + 1/k), t of k - 1 degrees of freedom: the
    interval of the ratio has that width. One of fewer trials than the earlier ones had varies more, and gets
    the variance that it has more. Source: prediction interval of a further
    observation, Hahn & Meeker 1991, Statistical Intervals, section 4.3. Raises ValueError for a side without
    a value, or a value without a logarithm.
    """
    told = [list(one) for one in experiments if one]
    if not values or not told:
        raise ValueError("a ratio needs at least one trial on each side")
    if any(not math.isfinite(value) or value <= 0 for one in (list(values), *told) for value in one):
        raise ValueError("a ratio needs positive, finite values: exclude the others and report why")
    means = np.asarray([np.log(one).mean() for one in told])
    centre = float(np.log(values).mean() - means.mean())
    count = len(told)
    trials = sum(len(one) for one in told)
    if count < FEWEST_EXPERIMENTS:
        return RatioResult(math.exp(centre), None, None, confidence, METHOD, len(values), len(values), trials)
    variance = float(means.var(ddof=1)) * (1 + 1 / count) + _fewer(len(values), told)
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
    """The variance that one of `count` trials has beyond that of experiments of their (harmonic) mean size; 0
    where it has as many.
    """
    freedom = sum(len(one) - 1 for one in experiments)
    if not freedom:
        return 0.0
    squares = sum(float(((np.log(one) - np.log(one).mean()) ** 2).sum()) for one in experiments)
    usual = len(experiments) / sum(1 / len(one) for one in experiments)
    return max(0.0, squares / freedom * (1 / count - 1 / usual))
