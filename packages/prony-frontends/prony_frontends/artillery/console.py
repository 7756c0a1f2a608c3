"""What Artillery prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import IO

from prony.evidence.engine import IntervalRow
from prony.report.progress_state import SilentProgress
from prony_frontends.artillery.metrics import Metrics
from prony_frontends.artillery.phases import NamedPhase

WIDTH = 79
SHOWN = ("min", "max", "mean", "median", "p95", "p99")


def padded(label: str, value: object) -> str:
    """`label .... value`, with dots up to column 79."""
    short = label if len(label) <= WIDTH else label[: WIDTH - 3] + "..."
    return f"{short} {'.' * (WIDTH - len(short))} {value}"


def metrics(report: Metrics, hidden: tuple[str, ...] = ()) -> str:
    """All metrics, sorted by name."""
    lines: list[str] = []
    names = {*report.counters, *report.rates, *report.summaries}
    for name in sorted(name for name in names if not name.startswith(hidden)):
        if name in report.counters:
            lines.append(padded(f"{name}:", report.counters[name]))
        if name in report.summaries:
            lines.append(f"{name}:")
            values = report.summaries[name]
            lines += [padded(f"  {key}:", values[key]) for key in SHOWN if values.get(key) is not None]
        if name in report.rates:
            lines.append(f"{padded(f'{name}:', report.rates[name])}/sec")
    return "\n".join(lines) or "No measurements recorded during this period"


def clock(unix_ms: float) -> str:
    """Local time with UTC offset: 09:43:20(+0000)."""
    return datetime.fromtimestamp(unix_ms / 1000).astimezone().strftime("%H:%M:%S(%z)")


def period(report: Metrics) -> str:
    """The metrics of a ten-second period, with a heading."""
    title = f"Metrics for period to: {clock(report.period_ms + 10_000)}"
    rule = "-" * len(title)
    width_s = (report.last_ms - report.first_ms) / 1000
    return f"{rule}\n{title} (width: {width_s:g}s)\n{rule}\n\n{metrics(report)}\n\n"


def summary(report: Metrics, ended_ms: float, hidden: tuple[str, ...] = ()) -> str:
    """The final heading and all metrics."""
    title = f"Summary report @ {clock(ended_ms)}"
    rule = "-" * len(title)
    total = f"All VUs finished. Total time: {duration((report.last_ms - report.first_ms) / 1000)}\n"
    return f"{total}\n{rule}\n{title}\n{rule}\n\n{metrics(report, hidden)}"


def duration(seconds: float) -> str:
    """Days, hours, minutes and seconds in words."""
    whole = int(seconds)
    parts = [
        (whole // 86_400, "day"),
        (whole // 3600 % 24, "hour"),
        (whole // 60 % 60, "minute"),
        (whole % 60, "second"),
    ]
    first = next((index for index, (count, _) in enumerate(parts) if count), 3)
    return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts[first:])


class Live(SilentProgress):
    """Prints the start and end of phases, and metrics every ten seconds of clock time."""

    def __init__(
        self,
        phases: tuple[NamedPhase, ...],
        stream: IO[str],
        now_ms: Callable[[], float],
        parts: Callable[[list[IntervalRow], int], list[Metrics]],
    ) -> None:
        self._events = _events(phases)
        self._next = next(self._events, None)
        self._stream = stream
        self._now_ms = now_ms
        self._parts = parts
        self._rows: list[IntervalRow] = []
        self._began_ms: int | None = None

    def phase(self, name: str, expected_s: float | None) -> None:  # noqa: ARG002 - the protocol's
        if name == "window":
            self._told(0.0)

    def row(self, row: IntervalRow) -> None:
        if self._began_ms is None:
            self._began_ms = round(self._now_ms() - row.t_ms)
        self._told(row.t_ms / 1000)
        before = self._rows[-1:] and self._parts(self._rows, self._began_ms)
        self._rows.append(row)
        after = self._parts(self._rows, self._began_ms)
        if before and len(after) > len(before):
            print(period(before[-1]), file=self._stream)
            self._rows = [row]

    def ended(self, elapsed_s: float) -> None:
        """Prints the rest before the summary."""
        self._told(elapsed_s)
        if self._rows and self._began_ms is not None:
            for part in self._parts(self._rows, self._began_ms):
                print(period(part), file=self._stream)

    def _told(self, t_s: float) -> None:
        while self._next is not None and self._next[0] <= t_s + 1e-6:
            print(f"{self._next[1]} {clock(self._now_ms())}\n", file=self._stream)
            self._stream.flush()
            self._next = next(self._events, None)


def _events(phases: tuple[NamedPhase, ...]) -> Iterator[tuple[float, str]]:
    at_s = 0.0
    for index, phase in enumerate(phases):
        label = f"{phase.name} (index: {index}, duration: {phase.duration_s:g}s)"
        yield at_s, f"Phase started: {label}"
        at_s += phase.duration_s
        yield at_s, f"Phase completed: {label}"
