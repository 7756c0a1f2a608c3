"""A server's figure over its trials: median and range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prony.special import special

CONFIDENCE = 0.95
FEWEST = 3


@dataclass(frozen=True, slots=True)
class Summary:
    n: int
    median: float
    lowest: float
    highest: float


def summary(values: Sequence[float]) -> Summary | None:
    """Median and range of the finite values; None without any."""
    ordered = np.sort([v for v in values if math.isfinite(v)])
    if ordered.size == 0:
        return None
    return Summary(int(ordered.size), float(np.median(ordered)), float(ordered[0]), float(ordered[-1]))


def half_width(values: Sequence[float]) -> float:
    """Half-width of the geometric mean's t interval on the log scale; infinite below FEWEST values."""
    if len(values) < FEWEST:
        return math.inf
    logs = np.log(np.asarray(values, dtype=np.float64))
    quantile = float(special.stdtrit(logs.size - 1, 0.5 + CONFIDENCE / 2))
    return quantile * float(logs.std(ddof=1)) / math.sqrt(logs.size)


def clopper_pearson(hits: float, rounds: int) -> tuple[float, float]:
    """Exact 95 % interval of a share (Clopper & Pearson 1934); `hits` need not be whole."""
    tail = (1 - CONFIDENCE) / 2
    low = float(special.betaincinv(hits, rounds - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, rounds - hits, 1 - tail)) if hits < rounds else 1.0
    return low, high
