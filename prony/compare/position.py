"""Effect of a trial's position in its block; it mimics a server in unbalanced orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prony.compare.samples import ServerValues
from prony.special import special

Floats = NDArray[np.float64]

FEWEST_FREEDOM = 2
FEWEST_TRIALS = 6
RANK = 1e-9
"""Share of the largest singular value below which others are rounding."""


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
    fitted = fit(logs, levels, np.asarray(positions, dtype=np.float64)[:, None])
    if fitted is None:
        return None
    slope = float(fitted.effects[0])
    half = float(special.stdtrit(fitted.freedom, 0.5 + confidence / 2)) * math.sqrt(
        float(fitted.spread[0, 0])
    )
    return PositionEffect(
        ratio=math.exp(slope),
        low=math.exp(slope - half),
        high=math.exp(slope + half),
        p_value=fitted.p_value,
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


class Fit(NamedTuple):
    """Least squares of effects in addition to others."""

    effects: Floats
    spread: Floats
    """Their covariance."""
    freedom: int
    p_value: float
    """F test of all of them."""


def fit(logs: Floats, without: Floats, more: Floats) -> Fit | None:
    """None where `more` adds nothing estimable, or too few degrees of freedom are left."""
    rank = int(np.linalg.matrix_rank(without))
    added = int(np.linalg.matrix_rank(np.column_stack([without, more]))) - rank
    freedom = logs.size - rank - added
    if added < 1 or freedom < FEWEST_FREEDOM:
        return None
    rest, left = without_levels(without, logs), without_levels(without, more)
    effects = np.asarray(np.linalg.lstsq(left, rest, rcond=RANK)[0], dtype=np.float64)
    unexplained = max(float(((rest - left @ effects) ** 2).sum()), 1e-24)
    explained = max(float((rest**2).sum()) - unexplained, 0.0)
    p_value = float(special.fdtrc(added, freedom, explained / added / (unexplained / freedom)))
    spread = np.linalg.pinv(left.T @ left, rcond=RANK) * unexplained / freedom
    return Fit(effects, np.asarray(spread, dtype=np.float64), freedom, p_value)


def without_levels(levels: Floats, values: Floats) -> Floats:
    return np.asarray(values - levels @ np.linalg.lstsq(levels, values, rcond=None)[0], dtype=np.float64)
