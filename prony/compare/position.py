"""A test for an effect of a trial's position in its block, and what it does to a ratio.

A position effect in balanced orders widens intervals; in unbalanced ones it looks like a server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special as untyped_special

from prony.compare.samples import ServerValues

special: Any = untyped_special
Floats = NDArray[np.float64]

FEWEST_FREEDOM = 2
FEWEST_TRIALS = 6


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Change of the figure per position in the block, as a ratio (0.98: 2 % less at each position)."""

    ratio: float
    low: float
    high: float
    """The interval of `ratio`, 95 %."""
    p_value: float
    """Two-sided p-value for no effect."""
    trials: int

    @property
    def found(self) -> bool:
        """Whether the interval excludes 1."""
        return not self.low <= 1 <= self.high

    def moves(self, places: float) -> tuple[float, float]:
        """Lowest and highest factor by which it moves the ratio of two servers of which the first stood so
        many places later on average.
        """
        ends = (self.low**places, self.high**places)
        return min(ends), max(ends)


def position_effect(
    values: Sequence[float],
    servers: Sequence[int],
    blocks: Sequence[int],
    positions: Sequence[int],
    confidence: float = 0.95,
) -> PositionEffect | None:
    """Least squares on logarithms: a level for each server and each block, and one slope over positions. All
    sequences have one entry per trial; values are positive. None where position is confounded with servers
    and blocks, or with fewer than FEWEST_FREEDOM degrees of freedom.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    levels = np.column_stack([dummies(servers), dummies(blocks)[:, 1:]])
    place = np.asarray(positions, dtype=np.float64)
    rank = int(np.linalg.matrix_rank(levels))
    freedom = logs.size - rank - 1
    if freedom < FEWEST_FREEDOM:
        return None
    place = place - levels @ np.linalg.lstsq(levels, place, rcond=None)[0]
    spread = float(place @ place)
    if spread < 1e-9:
        return None
    rest = logs - levels @ np.linalg.lstsq(levels, logs, rcond=None)[0]
    slope = float(place @ rest) / spread
    residual = rest - slope * place
    error = math.sqrt(max(float(residual @ residual), 1e-24) / freedom / spread)
    half = float(special.stdtrit(freedom, 0.5 + confidence / 2)) * error
    return PositionEffect(
        ratio=math.exp(slope),
        low=math.exp(slope - half),
        high=math.exp(slope + half),
        p_value=2 * float(special.stdtr(freedom, -abs(slope) / error)),
        trials=int(logs.size),
    )


def effect_of(servers: Sequence[ServerValues]) -> PositionEffect | None:
    """The effect over all trials that count; None where their positions are not known."""
    rows = [
        (value, number, block, position)
        for number, one in enumerate(servers)
        for value, block, position in zip(one.values, one.blocks, one.positions, strict=True)
        if position is not None
    ]
    if len(rows) < sum(len(one.values) for one in servers) or len(rows) < FEWEST_TRIALS:
        return None
    values, numbers, blocks, positions = zip(*rows, strict=True)
    return position_effect(values, numbers, blocks, positions)


def places_later(a: ServerValues, b: ServerValues, *, paired: bool) -> float:
    """By how many places `a` stood later in its blocks than `b`, on average; with `paired` over the blocks
    that have both.
    """
    common = set(a.blocks) & set(b.blocks)

    def mean(side: ServerValues) -> float:
        known = [
            position
            for block, position in zip(side.blocks, side.positions, strict=True)
            if position is not None and (not paired or block in common)
        ]
        return sum(known) / len(known) if known else 0.0

    return mean(a) - mean(b)


def dummies(groups: Sequence[int]) -> Floats:
    """A column of zeros and ones for each group."""
    found = np.asarray(groups)
    return np.asarray(found[:, None] == np.unique(found)[None, :], dtype=np.float64)
