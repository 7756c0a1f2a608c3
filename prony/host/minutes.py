"""Merges rows of seconds into a row of a minute."""

from __future__ import annotations

from collections.abc import Sequence

from prony.evidence.host import HostRow

SHARES = ("server_cpus_busy", "client_cpus_busy", "server_cpu", "mhz")

TimedRow = tuple[float, HostRow]
"""(CLOCK_MONOTONIC seconds at the row's end, the row)."""


def merged(rows: Sequence[TimedRow]) -> TimedRow:
    """A row over all of these: mean shares, worst steal, sockets and memory at the end."""
    t_s, last = rows[-1]
    changes: dict[str, float | None] = {
        name: _mean([(getattr(row, name), row.duration_ms) for _, row in rows]) for name in SHARES
    }
    changes["steal"] = max((row.steal for _, row in rows if row.steal is not None), default=None)
    changes["duration_ms"] = sum(row.duration_ms for _, row in rows)
    return t_s, last.model_copy(update=changes)


def _mean(values: Sequence[tuple[float | None, float]]) -> float | None:
    present = [(value, ms) for value, ms in values if value is not None and ms > 0]
    span_ms = sum(ms for _, ms in present)
    return sum(value * ms for value, ms in present) / span_ms if span_ms else None
