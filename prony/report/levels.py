"""The levels of variance of a comparison, read off its trials, and in words. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from prony.compare.levels import Levels, levels
from prony.plan.load import SteadyWindow
from prony.report.result import CellView, TrialView

STRETCHES = 3
"""A window is cut into so many stretches, which stand for windows of one process."""
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
    servers = [[cut for trial in cell.counting if (cut := stretches(trial))] for cell in cells]
    spent = [
        (trial.record.ended_at - trial.record.started_at).total_seconds()
        for cell in cells
        for trial in cell.counting
    ]
    if not spent:
        return None
    stretch_s = measured.window_s / STRETCHES
    return levels(servers, window_s=stretch_s, process_s=statistics.median(spent) - measured.window_s)


def stretches(trial: TrialView) -> list[float]:
    """Requests per second of equal stretches of the window; empty where it has too few rows."""
    engine = trial.record.evidence.engine
    rows = [row for row in engine.rows if row.in_window and row.duration_ms > 0] if engine is not None else []
    each = len(rows) // STRETCHES
    if each < FEWEST_ROWS:
        return []
    parts = [rows[at * each : (at + 1) * each] for at in range(STRETCHES)]
    rates = [sum(r.completed for r in part) / sum(r.duration_ms for r in part) * 1000 for part in parts]
    return rates if min(rates) > 0 else []


def words(found: Levels) -> str:
    """Variance by level and the cheapest mix, in a line."""
    best, now = found.cheapest_windows, found.windows
    said = (
        f"Variance by level: {found.between * 100:.1f} % between processes, {found.within * 100:.1f} % "
        f"between stretches of {found.window_s:.0f} s in one process ({found.processes} processes; standard "
        f"deviations of throughput). A process costs {found.process_s:.0f} s besides its window"
    )
    if found.between_low <= 0:
        return f"{said}. Too few processes to say how long a window is cheapest."
    if best == now:
        return f"{said}: windows of this length are the cheapest."
    saved = 1 - 1 / found.relative_time(now)
    return (
        f"{said}: {best * found.window_s:.0f} s of window per process are the cheapest "
        f"({saved * 100:.0f} % less time for the same width)."
    )
