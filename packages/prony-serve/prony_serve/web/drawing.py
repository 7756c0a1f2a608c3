"""Charts of the site: a trend by the report's own chart, and the seconds of a running trial as one line. Must
not know the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from prony.report.html.plot import Series
from prony.report.html.theme import accent, mark_of, shape
from prony.report.labels import label, unit_of
from prony.store.running import Second
from prony_serve.trends.chart import TrendLevel, TrendMark, TrendRule, trend_chart
from prony_serve.trends.series import TrendTrial, TrendView, direction

WIDE, NARROW, HEIGHT = 900, 340, 320
LINE_WIDTH, LINE_HEIGHT = 600, 80


@dataclass(frozen=True, slots=True)
class DrawnTrend:
    """The chart in two widths, its legend, and the trials that have a mark, in the order of `data-row`."""

    wide: Markup
    narrow: Markup
    keys: tuple[tuple[Markup, str], ...]
    trials: tuple[TrendTrial, ...]


def by_commit(view: TrendView) -> tuple[str, ...]:
    """The commits of a trend in the order in which they were first measured."""
    return tuple(dict.fromkeys(one.commit for one in view.trials if one.commit))


def draw_trend(view: TrendView, *, commits: bool = False) -> DrawnTrend | None:
    """None where there is nothing to draw: no trial, or by commits none whose commit is known."""
    order = by_commit(view) if commits else ()
    place = {commit: float(k) for k, commit in enumerate(order)}
    shown = tuple(one for one in view.trials if not commits or one.commit)
    if not shown:
        return None
    scale = label(view.figure).scale
    drawn_as = {
        setting: Series(setting.words, accent(k), shape(k)) for k, setting in enumerate(view.settings)
    }

    def x(trial: TrendTrial) -> float:
        return place[trial.commit] if commits else trial.started.timestamp()

    def between(first: TrendTrial, second: TrendTrial) -> float:
        return (x(first) + x(second)) / 2

    marks = [
        TrendMark(x(one), None if one.value is None else one.value * scale, drawn_as[one.setting], one.counts)
        for one in shown
    ]
    levels = [
        TrendLevel(x(one.first), x(one.last), one.value * scale, drawn_as[one.setting])
        for one in view.levels
        if one.first in shown and one.last in shown
    ]
    rules = [TrendRule(x(one.trial), "break") for one in view.breaks if one.trial in shown]
    rules += [
        TrendRule(between(one.last, one.trial), direction(one))
        for one in view.changes
        if one.trial in shown and one.last in shown
    ]
    words = f"{view.title}. {view.words}"
    wide, narrow = (
        Markup(
            trend_chart(
                marks,
                levels,
                rules,
                commits=order,
                unit=unit_of(view.figure) or label(view.figure).text,
                width=width,
                height=HEIGHT,
                key=key,
                title=words,
            )
        )
        for width, key in ((WIDE, "trend"), (NARROW, "trend-narrow"))
    )
    keys = tuple((mark_of(k), one.words) for k, one in enumerate(view.settings))
    return DrawnTrend(wide, narrow, keys, shown)


def seconds_line(seconds: Sequence[Second]) -> Markup:
    """Completed requests per second of a running trial as one line, without axes."""
    if len(seconds) < 2:
        return Markup("")
    most = max(one.completed_per_s for one in seconds) or 1.0
    step = LINE_WIDTH / (len(seconds) - 1)
    points = " ".join(
        f"{k * step:.1f},{LINE_HEIGHT - one.completed_per_s / most * (LINE_HEIGHT - 4):.1f}"
        for k, one in enumerate(seconds)
    )
    said = f"Completed requests per second of the last {len(seconds)} s, at most {most:,.0f}"
    return Markup(
        f'<svg class="line" viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" role="img" aria-label="{said}" '
        f'preserveAspectRatio="none"><polyline points="{points}" fill="none" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
