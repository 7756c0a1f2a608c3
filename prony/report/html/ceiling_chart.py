"""Throughput and its ceilings: a row per server, its trials, and the limits that are known beforehand. Values
in, SVG out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from prony.report.html.plot import Series, data, to_svg
from prony.report.html.theme import BUDGET, INK, MUTED

STEP = 48
"""Height of a row: its name and its ceilings' names stand above its marks."""
LETTER_WIDTH = 6.2
"""Of the names' font, on average."""
LABEL_LETTER_WIDTH = 7.6
"""Of a server's name, which is larger."""


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
    height = STEP * len(rows)
    known = [v for row in rows for v in (*row.values, *(per_s for _, per_s in row.ceilings))]
    most = max([*known, *([offered_per_s] if offered_per_s else [])], default=1.0) * 1.04 or 1.0
    scale = alt.Scale(domain=[0, most], nice=False)
    axis = alt.Axis(title="requests per second", tickCount=5, labelExpr="format(datum.value, ',~r')")
    y_scale = alt.Scale(domain=[0, height], range=[0, height], nice=False)
    bars: list[dict[str, object]] = []
    marks: list[dict[str, object]] = []
    names: list[dict[str, object]] = []
    rules: list[dict[str, object]] = []
    told: list[dict[str, object]] = []
    for place, row in enumerate(rows):
        top, line = place * STEP, place * STEP + 33
        look = {"colour": row.series.colour.light, "shape": row.series.shape}
        names.append({"y": top + 12, "text": row.series.label})
        if row.middle is not None:
            bars.append({"x": 0, "x2": row.middle, "y": line - 6, "y2": line + 6, **look})
        marks += [{"x": value, "y": line, **look} for value in row.values]
        label_end = len(row.series.label) * LABEL_LETTER_WIDTH + 4
        for name, per_s in row.ceilings:
            rules.append({"x": per_s, "y": line - 12, "y2": line + 11})
            left = per_s / most * width + len(name) * LETTER_WIDTH > width
            at = per_s if left else max(per_s, label_end / width * most)
            told.append({"x": at, "y": top + 12, "text": name, "left": left})
    x = alt.X("x:Q", scale=scale, axis=axis)
    y = alt.Y("y:Q", scale=y_scale, axis=None)
    fill = alt.Fill("colour:N", scale=None)
    ink = alt.Chart(data(told))
    layers: list[alt.Chart] = []
    if offered_per_s is not None:
        offered = alt.Chart(data([{"x": offered_per_s}]))
        layers.append(offered.mark_rule(color=MUTED.light, strokeDash=[5, 4]).encode(x=x))
    layers += [
        alt.Chart(data(bars)).mark_rect(opacity=0.26).encode(x=x, x2="x2:Q", y=y, y2="y2:Q", fill=fill),
        alt.Chart(data(rules)).mark_rule(color=BUDGET.light, strokeWidth=2).encode(x=x, y=y, y2="y2:Q"),
        alt.Chart(data(marks))
        .mark_point(size=50, opacity=1, filled=True)
        .encode(x=x, y=y, fill=fill, shape=alt.Shape("shape:N", scale=None)),
        alt.Chart(data(names))
        .mark_text(align="left", baseline="middle", fontSize=13, color=INK.light)
        .encode(x=alt.value(0), y=y, text="text:N"),
        ink.transform_filter("!datum.left")
        .mark_text(align="left", baseline="middle", dx=3, color=BUDGET.light)
        .encode(x=x, y=y, text="text:N"),
        ink.transform_filter("datum.left")
        .mark_text(align="right", baseline="middle", dx=-3, color=BUDGET.light)
        .encode(x=x, y=y, text="text:N"),
    ]
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)
