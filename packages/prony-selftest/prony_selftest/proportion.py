"""The exact upper bound of a share."""

from __future__ import annotations

from typing import Any

from scipy import special as untyped_special

special: Any = untyped_special

CONFIDENCE = 0.95


def upper_bound(hits: int, count: int) -> float:
    """One-sided upper bound of a share (Clopper and Pearson 1934): 0 of 60 is at most 4.9 %."""
    if hits >= count:
        return 1.0
    return float(special.betaincinv(hits + 1, count - hits, CONFIDENCE))
