"""Limits of steady-state detection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SteadyClass = Literal["flat", "warm-up", "slowdown", "no steady state"]
"""After Barrett et al. 2017: no level differs from the last; the last is the fastest; an earlier was
faster; there is no last level.
"""


@dataclass(frozen=True, slots=True)
class SteadyLimits:
    change: float = 0.02
    """Largest difference between segments, or trend."""
    remaining: float = 0.03
    """Largest residual drift, and trend within the window."""
    penalty: float = 42.0
    """PELT's penalty in units of the residual variance."""
