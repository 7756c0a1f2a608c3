"""One figure over time or over commits: a mark per trial, the levels, where the level or the setting changed.
Values in, SVG out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from prony.report.html.plot import Series, data, to_svg
from prony.report.html.theme import FINE, INK, MUTED, NOT_CONFORMING, PAPER

DAY_S = 86_400.0
STEPS_S = (
    3600.0,
    6 * 3600.0,
    DAY_S,
    2 * DAY_S,
    7 * DAY_S,
    14 * DAY_S,
    30.5 * DAY_S,
    91.3 * DAY_S,
    365.25 * DAY_S,
)
MOST_TICKS = 7
MOST_COMMIT_TICKS = 12
NO_FIGURE = "cross"
"""The mark of a trial whose figure is not printed; it stands on the lower edge."""
_SYMBOL = re.compile(r"<path transform=\"translate\([^)]*\)\" d=")

Kind = Literal["better", "worse", "changed", "break"]
_RULE = {"better": FINE, "worse": NOT_CONFORMING, "changed": MUTED, "break": INK}


@dataclass(frozen=True, slots=True)
class TrendMark:
    """One trial. `y` None: no figure is printed."""

    x: float
    y: float | None
    series: Series
    counts: bool


@dataclass(frozen=True, slots=True)
class TrendLevel:
    """A level, from the first of its trials to the last."""

    x: float
    x2: float
    y: float
    series: Series


@dataclass(frozen=True, slots=True)
class TrendRule:
    """An upright line: a change of the level, or a break."""

    x: float
    kind: Kind


def trend_chart(
    marks: Sequence[TrendMark],
    levels: Sequence[TrendLevel],
    rules: Sequence[TrendRule],
    *,
    commits: Sequence[str] = (),
    unit: str,
    width: int,
    height: int,
    key: str,
    title: str,
) -> str:
    """`x` is in seconds since 1970, or with `commits` a place among them. A filled mark took part in the
    search, a hollow one did not. The axis of the figure does not begin at zero. Each mark has its place among
    `marks` as `data-row`.
    """
    values = [one.y for one in marks if one.y is not None] + [one.y for one in levels]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = (high - low) * 0.12 or abs(high) * 0.05 or 1.0
    low, high = low - room, high + room
    first, last = min(one.x for one in marks), max(one.x for one in marks)
    beside = (last - first) * 0.03 or (0.5 if commits else DAY_S / 4)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[first - beside, last + beside], nice=False),
        axis=_commit_axis(commits) if commits else time_axis(first, last),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[low, high], nice=False, zero=False),
        axis=alt.Axis(
            title=unit,
            titleAngle=0,
            titleAlign="left",
            titleAnchor="start",
            titleX=0,
            titleY=-14,
            tickCount=5,
            labelExpr="format(datum.value, ',~r')",
        ),
    )
    upright: list[dict[str, object]] = [{"x": one.x, "colour": _RULE[one.kind].light} for one in rules]
    flat: list[dict[str, object]] = [
        {"x": one.x, "x2": one.x2, "y": one.y, "colour": one.series.colour.light} for one in levels
    ]
    dots: list[dict[str, object]] = [_dot(one, low) for one in marks]
    stroke = alt.Stroke("colour:N", scale=None)
    breaks = [one for one, rule in zip(upright, rules, strict=True) if rule.kind == "break"]
    changed = [one for one, rule in zip(upright, rules, strict=True) if rule.kind != "break"]
    layers: list[Any] = [
        alt.Chart(data(breaks)).mark_rule(strokeWidth=1, strokeDash=[2, 4]).encode(x=x, stroke=stroke),
        alt.Chart(data(changed)).mark_rule(strokeWidth=1.5).encode(x=x, stroke=stroke),
        alt.Chart(data(flat))
        .mark_rule(strokeWidth=2, opacity=0.75)
        .encode(x=x, x2="x2:Q", y=y, stroke=stroke),
        alt.Chart(data(dots))
        .mark_point(size=42, strokeWidth=1.4, opacity=1)
        .encode(
            x=x,
            y=y,
            shape=alt.Shape("shape:N", scale=None),
            fill=alt.Fill("inside:N", scale=None),
            stroke=stroke,
        ),
    ]
    svg = to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)
    return numbered(svg, len(marks))


def _dot(one: TrendMark, floor: float) -> dict[str, object]:
    if one.y is None:
        return {
            "x": one.x,
            "y": floor,
            "shape": NO_FIGURE,
            "inside": NOT_CONFORMING.light,
            "colour": NOT_CONFORMING.light,
        }
    colour = one.series.colour.light
    inside = colour if one.counts else PAPER.light
    return {"x": one.x, "y": one.y, "shape": one.series.shape, "inside": inside, "colour": colour}


def numbered(svg: str, marks: int) -> str:
    """With the place of each mark as `data-row`; unchanged where the drawing has another number of them."""
    if len(_SYMBOL.findall(svg)) != marks:
        return svg
    places = iter(range(marks))
    return _SYMBOL.sub(lambda found: found[0].replace("<path ", f'<path data-row="{next(places)}" ', 1), svg)


def time_axis(first_s: float, last_s: float) -> alt.Axis:
    """Days (or hours, where there are few) in UTC, at most MOST_TICKS of them."""
    span = max(last_s - first_s, 1.0)
    step = next((one for one in STEPS_S if span / one <= MOST_TICKS), span / MOST_TICKS)
    begin = first_s - first_s % (step if step < DAY_S else DAY_S) + (0 if first_s % DAY_S == 0 else step)
    ticks: list[float] = []
    at = begin
    while at <= last_s and len(ticks) < 2 * MOST_TICKS:
        ticks.append(at)
        at += step
    shown = "%-d %b %H:%M" if step < DAY_S else "%-d %b %Y" if span > 300 * DAY_S else "%-d %b"
    return alt.Axis(
        values=ticks or [first_s],
        grid=False,
        title=None,
        labelExpr=f"utcFormat(datum.value * 1000, '{shown}')",
        labelFlush=True,
    )


def _commit_axis(commits: Sequence[str]) -> alt.Axis:
    each = max(1, -(-len(commits) // MOST_COMMIT_TICKS))
    places = list(range(0, len(commits), each))
    known = {place: re.sub(r"[^0-9A-Za-z._-]", "", commits[place])[:12] for place in places}
    chosen = "".join(f"datum.value == {place} ? '{name}' : " for place, name in known.items())
    return alt.Axis(values=places, grid=False, title=None, labelExpr=f"{chosen}''", labelAngle=0)
