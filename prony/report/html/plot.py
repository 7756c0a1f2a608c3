"""What all charts share: fonts, axes, data, and how a chart becomes SVG.

Altair and vl-convert are heavy: this module is imported only when a page is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from prony.report.html.scale import round_step
from prony.report.html.theme import MUTED, RULE, Colour, tidy

FONT = "Helvetica, Arial, sans-serif"
"""Only for measuring text while laying out; the page's own font is set by its style sheet."""

THOUSANDS = "datum.value >= 1000 ? format(datum.value / 1000, '~r') + 'k' : format(datum.value, '~r')"
TIME_UNITS = (("h", 3600), ("min", 60), ("s", 1))
MOST_OF_A_UNIT = 3
"""An axis of at least this many minutes (hours) counts in minutes (hours)."""
VALIDATE = False
"""Whether Altair validates the finished chart."""


@dataclass(frozen=True, slots=True)
class Series:
    """One server's mark: accent and shape."""

    label: str
    colour: Colour
    shape: str


def to_svg(chart: Any, *, key: str, title: str) -> str:
    chart = (
        chart.configure(font=FONT, background="transparent", padding=2, aria=False)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED.light,
            titleColor=MUTED.light,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
            gridColor=RULE.light,
            domain=False,
            ticks=False,
            labelPadding=6,
        )
        .configure_text(fontSize=12)
    )
    # Altair checks every node against its schema, which takes longer than drawing; the tests check instead.
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=VALIDATE), allowed_base_urls=[])
    return tidy(svg, key=key, title=title)


def data(rows: Sequence[dict[str, object]]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))


def log_x(name: str, title: str, values: Sequence[float], ticks: Sequence[float] | None = None) -> alt.X:
    """A log axis with room at both ends, so that no mark is cut; ticks at 1, 2, 5 per decade if not given."""
    low, high = min(values) / 1.15, max(values) * 1.15
    chosen = [tick for tick in decades([low, high]) if low <= tick <= high] if ticks is None else list(ticks)
    return alt.X(
        f"{name}:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=chosen, title=title, grid=False, labelExpr="format(datum.value, ',')"),
    )


def y_figure(name: str, title: str, levels: Sequence[float] | None = None, ticks: int = 5) -> alt.Y:
    """A figure upwards, its title above the axis: from zero, or on a log axis with these levels."""
    linear = alt.Scale(domainMin=0, nice=True)
    scale = alt.Scale(type="log", domain=[levels[0], levels[-1]], nice=False) if levels else linear
    return alt.Y(
        f"{name}:Q",
        scale=scale,
        axis=alt.Axis(
            title=title,
            titleAngle=0,
            titleAlign="left",
            titleAnchor="start",
            titleX=0,
            titleY=-14,
            labelExpr="format(datum.value, ',~r')",
            values=list(levels) if levels else alt.Undefined,
            tickCount=alt.Undefined if levels else ticks,
        ),
    )


def seconds_axis(until_s: float) -> alt.Axis:
    """Elapsed time in s, min or h: about four ticks."""
    unit, unit_s = next((u, s) for u, s in TIME_UNITS if until_s >= MOST_OF_A_UNIT * s or s == 1)
    step = round_step(until_s / unit_s / 4) * unit_s
    return alt.Axis(
        values=[k * step for k in range(int(until_s / step) + 1)],
        grid=False,
        title=None,
        labelExpr=f"format(datum.value / {unit_s}, '~r') + ' {unit}'",
        labelFlush=True,
    )


def count_axis(most: float) -> alt.Axis:
    """From zero to `most` in about three round steps, thousands as k."""
    rise = round_step(most / 3)
    return alt.Axis(title=None, values=[k * rise for k in range(int(most / rise) + 1)], labelExpr=THOUSANDS)


def decades(values: Sequence[float]) -> list[float]:
    """Steps 1, 2, 5 per decade, from the one below the smallest value to the one above the largest."""
    least, most = min(values), max(values)
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
    below = max(t for t in steps if t <= least)
    above = min((t for t in steps if t >= most), default=steps[-1])
    return [t for t in steps if below <= t <= above]
