"""The small charts: throughput over one trial, strips of dots, pairs of marks. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from prony.report.html.plot import Series, count_axis, data, seconds_axis, to_svg
from prony.report.html.theme import BUDGET, INK, MUTED, PAPER, SETTLE, WINDOW

FILL = alt.Fill("colour:N", scale=None)
SHAPE = alt.Shape("shape:N", scale=None)
"""Colour and shape are given with the data, not chosen by a scale: they are the server's, on every chart."""


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


MOST_POINTS = 360
"""A line needs no more points than this; longer runs are averaged into this many equal parts."""
WIDTH, HEIGHT = 244, 120
"""Of the throughput of one trial."""
STRIP_WIDTH = 210
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
    x = alt.X("t:Q", scale=alt.Scale(domain=[0, until_s], nice=False), axis=seconds_axis(until_s))
    y = alt.Y("rate:Q", scale=alt.Scale(domain=[0, most_per_s], nice=False), axis=count_axis(most_per_s))
    shades: list[dict[str, object]] = [
        {"t": p.start_s, "end": min(p.end_s, until_s), "colour": PHASE_COLOURS[p.name].light}
        for p in phases
        if p.name in PHASE_COLOURS
    ]
    shaded = alt.Chart(data(shades)).mark_rect()
    changes = alt.Chart(data([{"t": at} for at in changes_s])).mark_rule(color=MUTED.light, strokeDash=[3, 3])
    line = alt.Chart(data([{"t": t, "rate": rate} for t, rate in points])).mark_line(
        color=series.colour.light, strokeWidth=1.75, strokeJoin="round", clip=True
    )
    layers = [
        shaded.encode(x=x, x2="end:Q", y=alt.value(0), y2=alt.value(HEIGHT), fill=FILL),
        changes.encode(x=x),
        line.encode(x=x, y=y, order="t:Q"),
    ]
    if mark_s is not None and mark_s <= until_s:
        rate = min(points, key=lambda p: abs(p[0] - mark_s), default=(0.0, 0.0))[1]
        layers.append(
            alt.Chart(data([{"t": mark_s, "rate": rate}]))
            .mark_point(
                shape="triangle-down", filled=True, size=70, color=BUDGET.light, opacity=1, yOffset=-9
            )
            .encode(x=x, y=y)
        )
    return to_svg(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT), key=key, title=title)


STEP = 28
"""Height of one row of a small chart."""


def strips(rows: Sequence[Dots], *, key: str, title: str) -> str:
    """One figure: a row per server, a mark per trial, a bar from zero to the median, and the median."""
    height = STEP * len(rows)
    most = max([v for r in rows for v in r.values], default=1.0) or 1.0
    x_scale = alt.Scale(domain=[0, most * 1.03], nice=False)
    bars: list[dict[str, object]] = []
    marks: list[dict[str, object]] = []
    words: list[dict[str, object]] = []
    for k, row in enumerate(rows):
        middle = k * STEP + STEP / 2
        look = {"colour": row.series.colour.light, "shape": row.series.shape}
        if row.middle is not None:
            bars.append({"zero": 0, "value": row.middle, "y": middle - 5, "y2": middle + 5, **look})
        marks += [{"value": v, "y": middle, **look} for v in row.values]
        words.append({"text": row.words, "y": middle})

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", scale=x_scale, axis=None)

    y = alt.Y("y:Q", scale=_rows(height), axis=None)
    layers = [
        alt.Chart(data(bars))
        .mark_rect(opacity=0.26)
        .encode(x=x("zero"), x2="value:Q", y=y, y2="y2:Q", fill=FILL),
        alt.Chart(data(marks))
        .mark_point(size=44, opacity=1, filled=True)
        .encode(x=x("value"), y=y, fill=FILL, shape=SHAPE),
        alt.Chart(data(words))
        .mark_text(align="right", baseline="middle", fontSize=13, color=INK.light)
        .encode(x=alt.value(STRIP_WIDTH + 66), y=y, text="text:N"),
    ]
    return to_svg(alt.layer(*layers).properties(width=STRIP_WIDTH, height=height), key=key, title=title)


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
    height = STEP * len(rows)
    scale = alt.Scale(domain=list(domain), nice=False)
    x_axis = alt.Axis(title=axis, tickCount=4, format=tick_format, labelFlush=True)
    x = alt.X("value:Q", scale=scale, axis=x_axis)
    y = alt.Y("y:Q", scale=_rows(height), axis=None)
    lines: list[dict[str, object]] = []
    marks: list[dict[str, object]] = []
    for k, row in enumerate(rows):
        middle = k * STEP + STEP / 2
        colour, shape = row.series.colour.light, row.series.shape
        if len(row.hollow) == 1 and len(row.solid) == 1:
            lines.append({"value": row.hollow[0], "end": row.solid[0], "y": middle, "colour": colour})
        for values, inside in ((row.hollow, PAPER.light), (row.solid, colour)):
            marks += [
                {"value": v, "y": middle, "colour": colour, "inside": inside, "shape": shape} for v in values
            ]
    layers: list[Any] = []
    if reference is not None:
        rule = alt.Chart(data([{"value": reference}]))
        layers.append(rule.mark_rule(color=MUTED.light, strokeDash=[4, 3]).encode(x=x))
    layers.append(
        alt.Chart(data(lines))
        .mark_rule(strokeWidth=1.5, opacity=0.5)
        .encode(x=x, x2="end:Q", y=y, stroke=alt.Stroke("colour:N", scale=None))
    )
    layers.append(
        alt.Chart(data(marks))
        .mark_point(size=58, strokeWidth=1.75, opacity=1)
        .encode(
            x=x,
            y=y,
            shape=SHAPE,
            fill=alt.Fill("inside:N", scale=None),
            stroke=alt.Stroke("colour:N", scale=None),
        )
    )
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)


def _rows(height: float) -> alt.Scale:
    """Pixels as they are: rows are placed by hand."""
    return alt.Scale(domain=[0, height], range=[0, height], nice=False)
