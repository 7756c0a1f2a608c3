"""The small charts: throughput over one trial, strips of dots, pairs of marks. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.report.html.plot import (
    GAP,
    PAD,
    Axis,
    Plot,
    Series,
    count_axis,
    seconds_axis,
    text_width,
)
from prony.report.html.scale import Scale, round_ticks
from prony.report.html.theme import BUDGET, MUTED, PAPER, SETTLE, WINDOW


@dataclass(frozen=True, slots=True)
class ChartPhase:
    """A shaded phase of a run."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Dots:
    """One server's values of one figure, one per trial."""

    series: Series
    values: tuple[float, ...]
    middle: float | None
    words: str
    """The median as it is printed."""


@dataclass(frozen=True, slots=True)
class PairedSeries:
    """One server's two kinds of value on one scale (published and measured, client and server)."""

    series: Series
    hollow: tuple[float, ...]
    solid: tuple[float, ...]


WIDTH, HEIGHT = 284, 120
MOST_POINTS = 360
"""A line needs no more points than this; longer runs are averaged into this many equal parts."""
PHASE_COLOURS = {"settle": SETTLE, "window": WINDOW}


def throughput(
    points: Sequence[tuple[float, float]],
    *,
    series: Series,
    phases: Sequence[ChartPhase],
    changes_s: Sequence[float],
    mark_s: float | None,
    until_s: float,
    most_per_s: float,
    key: str,
    title: str,
) -> str:
    """Completed requests per second over one trial: phases shaded, change points dashed, the mark as a
    triangle.
    """
    plot = Plot(seconds_axis(until_s), count_axis(most_per_s), width=WIDTH, height=HEIGHT)
    for phase in phases:
        if phase.name in PHASE_COLOURS:
            plot.rect((phase.start_s, phase.end_s), (0, most_per_s), PHASE_COLOURS[phase.name])
    for at in changes_s:
        plot.upright(at, MUTED, dash="3 3")
    plot.line(points, series.colour, 1.75)
    if mark_s is not None and mark_s <= until_s:
        rate = min(points, key=lambda p: abs(p[0] - mark_s), default=(0.0, 0.0))[1]
        plot.mark(mark_s, rate, "triangle-down", BUDGET, size=1, above=9)
    return plot.svg(key=key, title=title)


STEP = 28
"""Height of one row of a small chart."""


def strips(rows: Sequence[Dots], *, key: str, title: str) -> str:
    """One figure: a row per server, a mark per trial, a bar from zero to the median, and the median."""
    most = max([v for r in rows for v in r.values], default=1.0) or 1.0
    words = max(text_width(row.words, 13) for row in rows) + GAP
    scale = Axis(Scale(0, most * 1.03))
    plot = Plot(scale, None, width=WIDTH, height=STEP * len(rows), right=words + PAD)
    for k, row in enumerate(rows):
        middle, colour = (k + 0.5) * STEP, row.series.colour
        if row.middle is not None:
            plot.rect((0, row.middle), (middle - 5, middle + 5), colour, opacity=0.26)
        for value in row.values:
            plot.mark(value, middle, row.series.shape, colour, size=0.85)
        plot.text(WIDTH, middle, row.words, end=True)
    return plot.svg(key=key, title=title)


def dumbbells(
    rows: Sequence[PairedSeries],
    *,
    domain: tuple[float, float],
    reference: float | None,
    tick_format: str,
    axis: str | None,
    key: str,
    title: str,
    width: int,
) -> str:
    """Rows of hollow and solid marks: two kinds of value on one scale, how far apart and in which order."""
    scale = Scale(*domain)
    ticks = [(t, format(t, tick_format)) for t in round_ticks(scale, 6)]
    plot = Plot(Axis(scale, ticks, axis or "", grid=True), None, width=width, height=STEP * len(rows))
    if reference is not None:
        plot.upright(reference, MUTED, dash="4 3")
    for k, row in enumerate(rows):
        middle, colour, shape = (k + 0.5) * STEP, row.series.colour, row.series.shape
        if len(row.hollow) == 1 and len(row.solid) == 1:
            plot.line([(row.hollow[0], middle), (row.solid[0], middle)], colour, 1.5, opacity=0.5)
        for values, inside in ((row.hollow, PAPER), (row.solid, colour)):
            for value in values:
                plot.mark(value, middle, shape, inside, colour)
    return plot.svg(key=key, title=title)
