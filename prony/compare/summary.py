"""One figure of one server over its trials: median and range. Must not know which figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
