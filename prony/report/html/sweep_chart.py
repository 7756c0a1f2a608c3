"""The sweep chart: a figure over the number of users, a line per server. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from prony.report.html.plot import Series, data, decades, log_x, to_svg, y_figure


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
    values = [value for line in lines for _, value in line.points if value > 0] or [1.0]
    levels = decades(values) if logarithmic else []
    rows: list[dict[str, object]] = [
        {
            "users": n,
            "value": value,
            "colour": line.series.colour.light,
            "shape": line.series.shape,
            "line": number,
            "dashed": line.dashed,
            "joined": line.joined,
        }
        for number, line in enumerate(lines)
        for n, value in line.points
        if value > 0 or not logarithmic
    ]
    x = log_x("users", "users", users, _apart(users, most=max(3, width // 55)))
    y = y_figure("value", axis, levels)
    base = alt.Chart(data(rows))
    colour = alt.Stroke("colour:N", scale=None)
    shape = alt.Shape("shape:N", scale=None)
    fill = alt.Fill("colour:N", scale=None)

    def drawn(dashed: bool) -> list[alt.Chart]:
        chosen = base.transform_filter("datum.dashed" if dashed else "!datum.dashed")
        line = (
            chosen.transform_filter("datum.joined")
            .mark_line(
                strokeWidth=1.5 if dashed else 2.5,
                strokeDash=[4, 4] if dashed else [1, 0],
                strokeJoin="round",
            )
            .encode(x=x, y=y, order="users:Q", detail="line:N", stroke=colour)
        )
        if dashed:
            marks = chosen.mark_point(size=45, opacity=1, filled=False, strokeWidth=1.5)
            return [line, marks.encode(x=x, y=y, stroke=colour, shape=shape)]
        marks = chosen.mark_point(size=55, opacity=1, filled=True)
        return [line, marks.encode(x=x, y=y, fill=fill, shape=shape)]

    curves: list[dict[str, object]] = [
        {"users": n, "value": value, "colour": line.series.colour.light, "line": number}
        for number, line in enumerate(lines)
        for n, value in line.curve
    ]
    layers = (drawn(True) if any(line.dashed for line in lines) else []) + drawn(False)
    if curves:
        fitted = alt.Chart(data(curves)).mark_line(strokeWidth=2)
        layers.insert(0, fitted.encode(x=x, y=y, order="users:Q", detail="line:N", stroke=colour))
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)


def _apart(users: Sequence[float], *, most: int) -> list[float]:
    """This many ticks at most, the ends among them."""
    if len(users) <= most:
        return list(users)
    step = (len(users) - 1) / (most - 1)
    return sorted({users[round(place * step)] for place in range(most)})
