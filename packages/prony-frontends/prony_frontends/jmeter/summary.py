"""Lines of JMeter's summariser."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

NAME = "summary"


@dataclass(frozen=True, slots=True)
class Count:
    """Counts of requests over a time."""

    requests: int
    errors: int
    elapsed_s: float
    mean_ms: float
    min_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Threads:
    """Active, started and finished users."""

    active: int
    started: int
    finished: int


def line(count: Count, threads: Threads | None = None) -> str:
    """`summary + …` with current threads, `summary = …` without."""
    sign = "=" if threads is None else "+"
    rate = count.requests / count.elapsed_s if count.elapsed_s > 0 else 0.0
    share = 100 * count.errors / count.requests if count.requests else 0.0
    shown = (
        f"{NAME} {sign} {count.requests:6d} in {duration(count.elapsed_s)} = {rate:6.1f}/s"
        f" Avg: {int(count.mean_ms):5d} Min: {int(count.min_ms):5d} Max: {int(count.max_ms):5d}"
        f" Err: {count.errors:5d} ({share:.2f}%)"
    )
    if threads is None:
        return shown
    return f"{shown} Active: {threads.active} Started: {threads.started} Finished: {threads.finished}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def moment(unix_s: float) -> str:
    """A time in the format of JMeter's first and last lines."""
    at = datetime.fromtimestamp(unix_s, UTC)
    return f"@ {at.year} {at:%b} {at.day} {at:%H:%M:%S} UTC ({int(unix_s * 1000)})"
