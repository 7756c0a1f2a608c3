"""Time axis of a trial in turns: time under load, without rests and left-out parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.evidence.counts import Gap
from prony.evidence.engine import EngineReport, IntervalRow
from prony.evidence.host import HostRow

NEAR_MS = 25.0
"""Tolerance for late readings of the host."""


@dataclass(frozen=True, slots=True)
class LoadTime:
    """`rested_ms`: the first rest; `turns`: measured parts (from, to), ms, engine time."""

    rested_ms: float
    turns: tuple[tuple[float, float], ...]

    def of(self, t_ms: float) -> float:
        """Load time of an instant in engine time; within a rest, that of its start."""
        ended = sum(min(max(t_ms, opens), ends) - opens for opens, ends in self.turns)
        return min(t_ms, self.rested_ms) + ended

    @property
    def end_ms(self) -> float:
        return self.of(float("inf"))

    def report(self, report: EngineReport) -> EngineReport:
        """The report with the rows of the warm-up and of the measured parts only."""
        window = report.window
        if window is not None:
            threads = (
                thread.model_copy(update={"gaps": self._gaps(thread.gaps)}) for thread in window.threads
            )
            update = {"opened_ms": self.rested_ms, "gaps": self._gaps(window.gaps), "threads": tuple(threads)}
            window = window.model_copy(update=update)
        rows = (row for row in report.rows if row.in_window or row.t_ms <= self.rested_ms + 0.5)
        timed = tuple(row.model_copy(update={"t_ms": self._end(row)}) for row in rows)
        return report.model_copy(update={"rows": timed, "window": window})

    def _end(self, row: IntervalRow) -> float:
        return self.of(row.t_ms - row.duration_ms / 2) + row.duration_ms / 2

    def _gaps(self, gaps: Sequence[Gap]) -> tuple[Gap, ...]:
        return tuple(gap.model_copy(update={"start_ms": self.of(gap.start_ms)}) for gap in gaps)

    def host_rows(self, rows: Sequence[HostRow]) -> tuple[HostRow, ...]:
        """The host's rows of the warm-up and of the measured parts."""
        spans = ((-NEAR_MS, self.rested_ms), *self.turns)
        return tuple(
            row.model_copy(update={"t_ms": self.of(row.t_ms)})
            for row in rows
            if any(
                opens <= row.t_ms - row.duration_ms + NEAR_MS and row.t_ms <= ends + NEAR_MS
                for opens, ends in spans
            )
        )

    def left_out_per_s(self, rows: Sequence[IntervalRow]) -> float | None:
        """Rate in the left-out parts of turns; None without rows."""
        parts = [
            row
            for row in rows
            if any(abs(row.t_ms - opens) < NEAR_MS for opens, _ in self.turns)
            and not any(abs(row.t_ms - row.duration_ms - ends) < NEAR_MS for _, ends in self.turns)
        ]
        span_s = sum(row.duration_ms for row in parts) / 1000
        return sum(row.completed for row in parts) / span_s if span_s > 0 else None
