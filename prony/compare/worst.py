"""What may bend a ratio, source by source, and the interval with everything at its worst.

The true ratio lies in [L exp(-down), H exp(up)], L and H the statistical interval: systematic bounds of
unknown dependence are added (JCGM 100:2008, F.2.4.5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from scipy import special as untyped_special

from prony.compare.position import PositionEffect, places_later
from prony.compare.ratio import RatioResult
from prony.compare.samples import ServerValues
from prony.compare.summary import clopper_pearson
from prony.judge.finding import NO_BIAS, Bias

special: Any = untyped_special

CANCELLING = frozenset({"isolation", "host", "client"})
"""Sources that bend both servers of a block by the same rule: the same share of what each lost is real. What
is left is the difference of the two bounds.
"""
MISSING, POSITION, DRIFT = "missing", "position", "steady"
BALANCED = 1e-6
"""Servers whose mean places differ by less stood equally late."""


@dataclass(frozen=True, slots=True)
class Source:
    """What one source may do to the ratio a ÷ b, on the log scale (both at least 0; infinite: not
    bounded).
    """

    name: str
    down: float
    up: float
    cancelled: float = 0.0
    """By how much less this is than the sum of both sides, because it bends both alike."""

    @property
    def bias(self) -> Bias:
        """As relative bounds."""
        return Bias.of_logs(self.down, self.up)


def sources(
    a: ServerValues,
    b: ServerValues,
    found: RatioResult,
    position: PositionEffect | None,
    higher_is_better: bool | None = None,
) -> tuple[Source, ...]:
    """Every source that bends a ÷ b, the largest first."""
    pairs = _pairs(a, b) if found.paired else None
    names = dict.fromkeys(name for side in (a, b) for budget in side.budgets for name in budget)
    made = [_source(name, a, b, pairs) for name in names]
    made.append(_missing(a, b, found, higher_is_better))
    made.append(_position(a, b, found, position))
    real = [one for one in made if one.down > 0 or one.up > 0]
    return tuple(sorted(real, key=lambda one: -max(one.down, one.up)))


def total(found: Sequence[Source]) -> tuple[float, float]:
    """(down, up), all at their worst."""
    return math.fsum(one.down for one in found), math.fsum(one.up for one in found)


def widened(low: float, high: float, down: float, up: float) -> tuple[float | None, float | None]:
    """An interval of a ratio with bounds on the log scale; None on a side that nothing bounds."""
    return (
        None if math.isinf(down) else low * math.exp(-down),
        None if math.isinf(up) else high * math.exp(up),
    )


def _pairs(a: ServerValues, b: ServerValues) -> list[tuple[Mapping[str, Bias], Mapping[str, Bias]]]:
    """The budgets of the blocks that have both; of several trials in a block the last one's."""
    of_a, of_b = dict(zip(a.blocks, a.budgets, strict=True)), dict(zip(b.blocks, b.budgets, strict=True))
    return [(of_a[block], of_b[block]) for block in sorted(of_a.keys() & of_b.keys())]


def _source(
    name: str,
    a: ServerValues,
    b: ServerValues,
    pairs: Sequence[tuple[Mapping[str, Bias], Mapping[str, Bias]]] | None,
) -> Source:
    of_a = [budget.get(name, NO_BIAS) for budget in (a.budgets if pairs is None else [p for p, _ in pairs])]
    of_b = [budget.get(name, NO_BIAS) for budget in (b.budgets if pairs is None else [p for _, p in pairs])]
    a_down, a_up = fmean(one.down for one in of_a), fmean(one.up for one in of_a)
    b_down, b_up = fmean(one.down for one in of_b), fmean(one.up for one in of_b)
    down, up = a_down + b_up, a_up + b_down
    if pairs is None or name not in CANCELLING or math.isinf(down + up):
        return Source(name, down, up)
    # With f in [0, 1] of each bound real, the same f for both: the ratio moves by f (a_up - b_up), and by
    # f (b_down - a_down).
    lower = max(0.0, b_up - a_up) + max(0.0, a_down - b_down)
    upper = max(0.0, a_up - b_up) + max(0.0, b_down - a_down)
    return Source(name, lower, upper, cancelled=down + up - lower - upper)


def _missing(a: ServerValues, b: ServerValues, found: RatioResult, higher_is_better: bool | None) -> Source:
    """Trials without a figure, at their worst admissible values: as low or as high as any trial of either
    server (partial identification; Manski 1989), and as bad as one that does not conform and measured
    something. Whatever the reason: a slow start may be one. How often it happens is known from few trials:
    the share is the upper bound of it (Clopper and Pearson 1934).
    """
    if not a.missing and not b.missing:
        return Source(MISSING, 0.0, 0.0)
    seen, gone = (
        [math.log(value) for value in of] for of in (a.values + b.values, a.missing_values + b.missing_values)
    )
    lowest = min(seen + (gone if higher_is_better is True else []))
    highest = max(seen + (gone if higher_is_better is False else []))
    centre = math.log(found.ratio)
    if not found.paired:
        down = up = 0.0
        for side, sign in ((a, 1), (b, -1)):
            share = _most_often(len(side.missing), side.trials)
            mean = fmean(math.log(value) for value in side.values)
            below, above = share * (mean - lowest), share * (highest - mean)
            down, up = (down + below, up + above) if sign > 0 else (down + above, up + below)
        return Source(MISSING, down, up)
    of_a, of_b = (dict(zip(s.blocks, map(math.log, s.values), strict=True)) for s in (a, b))
    complete = of_a.keys() & of_b.keys()
    broken = {*a.blocks, *b.blocks, *(one.block for one in (*a.missing, *b.missing))} - complete
    share = _most_often(len(broken), len(complete) + len(broken)) / len(broken)
    down = up = 0.0
    for block in broken:
        low = of_a.get(block, lowest) - of_b.get(block, highest)
        high = of_a.get(block, highest) - of_b.get(block, lowest)
        down, up = down + share * max(0.0, centre - low), up + share * max(0.0, high - centre)
    return Source(MISSING, down, up)


def _most_often(hits: int, count: int) -> float:
    """Upper bound of a chance (one-sided 97.5 %)."""
    return clopper_pearson(hits, count)[1] if hits else 0.0


def _position(
    a: ServerValues, b: ServerValues, found: RatioResult, position: PositionEffect | None
) -> Source:
    """An effect of a trial's place in its block that was found, where one server stood later than the
    other.
    """
    if position is None or not position.found:
        return Source(POSITION, 0.0, 0.0)
    places = places_later(a, b, paired=found.paired)
    if abs(places) < BALANCED:
        return Source(POSITION, 0.0, 0.0)
    lowest, highest = position.moves(places)
    return Source(POSITION, max(0.0, math.log(highest)), max(0.0, -math.log(lowest)))
