"""What a count of hits is worth: the exact bound of a share."""

from __future__ import annotations

from typing import Any

from scipy import special as untyped_special

special: Any = untyped_special

CONFIDENCE = 0.95


def upper_bound(hits: int, count: int) -> float:
    """The share from which on so few hits would come in fewer than 1 - CONFIDENCE of the cases (Clopper and
    Pearson 1934, one-sided): 0 of 60 is at most 4.9 %.
    """
    if hits >= count:
        return 1.0
    return float(special.betaincinv(hits + 1, count - hits, CONFIDENCE))
