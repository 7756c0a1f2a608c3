"""The chart of times by percentile. Values in, SVG out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from prony.report.html.plot import Series, data, decades, to_svg, y_figure


@dataclass(frozen=True, slots=True)
class Curve:
    """One trial's latency by percentile: (share below, milliseconds), ascending."""

    series: Series
    points: tuple[tuple[float, float], ...]
    main: bool
    """True for the median trial of its server."""


NINES = ((0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (0.99999, "99.999"))


def nines(share: float) -> float:
    """A share below as its number of nines: 0.9 -> 1, 0.99 -> 2, 0.999 -> 3."""
    return -math.log10(max(1 - share, 1e-9))


def latency(curves: Sequence[Curve], *, width: int, height: int, key: str, title: str) -> str:
    """Service time by percentile: the median trial of each server thick, every other trial thin."""
    longest = max(nines(c.points[-1][0]) for c in curves)
    ticks = [(nines(q), label) for q, label in NINES if nines(q) <= longest + 1e-9] or [(nines(0.5), "50")]
    names = " : ".join(f"abs(datum.value - {at:.6f}) < 0.001 ? '{label} %'" for at, label in ticks)
    times = [ms for c in curves for _, ms in c.points if ms > 0] or [1.0]
    levels = decades(times) if max(times) / min(times) > 8 else None
    x = alt.X(
        "nines:Q",
        scale=alt.Scale(domain=[0, longest + 0.05], nice=False),
        axis=alt.Axis(
            values=[at for at, _ in ticks],
            labelExpr=f"{names} : ''",
            title="share of requests at most this slow",
        ),
    )
    y = y_figure("ms", "time, ms", levels, ticks=6)
    thin: list[dict[str, object]] = []
    thick: list[dict[str, object]] = []
    marks: list[dict[str, object]] = []
    for number, curve in enumerate(curves):
        look = {"colour": curve.series.colour.light, "shape": curve.series.shape, "trial": number}
        points = [{"nines": nines(q), "ms": ms, **look} for q, ms in curve.points if ms > 0]
        (thick if curve.main else thin).extend(points)
        if curve.main:
            end = nines(curve.points[-1][0]) + 1e-9
            marks += [{"nines": at, "ms": _at(curve.points, at), **look} for at, _ in ticks if at <= end]
    stroke = alt.Stroke("colour:N", scale=None)

    def lines(rows: list[dict[str, object]], width: float, opacity: float) -> Any:
        drawn = alt.Chart(data(rows)).mark_line(
            strokeWidth=width, strokeOpacity=opacity, strokeJoin="round", clip=True
        )
        return drawn.encode(x=x, y=y, order="nines:Q", detail="trial:N", stroke=stroke)

    dots = alt.Chart(data(marks)).mark_point(size=55, opacity=1, filled=True)
    fill = alt.Fill("colour:N", scale=None)
    layers = [
        lines(thin, 1, 0.45),
        lines(thick, 2.5, 1),
        dots.encode(x=x, y=y, fill=fill, shape=alt.Shape("shape:N", scale=None)),
    ]
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)


def _at(points: Sequence[tuple[float, float]], wanted: float) -> float:
    """The time at this many nines: of the nearest point of the curve."""
    return min(points, key=lambda p: abs(nines(p[0]) - wanted))[1]
