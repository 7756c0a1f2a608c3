"""Repeated confidence intervals: several looks at a comparison at a known total error (docs/method.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from prony.special import special

Floats = NDArray[np.float64]

CELLS = 400
"""Cells of the statistic's grid; twice as many move no boundary by more than a thousandth."""


@dataclass(frozen=True, slots=True)
class Looks:
    """A look after `first` complete blocks and after each further one, up to `most`."""

    first: int
    most: int

    def __post_init__(self) -> None:
        if self.first < 3 or self.most < self.first:
            raise ValueError(
                f"looks from {self.first} to {self.most} blocks: expected a first look after at least 3 "
                "blocks, and not after the last"
            )

    def spent(self, blocks: int, alpha: float) -> float:
        return alpha * blocks / self.most


def boundaries(looks: Looks, alpha: float) -> Mapping[int, float]:
    """Critical value of |t| per look, by its number of blocks; alpha is two-sided.

    With X the log differences of n blocks and t their one-sample t statistic, the chance that |t| exceeds its
    boundary at *any* look up to n is exactly `looks.spent(n, alpha)` for normal X of any variance. So the
    intervals mean ± boundary x standard error cover the truth at all looks at once with probability 1 - alpha
    under any stopping rule.

    The chain is exact, no Brownian approximation: R = ΣX ÷ sqrt(ΣX²) is a function of t, and Markov (under a
    mean of 0 independent of ΣX², by Basu's theorem), with R' = (R + z) ÷ sqrt(1 + z²), z sqrt(n) being
    Student's t with n degrees of freedom. Its distribution is followed on a grid. Sources: repeated
    confidence intervals, Jennison & Turnbull 1989; spending, Lan & DeMets 1983, Kim & DeMets 1987 (power
    family, exponent 1).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; expected a probability between 0 and 1")
    return _boundaries(looks, alpha, CELLS)


@lru_cache(maxsize=64)
def _boundaries(looks: Looks, alpha: float, cells: int) -> Mapping[int, float]:
    edges = np.linspace(0, math.pi / 2, cells + 1)  # of the angle whose tangent is |t| ÷ sqrt(n - 1)
    middles = np.sin((edges[1:] + edges[:-1]) / 2)
    critical: dict[int, float] = {}
    inside = np.zeros(cells)
    crossed = 0.0
    for blocks in range(looks.first, looks.most + 1):
        if blocks == looks.first:
            below = 2 * special.stdtr(blocks - 1, np.sqrt(blocks - 1) * np.tan(edges[:-1])) - 1
            below = np.append(below, 1.0)
            limit = float(special.stdtrit(blocks - 1, 1 - looks.spent(blocks, alpha) / 2))
            angle = math.atan(limit / math.sqrt(blocks - 1))
        else:
            reach = _reach(math.sqrt(blocks - 1) * middles, math.sqrt(blocks) * np.sin(edges), blocks - 1)
            below = inside @ reach
            keep = below[-1] - (looks.spent(blocks, alpha) - crossed)
            angle = float(np.interp(keep, below, edges))
        critical[blocks] = math.sqrt(blocks - 1) * math.tan(angle)
        crossed = looks.spent(blocks, alpha)
        mass = np.diff(below)
        # Only the part of a cell below the boundary continues.
        share = np.clip((angle - edges[:-1]) / np.diff(edges), 0, 1)
        inside = mass * share
        inside *= (1 - crossed) / inside.sum()
    return MappingProxyType(critical)


def _reach(before: Floats, at_most: Floats, blocks: int) -> Floats:
    """P(|R'| <= x) for each R in `before` (rows) and x in `at_most` (columns); R is after `blocks` blocks.

    |R + z| <= x sqrt(1 + z²) is a quadratic inequality in z: between its roots for x < 1, outside them for
    x > 1, always true beyond sqrt(1 + R²).
    """
    r, x = before[:, None], at_most[None, :]
    bend = 1 - x * x
    bend = np.where(np.abs(bend) < 1e-12, 1e-12, bend)
    root = x * np.sqrt(np.maximum(1 + r * r - x * x, 0))
    low, high = (-r - root) / bend, (-r + root) / bend
    low, high = np.minimum(low, high), np.maximum(low, high)
    freedom, scale = blocks, math.sqrt(blocks)
    between = special.stdtr(freedom, high * scale) - special.stdtr(freedom, low * scale)
    chance = np.where(bend > 0, between, 1 - between)
    return np.asarray(np.where(x * x >= 1 + r * r, 1.0, chance), dtype=np.float64)
