"""From a part with several loads to its charts: figures over users, the scaling law, a capacity search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from prony.compare.capacity import Outcome
from prony.report.cell_view import HEADLINE, CellView
from prony.report.history import printed
from prony.report.html import charts
from prony.report.html.drawings import HEIGHT, MIDDLE, Drawer, Drawing
from prony.report.html.plot import Plot, Series, linear_y, log_x, log_y
from prony.report.html.theme import BUDGET, FINE, MUTED, NOT_CONFORMING, PROVIDED, of_shape
from prony.report.labels import label_of, named, rounded
from prony.report.wording import number


@dataclass(frozen=True, slots=True)
class SweepLine:
    """A server: (users, value), ascending; `dashed` for published figures."""

    series: Series
    points: tuple[tuple[int, float], ...]
    dashed: bool = False
    joined: bool = True
    """Whether a line joins the points; otherwise they are trials, and the curve is what was fitted."""
    curve: tuple[tuple[float, float], ...] = ()


def sweep(
    lines: Sequence[SweepLine],
    figure: str,
    logarithmic: bool,
    *,
    width: int,
    height: int,
    key: str,
    title: str,
) -> str:
    """Users on a log axis; published lines are dashed and have hollow marks."""
    users = sorted({float(n) for line in lines for n, _ in line.points})
    values = [value for line in lines for _, value in (*line.points, *line.curve) if value > 0] or [1.0]
    y = (log_y if logarithmic else linear_y)(named(figure), values)
    plot = Plot(log_x("users", users, users), y, width=width, height=height)
    ordered = sorted(lines, key=lambda line: not line.dashed)
    shown = [[(n, v) for n, v in line.points if v > 0 or not logarithmic] for line in ordered]
    for line, points in zip(ordered, shown, strict=True):
        if line.curve:
            plot.line(line.curve, line.series.colour, 2)
        if line.joined and line.dashed:
            plot.line(points, line.series.colour, 1.5, dash="4 4")
        elif line.joined:
            plot.line(points, line.series.colour, 2.5)
    for line, points in zip(ordered, shown, strict=True):
        fill, stroke = (None, line.series.colour) if line.dashed else (line.series.colour, None)
        for n, value in points:
            plot.mark(n, value, line.series.shape, fill, stroke)
    return plot.svg(key=key, title=title)


OUTCOMES = {
    Outcome.MET: (FINE, "circle"),
    Outcome.MISSED: (NOT_CONFORMING, "cross"),
    Outcome.UNDECIDED: (PROVIDED, "square"),
    Outcome.CLIENT: (BUDGET, "triangle-up"),
    Outcome.UNUSABLE: (MUTED, "diamond"),
}
"""Colour and mark, so that neither alone carries the meaning."""
LEAST_PER_CENT = 0.01


def capacity_chart(
    tried: Sequence[tuple[float, float, Outcome]], *, width: int, height: int, key: str, title: str
) -> str:
    """A mark per trial (rate per s, measured ÷ allowed, outcome); the dashed line is the objective."""
    shares = [max(pressure * 100, LEAST_PER_CENT) for _, pressure, _ in tried]
    x = log_x("offered, requests per second", [per_s for per_s, _, _ in tried])
    plot = Plot(x, log_y("measured ÷ allowed, %", [*shares, 100.0]), width=width, height=height)
    plot.line([(x.scale.low, 100.0), (x.scale.high, 100.0)], MUTED, dash="5 4")
    for (per_s, _, outcome), share in zip(tried, shares, strict=True):
        colour, shape = OUTCOMES[outcome]
        plot.mark(per_s, share, shape, colour, size=1)
    return plot.svg(key=key, title=title)


CURVE_POINTS = 120
LARGE = 300
"""Height of the chart next to an answer."""
SWEPT = ((HEADLINE, False), ("mean_ms", True), ("p99_ms", True))
"""What is drawn over users, and whether on a log axis."""


def sweeps(drawer: Drawer) -> list[Drawing]:
    """A chart per workload, think time and figure of a part with several numbers of users."""
    groups: dict[tuple[str, float], list[CellView]] = {}
    for cell in drawer.part.cells:
        if cell.users is not None:
            trial = cell.cell.trial
            key = (trial.workload.name, trial.load.think.expected_ms)
            groups.setdefault(key, []).append(cell)
    made: list[Drawing] = []
    for (workload, think_ms), cells in groups.items():
        for figure, logarithmic in SWEPT:
            lines = _lines(drawer, cells, figure)
            if max((len(line.points) for line in lines if not line.dashed), default=0) < 2:
                continue
            pause = f", think time {think_ms:g} ms" if think_ms else ""
            name = f"{label_of(figure)} over users, {workload}{pause}"
            words = _words(name, figure, lines)
            place = {"width": MIDDLE, "height": HEIGHT}
            svg = sweep(lines, figure, logarithmic, **place, key=drawer.identifier("sweep"), title=words)
            made.append(Drawing(words, Markup(svg), heading=name))
    return made


def _lines(drawer: Drawer, cells: Sequence[CellView], figure: str) -> list[SweepLine]:
    sweep_lines: list[SweepLine] = []
    for server in dict.fromkeys(cell.cell.server for cell in cells):
        own = sorted((c for c in cells if c.cell.server == server), key=lambda c: c.users or 0)
        series = drawer.series(own[0])
        points = tuple((c.users, s.median) for c in own if c.users and (s := c.figure(figure)))
        if points:
            sweep_lines.append(SweepLine(series, points))
        labels = dict.fromkeys(p.label for c in own for p in c.cell.published if figure in p.figures)
        for label in labels:
            theirs = tuple(
                (c.users, p.figures[figure])
                for c in own
                for p in c.cell.published
                if c.users and p.label == label and figure in p.figures
            )
            if len(theirs) > 1:
                named_series = Series(f"{server}, {label}", series.colour, series.shape)
                sweep_lines.append(SweepLine(named_series, theirs, dashed=True))
    return sweep_lines


def law(drawer: Drawer) -> Drawing | None:
    """Throughput over users with the fitted law: a dot per trial that counts."""
    lines = []
    for server in drawer.part.servers:
        cells = sorted(drawer.part.of(server.address), key=lambda cell: cell.users or 0)
        dots = tuple((c.users, rate) for c in cells if c.users for rate in charts.rates(c))
        law = drawer.part.laws.get(server.address)
        if dots:
            span = np.geomspace(dots[0][0], dots[-1][0], CURVE_POINTS) if law is not None else ()
            curve = tuple((float(n), law.per_s(float(n))) for n in span) if law is not None else ()
            lines.append(SweepLine(drawer.series(cells[0]), dots, curve=curve, joined=False))
    if not lines:
        return None
    name = "requests/s over users"
    words = _words(name, HEADLINE, lines)

    def draw(width: int, key: str) -> str:
        return sweep(lines, HEADLINE, False, width=width, height=LARGE, key=key, title=words)

    return replace(drawer.both("law", words, draw), note="A mark is a trial, the line the fitted law.")


def _words(name: str, figure: str, lines: Sequence[SweepLine]) -> str:
    return f"{name}. " + "; ".join(_sweep_words(figure, line) for line in lines)


def capacity(drawer: Drawer) -> Drawing | None:
    tried = drawer.part.search.tried if drawer.part.search is not None else ()
    steps = [(t.rate_per_s, t.pressure, t.outcome) for t in tried if t.pressure is not None]
    if not steps:
        return None
    words = "Measured ÷ allowed by offered rate. " + "; ".join(
        f"{number(per_s)}/s: {number(pressure * 100)} %, {outcome.value}"
        for per_s, pressure, outcome in steps
    )

    def draw(width: int, key: str) -> str:
        return capacity_chart(steps, width=width, height=LARGE, key=key, title=words)

    drawn = drawer.both("capacity", words, draw)
    return replace(
        drawn, note="Of the tightest objective at each offered rate; the dashed line is the objective."
    )


def capacity_keys(drawer: Drawer) -> tuple[tuple[Markup, str], ...]:
    tried = drawer.part.search.tried if drawer.part.search is not None else ()
    seen = {trial.outcome for trial in tried if trial.pressure is not None}
    return tuple(
        (of_shape(shape, colour.light), outcome.value)
        for outcome, (colour, shape) in OUTCOMES.items()
        if outcome in seen
    )


def _sweep_words(figure: str, line: SweepLine) -> str:
    text = printed if line.dashed else rounded
    points = ", ".join(f"{users:,} users {text(figure, value)}" for users, value in line.points)
    return f"{line.series.label}: {points}"
