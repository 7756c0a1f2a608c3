"""The page of a sweep or of a search for a capacity: one chart, one table. Must not know where it goes."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
from markupsafe import Markup

from prony.compare.capacity import Outcome
from prony.experiment.capacity import Capacity
from prony.experiment.sweep import Sweep, users_of
from prony.report.html.filled import filled
from prony.report.html.plot import data, decades, to_svg
from prony.report.html.theme import INVALID, MUTED, SUSPECT, VALID, accent
from prony.report.scaling_words import Shown

WIDTH, HEIGHT = 760, 320
CURVE_POINTS = 120
OUTCOMES = {
    Outcome.MET: (VALID.light, "circle"),
    Outcome.MISSED: (INVALID.light, "cross"),
    Outcome.CLIENT: (SUSPECT.light, "triangle-up"),
    Outcome.UNUSABLE: (MUTED.light, "diamond"),
}
"""Colour and mark, so that neither alone carries the meaning."""


def sweep_page(sweep: Sweep, shown: Shown) -> str:
    """The page as text."""
    return _page(shown, _sweep_chart(sweep), "A dot is a trial that counts; the line is the fitted law.")


def capacity_page(capacity: Capacity, shown: Shown) -> str:
    """The page as text."""
    note = (
        "A circle met the objective, a cross missed it, a triangle could not be offered by the client, a "
        "diamond could not be used. The dashed line is the objective."
    )
    return _page(shown, _capacity_chart(capacity), note)


def _page(shown: Shown, chart: str | None, note: str) -> str:
    return filled("scaling.html.j2", shown=shown, chart=None if chart is None else Markup(chart), note=note)


def _sweep_chart(sweep: Sweep) -> str | None:
    dots: list[dict[str, object]] = [
        {"users": users_of(t), "rate": t.figures["requests_per_s"]}
        for t in sweep.trials
        if t.counts and "requests_per_s" in t.figures
    ]
    if not dots:
        return None
    numbers = [float(u) for u in sweep.users]
    x = _log_x("users", "users", numbers)
    y = alt.Y("rate:Q", scale=alt.Scale(domainMin=0, nice=True), axis=_y_axis("requests per second"))
    colour = accent(0).light
    layers = [
        alt.Chart(data(dots)).mark_point(size=60, filled=True, opacity=1, color=colour).encode(x=x, y=y)
    ]
    if sweep.law is not None and len(numbers) > 1:
        curve: list[dict[str, object]] = [
            {"users": float(n), "rate": sweep.law.per_s(float(n))}
            for n in np.geomspace(numbers[0], numbers[-1], CURVE_POINTS)
        ]
        layers.insert(0, alt.Chart(data(curve)).mark_line(strokeWidth=2, color=colour).encode(x=x, y=y))
    return to_svg(
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT),
        key="sweep",
        title=f"{sweep.target}: requests per second by number of users",
    )


def _capacity_chart(capacity: Capacity) -> str | None:
    dots: list[dict[str, object]] = [
        {
            "rate": one.rate_per_s,
            "share": max(one.pressure * 100, 0.01),
            "colour": OUTCOMES[one.outcome][0],
            "shape": OUTCOMES[one.outcome][1],
        }
        for one in capacity.tried
        if one.pressure is not None
    ]
    if not dots:
        return None
    shares = [one.pressure * 100 for one in capacity.tried if one.pressure] + [100.0]
    levels = decades(shares)
    x = _log_x("rate", "offered, requests per second", [one.rate_per_s for one in capacity.tried])
    y = alt.Y(
        "share:Q",
        scale=alt.Scale(type="log", domain=[levels[0], levels[-1]], nice=False),
        axis=_y_axis("measured ÷ allowed, %", levels),
    )
    line: list[dict[str, object]] = [{"share": 100.0}]
    layers = [
        alt.Chart(data(line)).mark_rule(strokeDash=[5, 4], color=MUTED.light).encode(y=y),
        alt.Chart(data(dots))
        .mark_point(size=70, filled=True, opacity=1)
        .encode(x=x, y=y, fill=alt.Fill("colour:N", scale=None), shape=alt.Shape("shape:N", scale=None)),
    ]
    return to_svg(
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT),
        key="capacity",
        title=f"{capacity.target}: how much of what is allowed was used, by offered rate",
    )


def _log_x(name: str, title: str, values: Sequence[float]) -> alt.X:
    """A log axis with room at both ends, so that no dot is cut."""
    low, high = min(values) / 1.15, max(values) * 1.15
    ticks = [t for t in decades([low, high]) if low <= t <= high]
    return alt.X(
        f"{name}:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title=title, values=ticks, labelExpr="format(datum.value, ',')"),
    )


def _y_axis(title: str, values: Sequence[float] | None = None) -> alt.Axis:
    return alt.Axis(
        title=title,
        titleAngle=0,
        titleAlign="left",
        titleAnchor="start",
        titleX=0,
        titleY=-14,
        labelExpr="format(datum.value, ',')",
        values=alt.Undefined if values is None else list(values),
        tickCount=6 if values is None else alt.Undefined,
    )
