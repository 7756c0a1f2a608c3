"""The two large charts: ratio intervals and service time by percentile. Values in, SVG out.

Must not know records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from prony.report.html.plot import Series, data, decades, to_svg, y_figure
from prony.report.html.theme import BAND, INK, MUTED, PAPER, RULE


@dataclass(frozen=True, slots=True)
class RatioRow:
    """One interval of the forest plot."""

    label: str
    ratio: float
    low: float
    high: float
    words: str
    conclusive: bool


@dataclass(frozen=True, slots=True)
class Curve:
    """One trial's latency by percentile: (share below, milliseconds), ascending."""

    series: Series
    points: tuple[tuple[float, float], ...]
    main: bool
    """True for the median trial of its server."""


def _ratio_ticks(low: float, high: float, most: int) -> list[float]:
    """Round ratios between the borders, at most this many: a fine ladder when they are near to one."""
    ladders: tuple[list[float], ...] = (
        [0.9 + 0.01 * k for k in range(21)],
        [0.8 + 0.02 * k for k in range(21)],
        [0.75 + 0.05 * k for k in range(16)],
        [0.5 + 0.1 * k for k in range(16)],
        [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4],
        [0.1, 0.2, 0.5, 1, 2, 5, 10],
        [10.0**k for k in range(-9, 10)],
    )
    inside: list[float] = [1.0]
    for ladder in ladders:
        inside = [t for t in ladder if low <= t <= high]
        if ladder[0] <= low and ladder[-1] >= high and len(inside) <= most:
            break
    return [round(t, 9) for t in inside]


NARROW_BELOW = 500
"""Narrower than this a row is three lines: label, interval, words."""
WORDS_WIDTH = 215
"""Room at the right for the words, where there is any."""
LETTER_WIDTH = 6.7
"""Of the row labels' font, on average."""
MOST_LABEL_WIDTH = 300
"""Wider labels stand above their interval instead of at its left."""


def forest(
    rows: Sequence[RatioRow], *, band: tuple[float, float], axis: str, width: int, key: str, title: str
) -> str:
    """Ratio intervals on a log axis, one row each, the practical band shaded."""
    low = min([band[0], *(r.low for r in rows)]) / 1.02
    high = max([band[1], *(r.high for r in rows)]) * 1.02
    narrow = width < NARROW_BELOW
    label_width = max(len(r.label) for r in rows) * LETTER_WIDTH + 14
    above = narrow or label_width > MOST_LABEL_WIDTH
    step = 72 if narrow else 52 if above else 34
    line_at = 31 if above else step / 2
    left = 0 if above else label_width
    plot = width - left - (0 if narrow else WORDS_WIDTH)
    height = step * len(rows)
    values: list[dict[str, object]] = [
        {
            "y": k * step + line_at,
            "label_y": k * step + (12 if above else line_at),
            "words_y": k * step + (50 if narrow else line_at),
            "label": r.label,
            "words": r.words,
            "ratio": r.ratio,
            "low": r.low,
            "high": r.high,
            "conclusive": r.conclusive,
        }
        for k, r in enumerate(rows)
    ]
    y_scale = alt.Scale(domain=[0, height], range=[0, height], nice=False)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x_axis = alt.Axis(
        values=_ratio_ticks(low, high, 5 if plot < NARROW_BELOW else 7),
        title=axis,
        grid=False,
        ticks=True,
        tickColor=RULE.light,
        labelExpr="format(datum.value, '~r') + '×'",
    )
    x = alt.X("ratio:Q", scale=scale, axis=x_axis)

    def y(field: str) -> Any:
        return alt.Y(f"{field}:Q", scale=y_scale, axis=None)

    base = alt.Chart(data(values))
    shaded = alt.Chart(data([{"low": band[0], "high": band[1]}])).mark_rect(color=BAND.light)
    one = alt.Chart(data([{"ratio": 1}])).mark_rule(color=MUTED.light, strokeWidth=1)
    interval = base.mark_rule(strokeWidth=3, color=INK.light, strokeCap="round")
    hollow = base.transform_filter("!datum.conclusive").mark_point(
        filled=True, size=95, fill=PAPER.light, stroke=INK.light, strokeWidth=2, opacity=1
    )
    solid = base.transform_filter("datum.conclusive").mark_point(
        filled=True, size=95, color=INK.light, opacity=1
    )
    from_low = alt.X("low:Q", scale=scale, axis=x_axis)
    layers = [
        shaded.encode(x=from_low, x2="high:Q", y=alt.value(0), y2=alt.value(height)),
        one.encode(x=x),
        interval.encode(x=from_low, x2="high:Q", y=y("y")),
        hollow.encode(x=x, y=y("y")),
        solid.encode(x=x, y=y("y")),
    ]
    label_place = {"x": alt.value(-left), "y": y("label_y"), "text": "label:N"}
    words_place = {
        "x": alt.value(0 if narrow else plot + WORDS_WIDTH),
        "y": y("words_y"),
        "text": "words:N",
    }
    side = "left" if narrow else "right"
    if above:
        # Lines run behind these labels: a rim in the colour of the paper keeps them legible.
        layers.append(_text(base, "left", PAPER.light, rim=True).encode(**label_place))
    if narrow:
        layers.append(_text(base, side, PAPER.light, rim=True).encode(**words_place))
    layers.append(_text(base, "left", INK.light).encode(**label_place))
    layers.append(_text(base, side, MUTED.light).encode(**words_place))
    return to_svg(alt.layer(*layers).properties(width=plot, height=height), key=key, title=title)


def _text(base: Any, align: str, colour: str, *, rim: bool = False) -> Any:
    outline = {"stroke": colour, "strokeWidth": 5, "strokeJoin": "round"} if rim else {}
    return base.mark_text(align=align, baseline="middle", fontSize=13, color=colour, **outline)


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
