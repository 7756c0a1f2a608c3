"""How level is level. Must not know who sets the limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SteadyClass = Literal["flat", "warm-up", "slowdown", "no steady state"]
"""After Barrett et al. 2017: no other level before the last one; the last one is the fastest; an earlier one
was faster; there is no last level."""


@dataclass(frozen=True, slots=True)
class SteadyLimits:
    """What the detector and the `steady` check go by; docs/method.md has the calibration."""

    change: float = 0.02
    """A difference between the levels of two segments, or a trend, that may not be exceeded."""
    penalty: float = 42.0
    """Pelt's penalty in units of the residual variance."""
