"""The parts of a request's time, as cells and as lines of text. Must not know how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.evidence.engine import Histogram
from prony.judge.histogram import HistogramError, decode, needed_samples
from prony.report.model import TrialView
from prony.report.wording import ABSENT, number, significant

HEADINGS = ("part", "samples", "mean, ms", "p50, ms", "p99, ms")


@dataclass(frozen=True, slots=True)
class PartLine:
    """One part over one window; times that the samples do not support are None."""

    name: str
    """`connect`, `tls`, `send`, `wait` or `receive`."""
    count: int
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None


def parts_of(trial: TrialView) -> list[PartLine]:
    """The parts of one trial; none unless they were asked for (`prony load --parts`) and may be printed.
    Connecting and the TLS handshake are there when connections were opened within the window.
    """
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    if window is None or window.wait_time is None or trial.rejected_because is not None:
        return []
    found = {
        "connect": window.connect_time,
        "tls": window.tls_time,
        "send": window.send_time,
        "wait": window.wait_time,
        "receive": window.receive_time,
    }
    return [_line(name, histogram) for name, histogram in found.items() if histogram is not None]


def part_cells(trials: Sequence[TrialView]) -> list[tuple[str, ...]]:
    """A row per part under HEADINGS, of a single trial; empty otherwise."""
    lines = parts_of(trials[0]) if len(trials) == 1 else []
    return [
        (line.name, number(line.count), _ms(line.mean_ms), _ms(line.p50_ms), _ms(line.p99_ms))
        for line in lines
    ]


def part_lines(trials: Sequence[TrialView]) -> list[str]:
    """The same as lines of text of equal columns, the headings first; empty when there are no parts."""
    cells = part_cells(trials)
    if not cells:
        return []
    rows = [HEADINGS, *cells]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _ms(value: float | None) -> str:
    return ABSENT if value is None else significant(value, 3)


def _line(name: str, histogram: Histogram) -> PartLine:
    def percentile_ms(percentile: float) -> float | None:
        if histogram.count < needed_samples(percentile):
            return None
        try:
            ns = decode(histogram).percentile_ns(percentile)
        except HistogramError:
            return None
        return None if ns is None else ns / 1e6

    mean_ms = None if histogram.mean_ns is None else histogram.mean_ns / 1e6
    return PartLine(name, histogram.count, mean_ms, percentile_ms(50.0), percentile_ms(99.0))
