"""Charts as SVG, and what they draw of a trial or a cell, also in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prony.evidence.engine import IntervalRow
from prony.judge.figures import published_mark
from prony.judge.percentiles import percentile_series
from prony.judge.times import headline_times
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.html.plot import (
    GAP,
    PAD,
    TEXT,
    Axis,
    Plot,
    Series,
    count_axis,
    linear_y,
    log_y,
    plain,
    seconds_axis,
    text_width,
)
from prony.report.html.scale import Scale, round_ticks
from prony.report.html.theme import BUDGET, MUTED, PAPER, SETTLE, WINDOW
from prony.report.labels import label_of, rounded, unit_of
from prony.report.wording import number
from prony.steady.detector import full_rows


@dataclass(frozen=True, slots=True)
class Dots:
    """A server's values of a figure, one per trial."""

    series: Series
    values: tuple[float, ...]
    middle: float | None
    words: str
    """The median as it is printed."""


@dataclass(frozen=True, slots=True)
class PairedSeries:
    """A server's two kinds of value (published and measured, client and server)."""

    series: Series
    hollow: tuple[float, ...]
    solid: tuple[float, ...]


WIDTH, HEIGHT = 284, 120
MOST_POINTS = 360
"""A line needs no more points than this; longer runs are averaged into this many equal parts."""
PHASE_COLOURS = {"settle": SETTLE, "window": WINDOW}


def throughput(
    points: Sequence[tuple[float, float]],
    *,
    series: Series,
    phases: Sequence[tuple[str, float, float]],
    changes_s: Sequence[float],
    mark_s: float | None,
    until_s: float,
    most_per_s: float,
    key: str,
    title: str,
    width: int = WIDTH,
) -> str:
    """Completed requests per second over a trial. `phases`: name, beginning and end in s."""
    plot = Plot(seconds_axis(until_s), count_axis(most_per_s), width=width, height=HEIGHT)
    for name, start_s, end_s in phases:
        if name in PHASE_COLOURS:
            plot.rect((start_s, end_s), (0, most_per_s), PHASE_COLOURS[name])
    for at in changes_s:
        plot.upright(at, MUTED, dash="3 3")
    plot.line(points, series.colour, 1.75)
    if mark_s is not None and mark_s <= until_s:
        rate = min(points, key=lambda p: abs(p[0] - mark_s), default=(0.0, 0.0))[1]
        plot.mark(mark_s, rate, "triangle-down", BUDGET, size=1, above=9)
    return plot.svg(key=key, title=title)


STEP = 28
"""Height of a row in px."""


def strips(rows: Sequence[Dots], *, key: str, title: str) -> str:
    """A figure: a row per server, a mark per trial, a bar from zero to the median, and the median."""
    most = max([v for r in rows for v in r.values], default=1.0) or 1.0
    words = max(text_width(row.words, 13) for row in rows) + GAP
    scale = Axis(Scale(0, most * 1.03))
    plot = Plot(scale, None, width=WIDTH, height=STEP * len(rows), right=words + PAD)
    for k, row in enumerate(rows):
        middle, colour = (k + 0.5) * STEP, row.series.colour
        if row.middle is not None:
            plot.rect((0, row.middle), (middle - 5, middle + 5), colour, opacity=0.26)
        for value in row.values:
            plot.mark(value, middle, row.series.shape, colour, size=0.85)
        plot.text(WIDTH, middle, row.words, end=True)
    return plot.svg(key=key, title=title)


def dumbbells(
    rows: Sequence[PairedSeries],
    *,
    domain: tuple[float, float],
    reference: float | None,
    tick_format: str,
    axis: str | None,
    key: str,
    title: str,
    width: int,
) -> str:
    """Rows of hollow and solid marks: two kinds of value on a common scale, with gap and order."""
    scale = Scale(*domain)
    ticks = [(t, format(t, tick_format)) for t in round_ticks(scale, 6)]
    plot = Plot(Axis(scale, ticks, axis or "", grid=True), None, width=width, height=STEP * len(rows))
    if reference is not None:
        plot.upright(reference, MUTED, dash="4 3")
    for k, row in enumerate(rows):
        middle, colour, shape = (k + 0.5) * STEP, row.series.colour, row.series.shape
        if len(row.hollow) == 1 and len(row.solid) == 1:
            plot.line([(row.hollow[0], middle), (row.solid[0], middle)], colour, 1.5, opacity=0.5)
        for values, inside in ((row.hollow, PAPER), (row.solid, colour)):
            for value in values:
                plot.mark(value, middle, shape, inside, colour)
    return plot.svg(key=key, title=title)


BAR, LINE = 36, 15
"""Heights in px: of a row's marks with the space below them, and of a line of names above."""
LABEL = 13


@dataclass(frozen=True, slots=True)
class CeilingRow:
    """A server: rates of its trials, and its ceilings as (name, requests per second)."""

    series: Series
    values: tuple[float, ...]
    middle: float | None
    ceilings: tuple[tuple[str, float], ...] = ()


def ceilings(
    rows: Sequence[CeilingRow], *, offered_per_s: float | None, width: int, key: str, title: str
) -> str:
    """A bar to the median, a mark per trial, a rule with its name per ceiling; what is offered is dashed."""
    known = [v for row in rows for v in (*row.values, *(per_s for _, per_s in row.ceilings))]
    most = max([*known, *([offered_per_s] if offered_per_s else [])], default=1.0) * 1.04 or 1.0
    scale = Scale(0, most)
    names = [_names(row, scale, width) for row in rows]
    heights = [LINE * (1 + max([line for line, *_ in row_names], default=0)) + BAR for row_names in names]
    x = Axis(scale, [(t, plain(t)) for t in round_ticks(scale, 5)], "requests per second", grid=True)
    plot = Plot(x, None, width=width, height=sum(heights))
    if offered_per_s is not None:
        plot.upright(offered_per_s, MUTED, dash="5 4")
    top = 0.0
    for row, row_names, height in zip(rows, names, heights, strict=True):
        colour, middle = row.series.colour, top + height - 20
        plot.text(0, top + LINE / 2, row.series.label, size=LABEL)
        if row.middle is not None:
            plot.rect((0, row.middle), (middle - 6, middle + 6), colour, opacity=0.26)
        for _, per_s in row.ceilings:
            plot.line([(per_s, middle - 12), (per_s, middle + 11)], BUDGET, 2)
        for value in row.values:
            plot.mark(value, middle, row.series.shape, colour)
        for line, start, name in row_names:
            plot.text(start, top + LINE * (line + 0.5), name, BUDGET, size=TEXT)
        top += height
    return plot.svg(key=key, title=title)


def _names(row: CeilingRow, scale: Scale, width: float) -> list[tuple[int, float, str]]:
    """(line, px from the left, name): above the rule, in the first line with room."""
    ends = [text_width(row.series.label, LABEL)]
    placed = []
    for name, per_s in sorted(row.ceilings, key=lambda ceiling: ceiling[1]):
        start = max(0.0, min(scale.at(per_s) / 100 * width, width - text_width(name)))
        line = next((k for k, end in enumerate(ends) if end + GAP <= start), len(ends))
        ends[line : line + 1] = [start + text_width(name)]
        placed.append((line, start, name))
    return placed


@dataclass(frozen=True, slots=True)
class Curve:
    """A trial's latency by percentile: (share below, milliseconds), ascending."""

    series: Series
    points: tuple[tuple[float, float], ...]
    main: bool
    """True for the median trial of its server."""


NINES = ((0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (0.99999, "99.999"))


def nines(share: float) -> float:
    """A share below as its number of nines: 0.9 -> 1, 0.99 -> 2, 0.999 -> 3."""
    return -math.log10(max(1 - share, 1e-9))


def latency(curves: Sequence[Curve], *, width: int, height: int, key: str, title: str) -> str:
    """Service time by percentile: the median trial of each server thick, every other trial thin."""
    longest = max(nines(c.points[-1][0]) for c in curves)
    ticks = [(nines(q), f"{name} %") for q, name in NINES if nines(q) <= longest + 1e-9]
    times = [ms for c in curves for _, ms in c.points if ms > 0] or [1.0]
    y = log_y("time, ms", times) if max(times) / min(times) > 8 else linear_y("time, ms", times, ticks=6)
    x = Axis(
        Scale(0, longest + 0.05),
        ticks or [(nines(0.5), "50 %")],
        "share of requests at most this slow",
        grid=True,
        even=False,
    )
    plot = Plot(x, y, width=width, height=height)
    main = [curve for curve in curves if curve.main]
    for curve in (*(c for c in curves if not c.main), *main):
        points = [(nines(q), ms) for q, ms in curve.points if ms > 0]
        look = (2.5, 1.0) if curve.main else (1, 0.45)
        plot.line(points, curve.series.colour, look[0], opacity=look[1])
    for curve in main:
        for at, _ in x.ticks:
            if at <= nines(curve.points[-1][0]) + 1e-9:
                plot.mark(at, _at(curve.points, at), curve.series.shape, curve.series.colour)
    return plot.svg(key=key, title=title)


def _at(points: Sequence[tuple[float, float]], wanted: float) -> float:
    return min(points, key=lambda p: abs(nines(p[0]) - wanted))[1]


def percentiles(trial: TrialView) -> tuple[tuple[float, float], ...]:
    """(share below, milliseconds) as far as the trial's sample supports it; empty without a histogram."""
    times = headline_times(trial.record.evidence)
    curve = () if times is None else percentile_series(times)
    return tuple((p.percentile / 100, p.value_ms) for p in curve if p.percentile > 0)


def latency_words(trial: TrialView) -> str:
    known = ((f, trial.figure(f)) for f in ("p50_ms", "p90_ms", "p99_ms", "p999_ms"))
    return ", ".join(f"{label_of(f)} {rounded(f, v)} {unit_of(f)}" for f, v in known if v is not None)


def interval_rows(trial: TrialView) -> Sequence[IntervalRow]:
    engine = trial.record.evidence.engine
    return engine.rows if engine is not None else ()


def mark_s(trial: TrialView) -> float | None:
    """Where the rows reach the published number of requests; None where an engine of its own sent those."""
    evidence = trial.record.evidence
    mark = published_mark(evidence) if evidence.published is None else None
    return None if mark is None else mark.elapsed_ms / 1000


def thinned(trial: TrialView) -> list[tuple[float, float]]:
    """(middle of the stretch in s, completed per second), at most MOST_POINTS of them."""
    rows = full_rows(interval_rows(trial))
    each = max(1, -(-len(rows) // MOST_POINTS))
    points = []
    for at in range(0, len(rows), each):
        part = rows[at : at + each]
        span_ms = sum(row.duration_ms for row in part)
        start_ms = part[0].t_ms - part[0].duration_ms
        rate = sum(row.completed for row in part) / (span_ms / 1000) if span_ms > 0 else 0.0
        points.append(((start_ms + part[-1].t_ms) / 2000, rate))
    return points


def percents(shares: tuple[float, ...]) -> str:
    return ", ".join(f"{number(share * 100)} %" for share in shares) or "unknown"


def known(share: float | None) -> tuple[float, ...]:
    return () if share is None else (share,)


def rates(cell: CellView) -> tuple[float, ...]:
    return tuple(rate for trial in cell.counting if (rate := trial.figure(HEADLINE)) is not None)


def known_ceilings(cell: CellView) -> tuple[tuple[str, float], ...]:
    """(label, requests per second) of the server's declared ceilings and the client's calibrated rate."""
    if not cell.trials:
        return ()
    evidence = cell.trials[0].record.evidence
    known = [(f"{ceiling.name} {number(ceiling.per_s)}/s", ceiling.per_s) for ceiling in evidence.ceilings]
    if evidence.calibration is not None:
        at = evidence.calibration.ceiling_per_s
        known.append((f"client {number(at)}/s", at))
    return tuple(known)


def bound_words(cell: CellView, limits: Sequence[tuple[str, float]]) -> str:
    spread = cell.figure(HEADLINE)
    reached = "no figure" if spread is None else f"{number(spread.median)}/s"
    names = ", ".join(name for name, _ in limits) or "none is known"
    return f"{cell.cell.server}: {reached}; ceilings: {names}; bound by {cell.bound_by or 'nothing known'}"
