"""Holm's step-down over several pairs."""

from __future__ import annotations

from collections.abc import Sequence


def holm_levels(p_values: Sequence[float], alpha: float = 0.05) -> tuple[float, ...]:
    """For each pair, the significance level at which Holm's procedure decided.

    The r-th smallest of k p-values is tested at alpha / (k - r + 1); from the first insignificant one on the
    level stays. An interval at confidence 1 - level then excludes 1 exactly for the pairs that Holm rejects.
    """
    count = len(p_values)
    levels = [0.0] * count
    level = alpha
    stopped = False
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        if not stopped:
            level = alpha / (count - rank)
            stopped = p_values[index] > level
        levels[index] = level
    return tuple(levels)
