"""Charts of the site: a trend, and the seconds of a running trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from prony.report.html.plot import Series
from prony.report.html.theme import accent, mark_of, shape
from prony.report.labels import label, unit_of
from prony_serve.running import Second
from prony_serve.trends.chart import TrendLevel, TrendMark, TrendRule, trend_chart
from prony_serve.trends.series import TrendTrial, TrendView, direction

WIDE, NARROW, HEIGHT = 900, 340, 320
LINE_WIDTH, LINE_HEIGHT = 600, 80


@dataclass(frozen=True, slots=True)
class DrawnTrend:
    """The chart in two widths, its legend, and the trials of its marks in the order of `data-row`."""

    wide: Markup
    narrow: Markup
    keys: tuple[tuple[Markup, str], ...]
    trials: tuple[TrendTrial, ...]


def by_commit(view: TrendView) -> tuple[str, ...]:
    """The commits of a trend, in the order of their first trial."""
    return tuple(dict.fromkeys(trial.commit for trial in view.trials if trial.commit))


def draw_trend(view: TrendView, *, commits: bool = False) -> DrawnTrend | None:
    """None without a trial, or over commits without a trial whose commit is known."""
    order = by_commit(view) if commits else ()
    place = {commit: float(k) for k, commit in enumerate(order)}
    shown = tuple(trial for trial in view.trials if not commits or trial.commit)
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
        TrendMark(
            x(trial),
            None if trial.value is None else trial.value * scale,
            drawn_as[trial.setting],
            trial.counts,
        )
        for trial in shown
    ]
    levels = [
        TrendLevel(x(level.first), x(level.last), level.value * scale, drawn_as[level.setting])
        for level in view.levels
        if level.first in shown and level.last in shown
    ]
    rules = [TrendRule(x(point.trial), "break") for point in view.breaks if point.trial in shown]
    rules += [
        TrendRule(between(point.last, point.trial), direction(point))
        for point in view.changes
        if point.trial in shown and point.last in shown
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
    keys = tuple((mark_of(k), setting.words) for k, setting in enumerate(view.settings))
    return DrawnTrend(wide, narrow, keys, shown)


def seconds_line(seconds: Sequence[Second]) -> Markup:
    """Completed requests per second of a running trial as one line, without axes."""
    if len(seconds) < 2:
        return Markup("")
    most = max(second.completed_per_s for second in seconds) or 1.0
    step = LINE_WIDTH / (len(seconds) - 1)
    points = " ".join(
        f"{k * step:.1f},{LINE_HEIGHT - second.completed_per_s / most * (LINE_HEIGHT - 4):.1f}"
        for k, second in enumerate(seconds)
    )
    label = f"Completed requests per second of the last {len(seconds)} s, at most {most:,.0f}"
    return Markup(
        f'<svg class="line" viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" role="img" aria-label="{label}" '
        f'preserveAspectRatio="none"><polyline points="{points}" fill="none" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
