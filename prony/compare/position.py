"""Effect of a trial's position in its block; it mimics a server in unbalanced orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.compare.samples import ServerValues
from prony.special import special

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
    trials: int

    @property
    def found(self) -> bool:
        return not self.low <= 1 <= self.high

    def moves(self, places: float) -> tuple[float, float]:
        ends = (self.low**places, self.high**places)
        return min(ends), max(ends)


def position_effect(
    values: Sequence[float],
    servers: Sequence[int],
    blocks: Sequence[int],
    positions: Sequence[int],
    confidence: float = 0.95,
) -> PositionEffect | None:
    """Least squares on logarithms: levels per server and block, and a slope. None where confounded, or below
    FEWEST_FREEDOM degrees of freedom.
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
    """Effect over all trials that count; None where positions are not known."""
    rows = [
        (value, number, block, position)
        for number, side in enumerate(servers)
        for value, block, position in zip(side.values, side.blocks, side.positions, strict=True)
        if position is not None
    ]
    if len(rows) < sum(len(side.values) for side in servers) or len(rows) < FEWEST_TRIALS:
        return None
    values, numbers, blocks, positions = zip(*rows, strict=True)
    return position_effect(values, numbers, blocks, positions)


def places_later(a: ServerValues, b: ServerValues, *, paired: bool) -> float:
    """Mean position of `a` in its blocks minus that of `b`; with `paired` over complete blocks."""
    common = set(a.blocks) & set(b.blocks)

    def mean(side: ServerValues) -> float:
        positions = [
            position
            for block, position in zip(side.blocks, side.positions, strict=True)
            if position is not None and (not paired or block in common)
        ]
        return sum(positions) / len(positions) if positions else 0.0

    return mean(a) - mean(b)


def dummies(groups: Sequence[int]) -> Floats:
    """Indicator columns: trials x groups."""
    names = np.asarray(groups)
    return np.asarray(names[:, None] == np.unique(names)[None, :], dtype=np.float64)
