"""The Universal Scalability Law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def log_capacity(users: Floats, alpha: float | Floats, beta: float | Floats) -> Floats:
    """The logarithm of X(N) ÷ X(1) = N ÷ (1 + α(N - 1) + βN(N - 1)). Arrays broadcast. Source: Gunther 1993,
    "A Simple Capacity Model of Massively Parallel Transaction Systems".
    """
    return np.asarray(
        np.log(users) - np.log1p(alpha * (users - 1) + beta * users * (users - 1)), dtype=np.float64
    )


def throughput(users: Floats, rate_1: float, alpha: float, beta: float) -> Floats:
    """X(N) in the unit of `rate_1`, the throughput of one user."""
    return np.asarray(rate_1 * np.exp(log_capacity(users, alpha, beta)), dtype=np.float64)
