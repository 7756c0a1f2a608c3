"""Bias of a ratio by source, and the interval with every source at its worst (JCGM 100:2008, F.2.4.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from prony.compare.position import PositionEffect, places_later
from prony.compare.ratio import RatioResult
from prony.compare.samples import ServerValues
from prony.compare.summary import clopper_pearson
from prony.judge.finding import NO_BIAS, Bias

CANCELLING = frozenset({"isolation", "host", "client"})
"""Sources that bend both servers of a block alike: only the difference of the bounds remains."""
MISSING, POSITION, ORDER, DRIFT = "missing", "position", "order", "steady"
TREND, CORRELATION = "trend", "correlation"
BALANCED = 1e-6
"""Difference of mean positions below which an order is balanced."""


@dataclass(frozen=True, slots=True)
class Source:
    """Bias of the ratio a ÷ b by a source, on the log scale (both at least 0; infinite: not bounded)."""

    name: str
    down: float
    up: float
    cancelled: float = 0.0
    """Part of the sum of both sides that cancels."""

    @property
    def bias(self) -> Bias:
        return Bias.of_logs(self.down, self.up)


def sources(
    a: ServerValues,
    b: ServerValues,
    ratio: RatioResult,
    position: PositionEffect | None,
    higher_is_better: bool | None = None,
    *more: Source,
) -> tuple[Source, ...]:
    """Largest first, with `more` that is known."""
    pairs = _pairs(a, b) if ratio.paired else None
    names = dict.fromkeys(name for side in (a, b) for budget in side.budgets for name in budget)
    candidates = [_source(name, a, b, pairs) for name in names]
    candidates.append(_missing(a, b, ratio, higher_is_better))
    candidates += [_position(a, b, ratio, position), *more]
    real = [source for source in candidates if source.down > 0 or source.up > 0]
    return tuple(sorted(real, key=lambda source: -max(source.down, source.up)))


def total(every: Sequence[Source]) -> tuple[float, float]:
    """(down, up), every source at its worst."""
    return math.fsum(source.down for source in every), math.fsum(source.up for source in every)


def widened(low: float, high: float, down: float, up: float) -> tuple[float | None, float | None]:
    """An interval widened by bounds on the log scale; None on an unbounded side."""
    return (
        None if math.isinf(down) else low * math.exp(-down),
        None if math.isinf(up) else high * math.exp(up),
    )


def _pairs(a: ServerValues, b: ServerValues) -> list[tuple[Mapping[str, Bias], Mapping[str, Bias]]]:
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
    a_down, a_up = fmean(bias.down for bias in of_a), fmean(bias.up for bias in of_a)
    b_down, b_up = fmean(bias.down for bias in of_b), fmean(bias.up for bias in of_b)
    down, up = a_down + b_up, a_up + b_down
    if pairs is None or name not in CANCELLING or math.isinf(down + up):
        return Source(name, down, up)
    # With f in [0, 1] of each bound real, the same f for both: the ratio moves by f (a_up - b_up), and by
    # f (b_down - a_down).
    lower = max(0.0, b_up - a_up) + max(0.0, a_down - b_down)
    upper = max(0.0, a_up - b_up) + max(0.0, b_down - a_down)
    return Source(name, lower, upper, cancelled=down + up - lower - upper)


def _missing(a: ServerValues, b: ServerValues, ratio: RatioResult, higher_is_better: bool | None) -> Source:
    """Trials without a figure at their worst admissible values (Manski 1989): as far as any trial of either
    server, or a non-conforming one; their share is its upper bound (Clopper & Pearson 1934).
    """
    if not a.missing and not b.missing:
        return Source(MISSING, 0.0, 0.0)
    seen, gone = (
        [math.log(value) for value in of] for of in (a.values + b.values, a.missing_values + b.missing_values)
    )
    lowest = min(seen + (gone if higher_is_better is True else []))
    highest = max(seen + (gone if higher_is_better is False else []))
    centre = math.log(ratio.ratio)
    if not ratio.paired:
        down = up = 0.0
        for side, sign in ((a, 1), (b, -1)):
            share = _most_often(len(side.missing), side.trials)
            mean = fmean(math.log(value) for value in side.values)
            below, above = share * (mean - lowest), share * (highest - mean)
            down, up = (down + below, up + above) if sign > 0 else (down + above, up + below)
        return Source(MISSING, down, up)
    of_a, of_b = (dict(zip(s.blocks, map(math.log, s.values), strict=True)) for s in (a, b))
    complete = of_a.keys() & of_b.keys()
    broken = {*a.blocks, *b.blocks, *(trial.block for trial in (*a.missing, *b.missing))} - complete
    share = _most_often(len(broken), len(complete) + len(broken)) / len(broken)
    down = up = 0.0
    for block in broken:
        low = of_a.get(block, lowest) - of_b.get(block, highest)
        high = of_a.get(block, highest) - of_b.get(block, lowest)
        down, up = down + share * max(0.0, centre - low), up + share * max(0.0, high - centre)
    return Source(MISSING, down, up)


def _most_often(hits: int, count: int) -> float:
    return clopper_pearson(hits, count)[1] if hits else 0.0


def _position(
    a: ServerValues, b: ServerValues, ratio: RatioResult, position: PositionEffect | None
) -> Source:
    if position is None or not position.found:
        return Source(POSITION, 0.0, 0.0)
    places = places_later(a, b, paired=ratio.paired)
    if abs(places) < BALANCED:
        return Source(POSITION, 0.0, 0.0)
    lowest, highest = position.moves(places)
    return Source(POSITION, max(0.0, math.log(highest)), max(0.0, -math.log(lowest)))
