"""What all charts share: fonts, axes, data, and how a chart becomes SVG. Must not know any particular chart.

Altair and vl-convert are heavy: this module is imported only when a page is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from prony.report.html.theme import MUTED, RULE, Colour, tidy

FONT = "Helvetica, Arial, sans-serif"
"""Only for measuring text while laying out; the page's own font is set by its style sheet."""

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


def round_step(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten that is not smaller."""
    if step <= 0 or not math.isfinite(step):
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * 0.999)


def decades(values: Sequence[float]) -> list[float]:
    """Steps 1, 2, 5 per decade, from the one below the smallest value to the one above the largest."""
    least, most = min(values), max(values)
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
    below = max(t for t in steps if t <= least)
    above = min((t for t in steps if t >= most), default=steps[-1])
    return [t for t in steps if below <= t <= above]
