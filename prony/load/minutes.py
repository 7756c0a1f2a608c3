"""Merges rows of seconds into a row of a minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from prony.evidence.engine import IntervalRow

SUMS = ("completed", "failed", "bytes_received", "connections_opened", "sent", "offered")
PERCENTILES = ("p50_ns", "p90_ns", "p99_ns", "latency_p50_ns", "latency_p99_ns")
LARGEST = ("max_ns", "loop_lag_p99_ns", "send_lag_p99_ns")


def merged(rows: Sequence[IntervalRow]) -> IntervalRow:
    """A row over all of these. Percentiles are medians of the rows', gauges those of the last row."""
    duration_ms = sum(row.duration_ms for row in rows)
    errors: Counter[str] = Counter()
    for row in rows:
        errors.update(row.errors)
    answered = [(row.mean_ns, row.completed) for row in rows if row.mean_ns is not None]
    weight = sum(completed for _, completed in answered)
    busy = [(row.client_cpu, row.duration_ms) for row in rows if row.client_cpu is not None]
    update: dict[str, object] = {
        "duration_ms": duration_ms,
        "in_window": all(row.in_window for row in rows),
        "errors": dict(errors),
        "mean_ns": sum(mean * n for mean, n in answered) / weight if weight else None,
        "client_cpu": sum(cpu * ms for cpu, ms in busy) / sum(ms for _, ms in busy) if busy else None,
    }
    for combine, names in ((_sum, SUMS), (_middle, PERCENTILES), (_most, LARGEST)):
        update |= {name: combine([getattr(row, name) for row in rows]) for name in names}
    return rows[-1].model_copy(update=update)


def same_part(before: IntervalRow, after: IntervalRow) -> bool:
    return before.in_window == after.in_window


def _sum(values: Sequence[int | None]) -> int | None:
    present = [value for value in values if value is not None]
    return sum(present) if len(present) == len(values) else None


def _most(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _middle(values: Sequence[int | None]) -> int | None:
    present = [value for value in values if value is not None]
    return round(median(present)) if present else None
