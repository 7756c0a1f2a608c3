"""The small charts: throughput over one trial, strips of dots, pairs of marks. Values in, SVG out.

Must not know records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from prony.report.html.plot import Series, data, round_step, to_svg
from prony.report.html.theme import INK, MUTED, PAPER, SETTLE, SUSPECT, WINDOW


@dataclass(frozen=True, slots=True)
class Stretch:
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
class Pair:
    """One server's two kinds of value on one scale (published and measured, client and server)."""

    series: Series
    hollow: tuple[float, ...]
    solid: tuple[float, ...]


THOUSANDS = "datum.value >= 1000 ? format(datum.value / 1000, '~r') + 'k' : format(datum.value, '~r')"
PHASE_COLOURS = {"settle": SETTLE, "window": WINDOW}


def throughput(
    points: Sequence[tuple[float, float]],
    *,
    series: Series,
    phases: Sequence[Stretch],
    changes_s: Sequence[float],
    mark_s: float | None,
    until_s: float,
    most_per_s: float,
    key: str,
    title: str,
    width: int = 244,
    height: int = 120,
) -> str:
    """Completed requests per second over one trial: phases shaded, change points dashed, the mark as a
    triangle.
    """
    x_scale = alt.Scale(domain=[0, until_s], nice=False)
    y_scale = alt.Scale(domain=[0, most_per_s], nice=False)
    step = round_step(until_s / 4)
    ticks = [k * step for k in range(int(until_s / step) + 1)]
    x_axis = alt.Axis(values=ticks, grid=False, title=None, labelExpr="datum.value + ' s'", labelFlush=True)
    x = alt.X("t:Q", scale=x_scale, axis=x_axis)
    rise = round_step(most_per_s / 3)
    y = alt.Y(
        "rate:Q",
        scale=y_scale,
        axis=alt.Axis(
            title=None,
            values=[k * rise for k in range(int(most_per_s / rise) + 1)],
            labelExpr=THOUSANDS,
        ),
    )
    layers: list[Any] = []
    for phase in phases:
        colour = PHASE_COLOURS.get(phase.name)
        if colour is not None:
            area = data([{"t": phase.start_s, "end": min(phase.end_s, until_s)}])
            layers.append(
                alt.Chart(area)
                .mark_rect(color=colour.light)
                .encode(x=x, x2="end:Q", y=alt.value(0), y2=alt.value(height))
            )
    for at in changes_s:
        layers.append(
            alt.Chart(data([{"t": at}])).mark_rule(color=MUTED.light, strokeDash=[3, 3]).encode(x=x)
        )
    rows: list[dict[str, object]] = [{"t": t, "rate": rate} for t, rate in points]
    layers.append(
        alt.Chart(data(rows))
        .mark_line(color=series.colour.light, strokeWidth=1.75, strokeJoin="round", clip=True)
        .encode(x=x, y=y, order="t:Q")
    )
    if mark_s is not None and mark_s <= until_s:
        rate = min(points, key=lambda p: abs(p[0] - mark_s), default=(0.0, 0.0))[1]
        layers.append(
            alt.Chart(data([{"t": mark_s, "rate": rate}]))
            .mark_point(
                shape="triangle-down", filled=True, size=70, color=SUSPECT.light, opacity=1, yOffset=-9
            )
            .encode(x=x, y=y)
        )
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)


STEP = 28
"""Height of one row of a small chart."""


def strips(rows: Sequence[Dots], *, key: str, title: str, width: int = 210) -> str:
    """One figure: a row per server, a mark per trial, a bar from zero to the median, and the median."""
    height = STEP * len(rows)
    most = max([v for r in rows for v in r.values], default=1.0) or 1.0
    x_scale = alt.Scale(domain=[0, most * 1.03], nice=False)
    y_scale = alt.Scale(domain=[0, height], range=[0, height], nice=False)

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", scale=x_scale, axis=None)

    def y(field: str) -> Any:
        return alt.Y(f"{field}:Q", scale=y_scale, axis=None)

    layers: list[Any] = []
    for k, row in enumerate(rows):
        middle = k * STEP + STEP / 2
        colour = row.series.colour.light
        if row.middle is not None:
            bar = alt.Chart(data([{"zero": 0, "value": row.middle, "y": middle - 5, "y2": middle + 5}]))
            layers.append(
                bar.mark_rect(color=colour, opacity=0.26).encode(
                    x=x("zero"), x2="value:Q", y=y("y"), y2="y2:Q"
                )
            )
        dots = alt.Chart(data([{"value": v, "y": middle} for v in row.values]))
        layers.append(
            dots.mark_point(shape=row.series.shape, filled=True, size=44, opacity=1, color=colour).encode(
                x=x("value"), y=y("y")
            )
        )
        words = alt.Chart(data([{"text": row.words, "y": middle}]))
        layers.append(
            words.mark_text(align="right", baseline="middle", fontSize=13, color=INK.light).encode(
                x=alt.value(width + 66), y=y("y"), text="text:N"
            )
        )
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)


def dumbbells(
    rows: Sequence[Pair],
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
    y_scale = alt.Scale(domain=[0, height], range=[0, height], nice=False)
    x = alt.X("value:Q", scale=scale, axis=x_axis)
    y = alt.Y("y:Q", scale=y_scale, axis=None)
    layers: list[Any] = []
    if reference is not None:
        rule = alt.Chart(data([{"value": reference}]))
        layers.append(rule.mark_rule(color=MUTED.light, strokeDash=[4, 3]).encode(x=x))
    for k, row in enumerate(rows):
        middle = k * STEP + STEP / 2
        colour = row.series.colour.light
        if len(row.hollow) == 1 and len(row.solid) == 1:
            line = alt.Chart(data([{"value": row.hollow[0], "end": row.solid[0], "y": middle}]))
            layers.append(
                line.mark_rule(color=colour, strokeWidth=1.5, opacity=0.5).encode(x=x, x2="end:Q", y=y)
            )
        empty = alt.Chart(data([{"value": v, "y": middle} for v in row.hollow]))
        layers.append(
            empty.mark_point(
                shape=row.series.shape,
                size=62,
                filled=True,
                fill=PAPER.light,
                stroke=colour,
                strokeWidth=1.75,
                opacity=1,
            ).encode(x=x, y=y)
        )
        full = alt.Chart(data([{"value": v, "y": middle} for v in row.solid]))
        layers.append(
            full.mark_point(shape=row.series.shape, size=62, filled=True, color=colour, opacity=1).encode(
                x=x, y=y
            )
        )
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)
