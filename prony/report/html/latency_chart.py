"""The chart of times by percentile. Values in, SVG out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prony.report.html.plot import Axis, Plot, Series, linear_y, log_y
from prony.report.html.scale import Scale


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
    ticks = [(nines(q), f"{name} %") for q, name in NINES if nines(q) <= longest + 1e-9]
    times = [ms for c in curves for _, ms in c.points if ms > 0] or [1.0]
    y = log_y("time, ms", times) if max(times) / min(times) > 8 else linear_y("time, ms", times, ticks=6)
    x = Axis(
        Scale(0, longest + 0.05),
        ticks or [(nines(0.5), "50 %")],
        "share of requests at most this slow",
        grid=True,
        even=False,
    )
    plot = Plot(x, y, width=width, height=height)
    main = [curve for curve in curves if curve.main]
    for curve in (*(c for c in curves if not c.main), *main):
        points = [(nines(q), ms) for q, ms in curve.points if ms > 0]
        look = (2.5, 1.0) if curve.main else (1, 0.45)
        plot.line(points, curve.series.colour, look[0], opacity=look[1])
    for curve in main:
        for at, _ in x.ticks:
            if at <= nines(curve.points[-1][0]) + 1e-9:
                plot.mark(at, _at(curve.points, at), curve.series.shape, curve.series.colour)
    return plot.svg(key=key, title=title)


def _at(points: Sequence[tuple[float, float]], wanted: float) -> float:
    """The time at this many nines: of the nearest point of the curve."""
    return min(points, key=lambda p: abs(nines(p[0]) - wanted))[1]
