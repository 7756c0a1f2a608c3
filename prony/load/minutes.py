"""Merges rows of seconds into a row of a minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from prony.evidence.engine import IntervalRow


def merged(rows: Sequence[IntervalRow]) -> IntervalRow:
    """A row over all of these: sums of counts and durations, gauges of the last row, weighted means, and
    medians of the rows' percentiles (those of the whole cannot be computed).
    """
    last = rows[-1]
    duration_ms = sum(row.duration_ms for row in rows)
    errors: Counter[str] = Counter()
    for row in rows:
        errors.update(row.errors)
    answered = [(row.mean_ns, row.completed) for row in rows if row.mean_ns is not None]
    weight = sum(completed for _, completed in answered)
    busy = [(row.client_cpu, row.duration_ms) for row in rows if row.client_cpu is not None]
    return last.model_copy(
        update={
            "duration_ms": duration_ms,
            "in_window": all(row.in_window for row in rows),
            "completed": sum(row.completed for row in rows),
            "failed": sum(row.failed for row in rows),
            "errors": dict(errors),
            "bytes_received": _sum([row.bytes_received for row in rows]),
            "connections_opened": _sum([row.connections_opened for row in rows]),
            "sent": _sum([row.sent for row in rows]),
            "offered": _sum([row.offered for row in rows]),
            "mean_ns": sum(mean * n for mean, n in answered) / weight if weight else None,
            "p50_ns": _middle([row.p50_ns for row in rows]),
            "p90_ns": _middle([row.p90_ns for row in rows]),
            "p99_ns": _middle([row.p99_ns for row in rows]),
            "latency_p50_ns": _middle([row.latency_p50_ns for row in rows]),
            "latency_p99_ns": _middle([row.latency_p99_ns for row in rows]),
            "max_ns": _most([row.max_ns for row in rows]),
            "client_cpu": sum(cpu * ms for cpu, ms in busy) / sum(ms for _, ms in busy) if busy else None,
            "loop_lag_p99_ns": _most([row.loop_lag_p99_ns for row in rows]),
            "send_lag_p99_ns": _most([row.send_lag_p99_ns for row in rows]),
        }
    )


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
