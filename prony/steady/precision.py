"""Precision of a mean of correlated rows, to end a window that is precise enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any


def t_quantile(freedom: float, probability: float) -> float:
    from scipy import special as untyped_special

    special: Any = untyped_special
    return float(special.stdtrit(freedom, probability))


LEAST_ROWS = 10
"""Fewest rows of a window: with fewer the autocorrelation is hardly known."""


def half_width(values: Sequence[float], least: int = LEAST_ROWS) -> float | None:
    """Half of the 95 % interval of the mean ÷ the mean; None below `least` rows, or for a mean not above 0.

    n rows of lag-1 correlation ρ + (1+4ρ)/n (Kendall 1954) equal n (1-ρ)/(1+ρ) independent ones.
    """
    n = len(values)
    mean = math.fsum(values) / n if n else 0.0
    if n < least or mean <= 0:
        return None
    apart = [value - mean for value in values]
    variance = math.fsum(a * a for a in apart) / (n - 1)
    if variance <= 0:
        return 0.0
    rho = math.fsum(a * b for a, b in pairwise(apart)) / ((n - 1) * variance)
    rho = min(0.95, max(0.0, rho + (1 + 4 * rho) / n))
    independent = n * (1 - rho) / (1 + rho)
    if independent < 2:
        return None
    return t_quantile(independent - 1, 0.975) * math.sqrt(variance / independent) / mean
