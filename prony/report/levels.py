"""The levels of variance of a comparison, read off its trials, and in words. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from prony.compare.levels import Levels, levels
from prony.evidence.engine import IntervalRow
from prony.plan.load import OpenLoad, SteadyWindow
from prony.report.cell_view import CellView, TrialView

STRETCHES = 3
"""A single window is cut into so many stretches, which stand for windows of one process."""
FEWEST_ROWS = 3
WHOLE = 0.99
"""Share of the planned length that windows must have had: those of an interrupted trial are others."""


def levels_of(cells: Sequence[CellView]) -> Levels | None:
    """Of throughput; None in an open loop, and where the rows of the windows do not suffice."""
    plan = cells[0].cell.trial
    measured = plan.measured
    if not isinstance(measured, SteadyWindow) or isinstance(plan.load, OpenLoad):
        return None
    owned = all(trial.record.evidence.server.owned for cell in cells for trial in cell.counting)
    if any(cell.cell.trial.measured != measured for cell in cells) or not owned:
        return None
    many = measured.windows if measured.windows > 1 else STRETCHES
    least_s = 0.0 if measured.precision is not None else WHOLE * measured.length_s
    used = [
        [(trial, cut) for trial in cell.counting if (cut := stretches(trial, many, least_s))]
        for cell in cells
    ]
    timed = [_times_s(trial) for cell in used for trial, _ in cell]
    if not timed:
        return None
    length_s = statistics.median(length for _, length in timed)
    return levels(
        [[cut for _, cut in cell] for cell in used],
        window_s=length_s / many,
        process_s=statistics.median(spent - length for spent, length in timed),
        of_one_window=measured.windows == 1,
    )


def _times_s(trial: TrialView) -> tuple[float, float]:
    record = trial.record
    window = record.evidence.engine.window if record.evidence.engine is not None else None
    length_s = window.duration_s if window is not None else 0.0
    return (record.ended_at - record.started_at).total_seconds(), length_s


def stretches(trial: TrialView, many: int, least_s: float = 0.0) -> list[float]:
    """Requests per second of a process's windows, or of stretches of its only one; empty if too short."""
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    if engine is None or window is None or not window.complete or window.duration_s < max(least_s, 1e-9):
        return []
    parts: list[list[IntervalRow]] = [[] for _ in range(many)]
    for row in engine.rows:
        middle_ms = row.t_ms - row.duration_ms / 2
        at = math.floor((middle_ms - window.opened_ms) / (window.duration_s * 1000) * many)
        if row.in_window and row.duration_ms > 0 and 0 <= at < many:
            parts[at].append(row)
    if min(map(len, parts)) < FEWEST_ROWS:
        return []
    rates = [sum(r.completed for r in part) / sum(r.duration_ms for r in part) * 1000 for part in parts]
    return rates if min(rates) > 0 else []


def words(found: Levels) -> str:
    """Variance by level and the cheapest mix, in a line."""
    best, now, window_s = found.cheapest_windows, found.windows, found.window_s
    parts = f"windows of {window_s:.0f} s in one process"
    if found.of_one_window:
        name = "thirds" if now == STRETCHES else "parts"
        parts = f"{name} of a process's window ({window_s:.1f} s each)"
    said = (
        f"Variance by level: {found.between * 100:.1f} % between processes, {found.within * 100:.1f} % "
        f"between {parts} ({found.processes} processes; standard "
        f"deviations of throughput). A process costs {found.process_s:.0f} s besides its windows"
    )
    if found.between_low <= 0:
        return f"{said}. Too few processes to say how many windows are cheapest."
    saved = ""
    if best != now:
        share = 1 - 1 / found.relative_time(now)
        saved = f" ({share * 100:.0f} % less time for the same width)"
    if found.of_one_window:
        return f"{said}: one window of {best * window_s:.0f} s per process is the cheapest{saved}."
    if best == now:
        return f"{said}: {now} windows of this length are the cheapest."
    many = "1 window" if best == 1 else f"{best} windows"
    verb = "is" if best == 1 else "are"
    return f"{said}: {many} of this length per process ({best * window_s:.0f} s) {verb} the cheapest{saved}."
