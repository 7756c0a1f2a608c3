"""The chart of a capacity search: measured ÷ allowed over the offered rate. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.compare.capacity import Outcome
from prony.report.html.plot import Plot, log_x, log_y
from prony.report.html.theme import BUDGET, FINE, MUTED, NOT_CONFORMING, PROVIDED

OUTCOMES = {
    Outcome.MET: (FINE, "circle"),
    Outcome.MISSED: (NOT_CONFORMING, "cross"),
    Outcome.UNDECIDED: (PROVIDED, "square"),
    Outcome.CLIENT: (BUDGET, "triangle-up"),
    Outcome.UNUSABLE: (MUTED, "diamond"),
}
"""Colour and mark, so that neither alone carries the meaning."""
LEAST_PER_CENT = 0.01


@dataclass(frozen=True, slots=True)
class TriedMark:
    """One trial: the rate, measured ÷ allowed, how it ended."""

    rate_per_s: float
    pressure: float
    outcome: Outcome


def capacity_chart(tried: Sequence[TriedMark], *, width: int, height: int, key: str, title: str) -> str:
    """A mark per trial; the dashed line is the objective."""
    shares = [max(one.pressure * 100, LEAST_PER_CENT) for one in tried]
    x = log_x("offered, requests per second", [one.rate_per_s for one in tried])
    plot = Plot(x, log_y("measured ÷ allowed, %", [*shares, 100.0]), width=width, height=height)
    plot.line([(x.scale.low, 100.0), (x.scale.high, 100.0)], MUTED, dash="5 4")
    for one, share in zip(tried, shares, strict=True):
        colour, shape = OUTCOMES[one.outcome]
        plot.mark(one.rate_per_s, share, shape, colour, size=1)
    return plot.svg(key=key, title=title)
