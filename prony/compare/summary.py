"""One figure of one server over its trials: median and range. Must not know which figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special as untyped_special

special: Any = untyped_special

FEWEST = 3
"""With fewer trials there is no interval."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Median with its range."""

    n: int
    median: float
    lowest: float
    highest: float


def summary(values: Sequence[float]) -> Summary | None:
    """Median and range of the finite values; None without one."""
    ordered = np.sort([v for v in values if math.isfinite(v)])
    if ordered.size == 0:
        return None
    return Summary(int(ordered.size), float(np.median(ordered)), float(ordered[0]), float(ordered[-1]))


def half_width(values: Sequence[float], confidence: float = 0.95) -> float:
    """Of the interval of their geometric mean by t, on the log scale; infinite below FEWEST of them."""
    if len(values) < FEWEST:
        return math.inf
    logs = np.log(np.asarray(values, dtype=np.float64))
    quantile = float(special.stdtrit(logs.size - 1, 0.5 + confidence / 2))
    return quantile * float(logs.std(ddof=1)) / math.sqrt(logs.size)
