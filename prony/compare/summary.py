"""One figure of one server over its trials: median, range, interval on the median. Must not know which
figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special as untyped_special

special: Any = untyped_special


@dataclass(frozen=True, slots=True)
class Summary:
    """Median with its spread. The interval is None with too few trials to support one (fewer than
    6 at 95 %).
    """

    n: int
    median: float
    lowest: float
    highest: float
    ci_low: float | None = None
    ci_high: float | None = None
    ci_coverage: float | None = None
    """The interval's exact coverage; order statistics come in steps, so it is at least the confidence asked
    for.
    """


def summary(values: Sequence[float], confidence: float = 0.95) -> Summary | None:
    """Median, range and distribution-free interval on the median; None without a finite value.

    The interval between the k-th smallest and the k-th largest of n values covers the median with 1 - 2
    P(Binomial(n, 1/2) < k), whatever the distribution: 96.9 % for n = 6, k = 1.
    """
    ordered = np.sort([v for v in values if math.isfinite(v)])
    count = int(ordered.size)
    if count == 0:
        return None
    low = high = coverage = None
    rank = 1
    while rank <= count // 2 and (reached := 1 - 2 * float(special.bdtr(rank - 1, count, 0.5))) >= confidence:
        low, high, coverage = float(ordered[rank - 1]), float(ordered[count - rank]), reached
        rank += 1
    return Summary(
        count, float(np.median(ordered)), float(ordered[0]), float(ordered[-1]), low, high, coverage
    )
