"""The page of a plan: gathers what its template needs and fills it in. Must not know where the file goes."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from prony.report.html import plan_drawings, socket_drawings
from prony.report.html.filled import filled
from prony.report.html.page import host_facts, mark_of
from prony.report.html.plot import Series
from prony.report.html.sweep_chart import SweepLine, sweep
from prony.report.html.theme import accent, shape
from prony.report.labels import label_of, rounded, unit_of
from prony.report.plan_view import CellView, PartView, PlanView
from prony.report.plan_view import sweep as sweep_points

WIDE, HEIGHT = 430, 230
FIGURES = (("requests_per_s", False), ("mean_ms", True), ("p99_ms", True))
"""What a sweep draws, and whether on a log axis."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One sweep: heading and drawing."""

    heading: str
    svg: Markup


def render_plan_html(view: PlanView) -> str:
    """The whole page as text."""
    servers = tuple(dict.fromkeys(cell.cell.server for cell in view.cells))
    places = {server: place for place, server in enumerate(servers)}
    return filled(
        "plan.html.j2",
        view=view,
        places=places,
        marks=[mark_of(place) for place in range(len(servers))],
        charts={part.part.name: _charts(part, places, at) for at, part in enumerate(view.parts)},
        drawings={
            part.part.name: [
                *plan_drawings.bounds(part, places, f"bounds-{at}"),
                *plan_drawings.times(part, places, f"times-{at}"),
            ]
            for at, part in enumerate(view.parts)
        },
        sockets={
            part.part.name: plan_drawings.sockets(part, places, f"sockets-{at}")
            for at, part in enumerate(view.parts)
        },
        socket_marks=socket_drawings.legend(),
        sources=_sources(view),
        host=host_facts(view),
    )


def _sources(view: PlanView) -> list[str]:
    """Where the published figures come from, each once."""
    return list(
        dict.fromkeys(
            f"{history.label}: {history.source}" for cell in view.cells for history in cell.cell.published
        )
    )


def _charts(part: PartView, places: dict[str, int], at: int) -> list[Chart]:
    """A chart per workload, think time and figure of a part that sweeps over users."""
    groups: dict[tuple[str, float], list[CellView]] = {}
    for cell in part.cells:
        if cell.cell.users is not None:
            key = (cell.cell.trial.workload.name, cell.cell.trial.load.think.expected_ms)
            groups.setdefault(key, []).append(cell)
    made: list[Chart] = []
    for number_, ((workload, think_ms), cells) in enumerate(groups.items()):
        for figure, logarithmic in FIGURES:
            lines = _lines(part, cells, places, figure)
            if max((len(line.points) for line in lines if not line.dashed), default=0) < 2:
                continue
            pause = f", think {think_ms:g} ms" if think_ms else ""
            name = f"{label_of(figure)} over users, {workload}{pause}"
            unit = unit_of(figure)
            svg = sweep(
                lines,
                axis=f"{label_of(figure)}{f', {unit}' if unit else ''}",
                logarithmic=logarithmic,
                width=WIDE,
                height=HEIGHT,
                key=f"sweep-{at}-{number_}-{figure.replace('_', '-')}",
                title=f"{name}. " + "; ".join(_words(figure, line) for line in lines),
            )
            made.append(Chart(name, Markup(svg)))
    return made


def _lines(part: PartView, cells: list[CellView], places: dict[str, int], figure: str) -> list[SweepLine]:
    found: list[SweepLine] = []
    for server in part.servers:
        own = [cell for cell in cells if cell.cell.server == server]
        place = places[server]
        series = Series(server, accent(place), shape(place))
        points = sweep_points(own, figure)
        if points:
            found.append(SweepLine(series, tuple(points)))
        labels = dict.fromkeys(h.label for cell in own for h in cell.cell.published if figure in h.figures)
        for label in labels:
            history = sorted(
                (cell.cell.users, h.figures[figure])
                for cell in own
                for h in cell.cell.published
                if h.label == label and figure in h.figures and cell.cell.users is not None
            )
            if len(history) > 1:
                named = Series(f"{server}, {label}", series.colour, series.shape)
                found.append(SweepLine(named, tuple(history), dashed=True))
    return found


def _words(figure: str, line: SweepLine) -> str:
    points = ", ".join(f"{users:,} users {rounded(figure, value)}" for users, value in line.points)
    return f"{line.series.label}: {points}"
