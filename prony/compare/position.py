"""A test for an effect of a trial's position in its block. Must not know what a server is called.

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

special: Any = untyped_special
Floats = NDArray[np.float64]

FEWEST_FREEDOM = 2


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
    levels = np.column_stack([_dummies(servers), _dummies(blocks)[:, 1:]])
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


def _dummies(groups: Sequence[int]) -> Floats:
    """A column of zeros and ones for each group."""
    found = np.asarray(groups)
    return np.asarray(found[:, None] == np.unique(found)[None, :], dtype=np.float64)
