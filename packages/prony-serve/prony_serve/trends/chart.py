"""A figure over time or commits: a mark per trial, levels, changes, breaks. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from prony.report.html.plot import Axis, Plot, Series, plain
from prony.report.html.scale import Scale, round_ticks
from prony.report.html.theme import FINE, INK, MUTED, NOT_CONFORMING, PAPER

DAY_S = 86_400.0
STEPS_S = (
    3600.0, 3 * 3600.0, 6 * 3600.0, DAY_S, 2 * DAY_S, 7 * DAY_S, 14 * DAY_S, 30.5 * DAY_S, 91.3 * DAY_S,
    365.25 * DAY_S,
)  # fmt: skip
MOST_TICKS = 7
NO_FIGURE = "cross"
"""Mark of a trial without a printed figure, on the lower edge."""

Kind = Literal["better", "worse", "changed", "break"]
_RULE = {"better": FINE, "worse": NOT_CONFORMING, "changed": MUTED, "break": INK}


@dataclass(frozen=True, slots=True)
class TrendMark:
    """One trial. `y` None: no printed figure."""

    x: float
    y: float | None
    series: Series
    counts: bool


@dataclass(frozen=True, slots=True)
class TrendLevel:
    """A level, from its first trial to its last."""

    x: float
    x2: float
    y: float
    series: Series


@dataclass(frozen=True, slots=True)
class TrendRule:
    """A vertical line: a change of the level, or a break."""

    x: float
    kind: Kind


def trend_chart(
    marks: Sequence[TrendMark],
    levels: Sequence[TrendLevel],
    rules: Sequence[TrendRule],
    *,
    commits: Sequence[str] = (),
    unit: str,
    width: int,
    height: int,
    key: str,
    title: str,
) -> str:
    """`x` is in seconds since 1970, or an index into `commits`. Filled marks took part in the search, hollow
    ones did not. The y axis does not begin at zero. Each mark carries its index in `marks` as `data-row`.
    """
    values = [mark.y for mark in marks if mark.y is not None] + [level.y for level in levels]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = (high - low) * 0.12 or abs(high) * 0.05 or 1.0
    low, high = low - room, high + room
    first, last = min(mark.x for mark in marks), max(mark.x for mark in marks)
    margin = (last - first) * 0.03 or (0.5 if commits else DAY_S / 4)
    scale = Scale(first - margin, last + margin)
    ticks = list(enumerate(name[:12] for name in commits)) or time_ticks(first, last)
    y = Scale(low, high)
    levels_y = [(t, plain(t)) for t in round_ticks(y, 8)]
    plot = Plot(Axis(scale, ticks), Axis(y, levels_y, unit, grid=True), width=width, height=height)
    for rule in sorted(rules, key=lambda rule: rule.kind != "break"):
        if rule.kind == "break":
            plot.upright(rule.x, _RULE[rule.kind], dash="2 4")
        else:
            plot.upright(rule.x, _RULE[rule.kind], 1.5)
    for level in levels:
        plot.line([(level.x, level.y), (level.x2, level.y)], level.series.colour, 2, opacity=0.75)
    for row, mark in enumerate(marks):
        if mark.y is None:
            plot.mark(mark.x, low, NO_FIGURE, NOT_CONFORMING, size=0.8, row=row)
        else:
            colour = mark.series.colour
            inside = colour if mark.counts else PAPER
            plot.mark(mark.x, mark.y, mark.series.shape, inside, colour, size=0.75, row=row)
    return plot.svg(key=key, title=title)


def time_ticks(first_s: float, last_s: float) -> list[tuple[float, str]]:
    """Ticks at days, or hours for short spans, in UTC; at most about MOST_TICKS."""
    span = max(last_s - first_s, 1.0)
    step = next((step_s for step_s in STEPS_S if span / step_s <= MOST_TICKS), span / MOST_TICKS)
    begin = -(-first_s // min(step, DAY_S)) * min(step, DAY_S)
    times = [begin + k * step for k in range(MOST_TICKS + 1) if begin + k * step <= last_s] or [first_s]
    shown = " %b %H:%M" if step < DAY_S else " %b %Y" if span > 300 * DAY_S else " %b"
    return [(t, f"{(when := datetime.fromtimestamp(t, UTC)).day}{when:{shown}}") for t in times]
