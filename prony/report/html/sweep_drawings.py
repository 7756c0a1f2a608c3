"""From a part with several loads to its charts: figures over users, the scaling law, a capacity search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from prony.report.cell_view import HEADLINE, CellView
from prony.report.history import printed
from prony.report.html import marks, values
from prony.report.html.capacity_chart import OUTCOMES, TriedMark, capacity_chart
from prony.report.html.drawings import HEIGHT, MIDDLE, Drawer, Drawing
from prony.report.html.plot import Series
from prony.report.html.sweep_chart import SweepLine, sweep
from prony.report.labels import label_of, named, rounded
from prony.report.wording import number

CURVE_POINTS = 120
LARGE = 300
"""Height of the chart beside an answer."""
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
            made.append(_sweep(drawer, name, figure, lines, logarithmic))
    return made


def _lines(drawer: Drawer, cells: Sequence[CellView], figure: str) -> list[SweepLine]:
    found: list[SweepLine] = []
    for server in dict.fromkeys(cell.cell.server for cell in cells):
        own = sorted((c for c in cells if c.cell.server == server), key=lambda c: c.users or 0)
        series = drawer.series(own[0])
        points = tuple((c.users, s.median) for c in own if c.users and (s := c.figure(figure)))
        if points:
            found.append(SweepLine(series, points))
        labels = dict.fromkeys(one.label for c in own for one in c.cell.published if figure in one.figures)
        for label in labels:
            theirs = tuple(
                (c.users, one.figures[figure])
                for c in own
                for one in c.cell.published
                if c.users and one.label == label and figure in one.figures
            )
            if len(theirs) > 1:
                named_series = Series(f"{server}, {label}", series.colour, series.shape)
                found.append(SweepLine(named_series, theirs, dashed=True))
    return found


def law(drawer: Drawer) -> Drawing | None:
    """Throughput over users with the fitted law: a dot per trial that counts."""
    lines = []
    for server in drawer.part.servers:
        cells = sorted(drawer.part.of(server.address), key=lambda cell: cell.users or 0)
        dots = tuple((c.users, rate) for c in cells if c.users for rate in values.rates(c))
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
        return _svg(HEADLINE, lines, False, width, LARGE, key, words)

    return replace(drawer.both("law", words, draw), note="A mark is a trial, the line the fitted law.")


def _sweep(
    drawer: Drawer,
    name: str,
    figure: str,
    lines: Sequence[SweepLine],
    logarithmic: bool,
) -> Drawing:
    words = _words(name, figure, lines)
    svg = _svg(figure, lines, logarithmic, MIDDLE, HEIGHT, drawer.identifier("sweep"), words)
    return Drawing(words, Markup(svg), heading=name)


def _words(name: str, figure: str, lines: Sequence[SweepLine]) -> str:
    return f"{name}. " + "; ".join(_sweep_words(figure, line) for line in lines)


def _svg(
    figure: str, lines: Sequence[SweepLine], logarithmic: bool, width: int, height: int, key: str, title: str
) -> str:
    return sweep(
        lines,
        axis=named(figure),
        logarithmic=logarithmic,
        width=width,
        height=height,
        key=key,
        title=title,
    )


def capacity(drawer: Drawer) -> Drawing | None:
    """Measured ÷ allowed over the offered rate, by outcome."""
    tried = drawer.part.search.tried if drawer.part.search is not None else ()
    found = [TriedMark(t.rate_per_s, t.pressure, t.outcome) for t in tried if t.pressure is not None]
    if not found:
        return None
    words = "Measured ÷ allowed by offered rate. " + "; ".join(
        f"{number(one.rate_per_s)}/s: {number(one.pressure * 100)} %, {one.outcome.value}" for one in found
    )

    def draw(width: int, key: str) -> str:
        return capacity_chart(found, width=width, height=LARGE, key=key, title=words)

    drawn = drawer.both("capacity", words, draw)
    return replace(
        drawn, note="Of the tightest objective at each offered rate; the dashed line is the objective."
    )


def capacity_keys(drawer: Drawer) -> tuple[tuple[Markup, str], ...]:
    """The marks of the outcomes that were seen."""
    tried = drawer.part.search.tried if drawer.part.search is not None else ()
    seen = {one.outcome for one in tried if one.pressure is not None}
    return tuple(
        (marks.of_shape(shape, colour.light), outcome.value)
        for outcome, (colour, shape) in OUTCOMES.items()
        if outcome in seen
    )


def _sweep_words(figure: str, line: SweepLine) -> str:
    text = printed if line.dashed else rounded
    points = ", ".join(f"{users:,} users {text(figure, found)}" for users, found in line.points)
    return f"{line.series.label}: {points}"
