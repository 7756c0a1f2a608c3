"""The chart of a capacity search: measured ÷ allowed over the offered rate. Values in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from prony.compare.capacity import Outcome
from prony.report.html.plot import data, decades, log_x, to_svg, y_figure
from prony.report.html.theme import BUDGET, FINE, MUTED, NOT_CONFORMING, PROVIDED

OUTCOMES = {
    Outcome.MET: (FINE.light, "circle"),
    Outcome.MISSED: (NOT_CONFORMING.light, "cross"),
    Outcome.UNDECIDED: (PROVIDED.light, "square"),
    Outcome.CLIENT: (BUDGET.light, "triangle-up"),
    Outcome.UNUSABLE: (MUTED.light, "diamond"),
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
    dots: list[dict[str, object]] = [
        {
            "rate": one.rate_per_s,
            "share": max(one.pressure * 100, LEAST_PER_CENT),
            "colour": OUTCOMES[one.outcome][0],
            "shape": OUTCOMES[one.outcome][1],
        }
        for one in tried
    ]
    x = log_x("rate", "offered, requests per second", [one.rate_per_s for one in tried])
    shares = [max(one.pressure * 100, LEAST_PER_CENT) for one in tried]
    y = y_figure("share", "measured ÷ allowed, %", decades([*shares, 100.0]))
    layers = [
        alt.Chart(data([{"share": 100.0}])).mark_rule(strokeDash=[5, 4], color=MUTED.light).encode(y=y),
        alt.Chart(data(dots))
        .mark_point(size=70, filled=True, opacity=1)
        .encode(x=x, y=y, fill=alt.Fill("colour:N", scale=None), shape=alt.Shape("shape:N", scale=None)),
    ]
    return to_svg(alt.layer(*layers).properties(width=width, height=height), key=key, title=title)
