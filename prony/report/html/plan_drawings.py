"""From a part of a plan to its charts beside the sweeps: throughput under its ceilings, times by percentile,
sockets over time. The same in words for who cannot see.

Must not know the page around a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from prony.report.html import large_charts, socket_drawings
from prony.report.html.ceiling_chart import CeilingRow, ceilings
from prony.report.html.drawings import Drawing, latency_words, percentiles
from prony.report.html.plot import Series
from prony.report.html.theme import accent, shape
from prony.report.plan_view import CellView, PartView
from prony.report.wording import number

FIGURE = "requests_per_s"
WIDTH, HEIGHT = 430, 230
FAR = 3.0
"""A ceiling of more than so many times the highest rate would only flatten the chart: it is told in words."""


def bounds(part: PartView, places: Mapping[str, int], key: str) -> list[Drawing]:
    """A chart for each workload and load whose rate is bounded by something that is known beforehand."""
    made: list[Drawing] = []
    for (workload, load), cells in _questions(part).items():
        offered = _offered_per_s(cells)
        rates = {cell.cell.id: _rates(cell) for cell in cells}
        highest = max([r for values in rates.values() for r in values], default=0.0)
        limits = {cell.cell.id: _ceilings(cell) for cell in cells}
        declared = any(trial.record.evidence.ceilings for cell in cells for trial in cell.trials)
        if highest <= 0 or not (offered or declared):
            continue
        rows = [
            CeilingRow(
                series=_series(cell, places),
                values=rates[cell.cell.id],
                middle=None if (found := cell.figure(FIGURE)) is None else found.median,
                ceilings=tuple((name, at) for name, at in limits[cell.cell.id] if at <= FAR * highest),
            )
            for cell in cells
        ]
        shown = offered if offered is not None and offered <= FAR * highest else None
        words = f"Throughput and its ceilings, {workload}, {load}. " + "; ".join(
            _bound_words(cell, limits[cell.cell.id]) for cell in cells
        )
        if offered is not None:
            words += f". {number(offered)}/s are offered"
        svg = ceilings(rows, offered_per_s=shown, width=WIDTH, key=f"{key}-{len(made)}", title=words)
        note = f"dashed: {number(offered)}/s are offered" if shown is not None else ""
        heading = f"Throughput and its ceilings, {workload}, {load}"
        made.append(Drawing(words, Markup(svg), heading=heading, note=note))
    return made


def times(part: PartView, places: Mapping[str, int], key: str) -> list[Drawing]:
    """Times by percentile for each workload and load of a part that does not sweep over users: the median
    trial of each server, the others thin.
    """
    made: list[Drawing] = []
    for (workload, load), cells in _questions(part).items():
        curves: list[large_charts.Curve] = []
        told: list[str] = []
        for cell in cells:
            middle = cell.middle
            for trial in cell.counting:
                points = percentiles(trial)
                if len(points) > 1:
                    curves.append(large_charts.Curve(_series(cell, places), points, trial is middle))
            if middle is not None:
                told.append(f"{cell.cell.server}: {latency_words(middle)}")
        if not curves or not any(curve.main for curve in curves):
            continue
        opened = any(cell.cell.trial.load.model == "open" for cell in cells)
        heading = f"{'Latency' if opened else 'Service time'} by percentile, {workload}, {load}"
        words = f"{heading}. " + "; ".join(told)
        svg = large_charts.latency(curves, width=WIDTH, height=HEIGHT, key=f"{key}-{len(made)}", title=words)
        made.append(Drawing(words, Markup(svg), heading=heading))
    return made


def sockets(part: PartView, places: Mapping[str, int], key: str) -> list[Drawing]:
    """For each server the cell in which there were most of them: a sweep has too many cells to show all."""
    made: list[Drawing] = []
    for server in part.servers:
        cells = [cell for cell in part.cells if cell.cell.server == server and _most_sockets(cell)]
        if cells:
            cell = max(cells, key=_most_sockets)
            rows = socket_drawings.counted_rows(cell.middle or cell.trials[0])
            name = f"{server}, {cell.cell.trial.workload.name}, {cell.cell.trial.load_name}"
            made.append(socket_drawings.drawn(name, places[server], rows, f"{key}-{len(made)}"))
    return made


def _most_sockets(cell: CellView) -> int:
    """The highest count in the trial that is drawn; 0 when there are not two rows to draw a line through."""
    if not cell.trials:
        return 0
    rows = socket_drawings.counted_rows(cell.middle or cell.trials[0])
    return max(row.sockets or row.established or 0 for row in rows) if len(rows) > 1 else 0


def _questions(part: PartView) -> dict[tuple[str, str], list[CellView]]:
    """Cells that answer the same question: all servers under one workload and load; none of a sweep."""
    found: dict[tuple[str, str], list[CellView]] = {}
    if not part.swept:
        for cell in part.cells:
            found.setdefault((cell.cell.trial.workload.name, cell.cell.trial.load_name), []).append(cell)
    return found


def _series(cell: CellView, places: Mapping[str, int]) -> Series:
    place = places[cell.cell.server]
    return Series(cell.cell.server, accent(place), shape(place))


def _rates(cell: CellView) -> tuple[float, ...]:
    return tuple(trial.figures[FIGURE] for trial in cell.counting if FIGURE in trial.figures)


def _offered_per_s(cells: Sequence[CellView]) -> float | None:
    """Of an open load, the same for all servers."""
    facts = (trial.record.evidence.load for cell in cells for trial in cell.trials)
    return next((load.offered_per_s for load in facts if load.offered_per_s), None)


def _ceilings(cell: CellView) -> tuple[tuple[str, float], ...]:
    """(name with its rate, rate): declared ones of the server, and what the client reached beforehand."""
    if not cell.trials:
        return ()
    evidence = cell.trials[0].record.evidence
    found = [(f"{one.name} {number(one.per_s)}/s", one.per_s) for one in evidence.ceilings]
    if evidence.calibration is not None:
        at = evidence.calibration.ceiling_per_s
        found.append((f"client {number(at)}/s", at))
    return tuple(found)


def _bound_words(cell: CellView, limits: Sequence[tuple[str, float]]) -> str:
    found = cell.figure(FIGURE)
    reached = "no figure" if found is None else f"{number(found.median)}/s"
    names = ", ".join(name for name, _ in limits) or "none is known"
    return f"{cell.cell.server}: {reached}; ceilings: {names}; bound by {cell.bound_by or 'nothing known'}"
