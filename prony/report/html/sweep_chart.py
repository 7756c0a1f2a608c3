"""The sweep chart: a figure over the number of users, a line per server. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.report.html.plot import Plot, Series, linear_y, log_x, log_y


@dataclass(frozen=True, slots=True)
class SweepLine:
    """One server: (users, value), ascending; `dashed` for what others published."""

    series: Series
    points: tuple[tuple[int, float], ...]
    dashed: bool = False
    joined: bool = True
    """Whether a line joins the points; otherwise they are trials, and the curve is what was fitted."""
    curve: tuple[tuple[float, float], ...] = ()


def sweep(
    lines: Sequence[SweepLine],
    *,
    axis: str,
    logarithmic: bool,
    width: int,
    height: int,
    key: str,
    title: str,
) -> str:
    """Users on a log axis; published lines are dashed and have hollow marks."""
    users = sorted({float(n) for line in lines for n, _ in line.points})
    values = [value for line in lines for _, value in (*line.points, *line.curve) if value > 0] or [1.0]
    y = log_y(axis, values) if logarithmic else linear_y(axis, values)
    plot = Plot(log_x("users", users, users), y, width=width, height=height)
    ordered = sorted(lines, key=lambda line: not line.dashed)
    shown = [[(n, v) for n, v in line.points if v > 0 or not logarithmic] for line in ordered]
    for line, points in zip(ordered, shown, strict=True):
        if line.curve:
            plot.line(line.curve, line.series.colour, 2)
        if line.joined and line.dashed:
            plot.line(points, line.series.colour, 1.5, dash="4 4")
        elif line.joined:
            plot.line(points, line.series.colour, 2.5)
    for line, points in zip(ordered, shown, strict=True):
        fill, stroke = (None, line.series.colour) if line.dashed else (line.series.colour, None)
        for n, value in points:
            plot.mark(n, value, line.series.shape, fill, stroke)
    return plot.svg(key=key, title=title)
