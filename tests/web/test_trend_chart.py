"""The chart of a trend: a mark per trial with its row, the levels, and ticks of time or of commits."""

from __future__ import annotations

import re

import pytest

from prony.report.html.theme import PAPER, PATHS
from prony_serve.trends.chart import TrendLevel, TrendMark, TrendRule, trend_chart
from tests.report.test_charts import AXES, TOMCAT, WIDTHS, Draw, check_labels, labels, marks

DAY_S = 86_400.0


def draw_trend(width: int, days: float = 60, commits: tuple[str, ...] = ()) -> str:
    begin = 1_700_000_000.0
    xs = [float(k) for k, _ in enumerate(commits)] or [begin + k * days / 9 * DAY_S for k in range(10)]
    marks = [TrendMark(x, 100.0 + k if k else None, TOMCAT, k != 1) for k, x in enumerate(xs)]
    return trend_chart(
        marks,
        [TrendLevel(xs[0], xs[-1], 104.0, TOMCAT)],
        [TrendRule(xs[2], "worse"), TrendRule(xs[1], "break")],
        commits=commits,
        unit="requests/s",
        width=width,
        height=300,
        **AXES,
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "draw",
    [
        draw_trend,
        lambda width: draw_trend(width, days=0.3),
        lambda width: draw_trend(width, days=2000),
        lambda width: draw_trend(width, commits=tuple(f"{k:012x}{k:028x}" for k in range(30))),
    ],
)
def test_nothing_leaves_the_drawing_and_no_two_labels_touch(draw: Draw, width: int) -> None:
    check_labels(draw, width)


def test_a_trial_of_a_trend_has_its_row_and_what_does_not_count_is_hollow() -> None:
    svg = draw_trend(860)
    assert re.findall(r'data-row="(\d+)"', svg) == [str(k) for k in range(10)]
    assert len(marks(svg, TOMCAT, PAPER)) == 1
    assert len(marks(svg, TOMCAT)) == 8
    assert f'data-row="0" d="{PATHS["cross"]}"' in svg


@pytest.mark.parametrize(("days", "label"), [(0.3, "15 Nov 00:00"), (60, "29 Nov"), (2000, "15 Nov 2023")])
def test_a_trend_counts_in_hours_days_or_years(days: float, label: str) -> None:
    assert label in labels(draw_trend(860, days))
