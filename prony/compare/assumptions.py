"""What a paired interval assumes of its blocks, tested on their data: the ratio does not move from block to
block, blocks are independent, and no trial acts on the next. A detected violation is a bias of the pair.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from prony.compare.bias import CORRELATION, ORDER, TREND, Source
from prony.compare.position import Fit, dummies, fit
from prony.compare.ratio import RatioResult
from prony.compare.samples import ServerValues
from prony.compare.summary import CONFIDENCE
from prony.special import special

Floats = NDArray[np.float64]

FEWEST_BLOCKS = 5
"""Fewer show no correlation."""
MOST_CORRELATED = 0.9


def assumptions(a: ServerValues, b: ServerValues, ratio: RatioResult) -> tuple[Source, ...]:
    """Biases of a ÷ b by a trend over blocks, by correlated blocks and by the preceding trial; those that a
    test shows (5 % each). Of paired trials only.
    """
    if not ratio.paired:
        return ()
    of_a, of_b = (dict(zip(side.blocks, map(math.log, side.values), strict=True)) for side in (a, b))
    blocks = sorted(of_a.keys() & of_b.keys())
    logs = np.asarray([of_a[block] - of_b[block] for block in blocks])
    level, numbers = np.ones((logs.size, 1)), np.asarray(blocks, dtype=np.float64)[:, None]
    trend = _shown(fit(logs, level, numbers))
    if trend is not None:
        logs = logs - numbers @ trend.effects
    return (_trend(trend, numbers), _correlation(logs - logs.mean(), ratio), _order(a, b))


def by_order(fitted: Fit | None, at: Floats) -> Source:
    """Bias by effects of the order of trials that are shown (F test): the 95 % interval of `at` @ effects."""
    if (shown := _shown(fitted)) is None:
        return Source(ORDER, 0.0, 0.0)
    centre, half = float(at @ shown.effects), _half(shown, at)
    return Source(ORDER, max(0.0, centre + half), max(0.0, half - centre))


def _shown(fitted: Fit | None) -> Fit | None:
    return None if fitted is None or fitted.p_value >= 1 - CONFIDENCE else fitted


def _half(fitted: Fit, at: Floats) -> float:
    quantile = float(special.stdtrit(fitted.freedom, 0.5 + CONFIDENCE / 2))
    return quantile * math.sqrt(max(float(at @ fitted.spread @ at), 0.0))


def _trend(fitted: Fit | None, numbers: Floats) -> Source:
    """A ratio that moves with the number of own trials (growing data), mean to first and last block."""
    if fitted is None:
        return Source(TREND, 0.0, 0.0)
    reach = float(np.abs(numbers - numbers.mean()).max())
    most = reach * (abs(float(fitted.effects[0])) + _half(fitted, np.ones(1)))
    return Source(TREND, most, most)


def _correlation(rest: Floats, ratio: RatioResult) -> Source:
    """Neighbouring blocks that are alike count as fewer, n (1 - r) ÷ (1 + r), where r, the correlation of
    neighbours, is shown (one-sided, normal; Bartlett 1946). The interval is widened to theirs.
    """
    count, squares = rest.size, float(rest @ rest)
    none = Source(CORRELATION, 0.0, 0.0)
    if count < FEWEST_BLOCKS or squares <= 0 or ratio.low is None or ratio.high is None:
        return none
    seen = float(rest[1:] @ rest[:-1]) / squares
    error = (count - 2) / (count * math.sqrt(count - 1))
    if (seen + 1 / count) / error < float(special.ndtri(CONFIDENCE)):
        return none
    true = min(MOST_CORRELATED, seen + (1 + 4 * seen) / count)  # without its bias, Kendall 1954
    more = math.sqrt((1 + true) / (1 - true)) - 1
    centre = math.log(ratio.ratio)
    return Source(CORRELATION, more * (centre - math.log(ratio.low)), more * (math.log(ratio.high) - centre))


def _order(a: ServerValues, b: ServerValues) -> Source:
    """Effect of the preceding trial's server on the next trial, where either server followed it more."""
    rows = [
        (math.log(value), number, block, position, after)
        for number, side in enumerate((a, b))
        for value, block, position, after in zip(
            side.values, side.blocks, side.positions, side.after, strict=True
        )
        if position is not None and after
    ]
    if not rows:
        return Source(ORDER, 0.0, 0.0)
    logs, numbers, blocks, places, befores = zip(*rows, strict=True)
    mine = np.asarray(numbers) == 0
    after = np.asarray(
        [[before == server for server in sorted(set(befores))] for before in befores], dtype=float
    )
    if mine.all() or not mine.any():
        return Source(ORDER, 0.0, 0.0)
    at = after[mine].mean(axis=0) - after[~mine].mean(axis=0)
    levels = np.column_stack([dummies(blocks), mine, np.asarray(places, dtype=np.float64)])
    return by_order(fit(np.asarray(logs), levels, after), at)
