"""Throughput and its ceilings: a row per server, its trials, and the limits that are known beforehand. Values
in, SVG out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.report.html.plot import GAP, TEXT, Axis, Plot, Series, plain, text_width
from prony.report.html.scale import Scale, round_ticks
from prony.report.html.theme import BUDGET, MUTED

BAR, LINE = 36, 15
"""Heights in px: of a row's marks with the space below them, and of a line of names above."""
LABEL = 13
"""Font size of a server's name."""


@dataclass(frozen=True, slots=True)
class CeilingRow:
    """One server: what its trials reached, and (name, requests per second) of what bounds it."""

    series: Series
    values: tuple[float, ...]
    middle: float | None
    ceilings: tuple[tuple[str, float], ...] = ()


def ceilings(
    rows: Sequence[CeilingRow], *, offered_per_s: float | None, width: int, key: str, title: str
) -> str:
    """A bar to the median, a mark per trial, a rule with its name per ceiling; what is offered is dashed."""
    known = [v for row in rows for v in (*row.values, *(per_s for _, per_s in row.ceilings))]
    most = max([*known, *([offered_per_s] if offered_per_s else [])], default=1.0) * 1.04 or 1.0
    scale = Scale(0, most)
    names = [_names(row, scale, width) for row in rows]
    heights = [LINE * (1 + max([line for line, *_ in found], default=0)) + BAR for found in names]
    x = Axis(scale, [(t, plain(t)) for t in round_ticks(scale, 5)], "requests per second", grid=True)
    plot = Plot(x, None, width=width, height=sum(heights))
    if offered_per_s is not None:
        plot.upright(offered_per_s, MUTED, dash="5 4")
    top = 0.0
    for row, found, height in zip(rows, names, heights, strict=True):
        colour, middle = row.series.colour, top + height - 20
        plot.text(0, top + LINE / 2, row.series.label, size=LABEL)
        if row.middle is not None:
            plot.rect((0, row.middle), (middle - 6, middle + 6), colour, opacity=0.26)
        for _, per_s in row.ceilings:
            plot.line([(per_s, middle - 12), (per_s, middle + 11)], BUDGET, 2)
        for value in row.values:
            plot.mark(value, middle, row.series.shape, colour)
        for line, start, name in found:
            plot.text(start, top + LINE * (line + 0.5), name, BUDGET, size=TEXT)
        top += height
    return plot.svg(key=key, title=title)


def _names(row: CeilingRow, scale: Scale, width: float) -> list[tuple[int, float, str]]:
    """Of a row's ceilings (line, px from the left, name): above the rule, in the first line with room."""
    ends = [text_width(row.series.label, LABEL)]
    found = []
    for name, per_s in sorted(row.ceilings, key=lambda ceiling: ceiling[1]):
        start = max(0.0, min(scale.at(per_s) / 100 * width, width - text_width(name)))
        line = next((k for k, end in enumerate(ends) if end + GAP <= start), len(ends))
        ends[line : line + 1] = [start + text_width(name)]
        found.append((line, start, name))
    return found
