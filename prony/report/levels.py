"""The levels of variance of a comparison, read off its trials, and in words. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from prony.compare.levels import Levels, levels
from prony.plan.load import SteadyWindow
from prony.report.result import CellView, TrialView

STRETCHES = 3
"""A single window is cut into so many stretches, which stand for windows of one process."""
FEWEST_ROWS = 3
"""Rows of a stretch."""


def levels_of(cells: Sequence[CellView]) -> Levels | None:
    """Of the throughput of these servers' trials; None where the rows of their windows do not suffice."""
    measured = cells[0].cell.trial.measured
    owned = all(trial.record.evidence.server.owned for cell in cells for trial in cell.counting)
    if any(cell.cell.trial.measured != measured for cell in cells) or not owned:
        return None
    if not isinstance(measured, SteadyWindow):
        return None
    many = measured.windows if measured.windows > 1 else STRETCHES
    servers = [[cut for trial in cell.counting if (cut := stretches(trial, many))] for cell in cells]
    spent = [
        (trial.record.ended_at - trial.record.started_at).total_seconds()
        for cell in cells
        for trial in cell.counting
    ]
    if not spent:
        return None
    process_s = statistics.median(spent) - measured.length_s
    return levels(servers, window_s=measured.length_s / many, process_s=process_s)


def stretches(trial: TrialView, many: int) -> list[float]:
    """Requests per second of the windows of one process, or of equal stretches of its only one, cut at whole
    rows; empty where these are too few.
    """
    engine = trial.record.evidence.engine
    rows = [row for row in engine.rows if row.in_window and row.duration_ms > 0] if engine is not None else []
    each = len(rows) // many
    if each < FEWEST_ROWS:
        return []
    parts = [rows[at * each : (at + 1) * each] for at in range(many)]
    rates = [sum(r.completed for r in part) / sum(r.duration_ms for r in part) * 1000 for part in parts]
    return rates if min(rates) > 0 else []


def words(found: Levels) -> str:
    """Variance by level and the cheapest mix, in a line."""
    best, now = found.cheapest_windows, found.windows
    said = (
        f"Variance by level: {found.between * 100:.1f} % between processes, {found.within * 100:.1f} % "
        f"between windows of {found.window_s:.0f} s in one process ({found.processes} processes; standard "
        f"deviations of throughput). A process costs {found.process_s:.0f} s besides its windows"
    )
    if found.between_low <= 0:
        return f"{said}. Too few processes to say how many windows are cheapest."
    if best == now:
        return f"{said}: {now} windows of this length are the cheapest."
    saved = 1 - 1 / found.relative_time(now)
    many = "window" if best == 1 else "windows"
    return (
        f"{said}: {best} {many} of this length per process ({best * found.window_s:.0f} s) are the cheapest "
        f"({saved * 100:.0f} % less time for the same width)."
    )
