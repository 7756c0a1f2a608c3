"""Precision of a mean of correlated rows, to end a window that is precise enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
NORMAL_FROM = 1e5
"""Degrees of freedom from which the first term of Fisher's expansion is exact to nine digits."""


def t_quantile(freedom: float, probability: float) -> float:
    """Of Student's t, for one degree of freedom or more: Newton's steps from below (the tail is concave) on
    the integral of cos^(freedom - 1). SciPy's takes 0.25 s to import.
    """
    if probability < 0.5:
        return -t_quantile(freedom, 1 - probability)
    z = NormalDist().inv_cdf(probability)
    if freedom >= NORMAL_FROM or not z:
        return z + (z**3 + z) / (4 * freedom)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(math.pi) / 2
    t = z
    for _ in range(60):
        half = math.atan(t / math.sqrt(freedom)) / 2
        area = half * float(WEIGHTS @ np.cos(half * (NODES + 1)) ** (freedom - 1))
        density = math.exp(log_scale - (freedom + 1) / 2 * math.log1p(t * t / freedom)) / math.sqrt(freedom)
        step = (probability - 0.5 - math.exp(log_scale) * area) / density
        t += step
        if abs(step) <= 1e-12 * t:
            break
    return t


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
