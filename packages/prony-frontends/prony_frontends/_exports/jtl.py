"""JMeter's sample log (JTL, CSV) for its report generator: a line per request of each included trial.

A stored trial has a histogram and one-second rows instead of single requests, so the samples are synthetic:
as many as there were, with the histogram's times, spread over the seconds by responses. Counts, rates, errors
and percentiles are the trial's; the order of times is unknown, as the note says (`prony jmeter -l` writes
real samples).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http.client import responses
from itertools import chain, islice, repeat

import numpy as np
from numpy.typing import NDArray

from prony.errors import UsageError
from prony.evidence.engine import Histogram, Window
from prony.judge.histogram import HistogramError, decode
from prony.judge.window import request_times
from prony.report.cell_view import CellView
from prony.report.exports import Exported, Format
from prony.report.exports.csv import line
from prony.report.result import ResultView
from prony_frontends._exports.recorded import Recorded, note, recorded

COLUMNS = ("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType",
           "success", "failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL", "Latency",
           "IdleTime", "Connect")  # fmt: skip
GOLDEN = 0.6180339887498949
"""Its multiples modulo 1 are equidistributed (Weyl's sequence): every second gets short and long times."""
EXPECTED = ("expect_", "capture")
"""Kinds of errors with a response."""
MOST_SAMPLES = 50_000_000
"""Of a group, some gigabytes of memory."""
AT_ONCE = 10_000
"""Lines per chunk of text."""
MADE = (
    "samples are synthetic, from each window's histogram and rows: counts, rates and percentiles are the "
    "trial's, the order of times is not; failed requests without a time have elapsed 0"
)


@dataclass(frozen=True, slots=True)
class _Group:
    """Requests of a window with one label."""

    label: str
    times: Histogram | None
    completed: int
    failed: int
    status: Mapping[str, int]
    errors: Mapping[str, int]


def write(view: ResultView) -> Exported:
    """The heading, and a line per request. Raises UsageError when no trial is included."""
    included = recorded(view)
    several = len({cell.label for cell in view.cells}) > 1
    cell_of = {trial.record.id: cell for cell in view.cells for trial in cell.every}

    def pieces() -> Iterator[str]:
        yield ",".join(COLUMNS) + "\n"
        for trial in included:
            yield from _trial(trial, cell_of[trial.trial.record.id], several)

    return Exported(pieces(), "; ".join(filter(None, (MADE, note(view, included)))))


def _trial(one: Recorded, cell: CellView, several: bool) -> Iterator[str]:
    window, record = one.window, one.trial.record
    before = f"{cell.label}: " if several else ""
    users = window.users or 1
    thread = f"{record.server} {record.block + 1}-1"
    each_in = _each(window.bytes_received, window.completed)
    each_out = _each(window.bytes_sent, window.sent)
    for group in _groups(window, record.workload, one.times):
        elapsed, failure = _samples(group)
        ends = _ends(one, len(elapsed))
        codes = _codes(group, len(elapsed))

        @cache
        def around(kind: str, code: str, label: str = before + group.label) -> tuple[str, str]:
            """The parts of a line before and after the time, shared by most samples."""
            answered = not kind or kind.startswith(EXPECTED)
            fields = (
                label,
                code if answered else f"Non HTTP response code: {kind}",
                responses.get(int(code), "") if answered else f"Non HTTP response message: {kind}",
                thread,
                "text",
                "false" if kind else "true",
                kind.replace("_", " "),
                each_in if answered else 0,
                each_out,
                users,
                users,
                "null",
            )
            return line(fields).rstrip("\n"), ",0,0\n"

        order = np.argsort(ends, kind="stable")
        starts_ms = np.rint(ends - elapsed).astype(np.int64)[order].tolist()
        elapsed_ms = np.rint(elapsed).astype(np.int64)[order].tolist()
        places = order.tolist()
        for begin in range(0, len(places), AT_ONCE):
            lines = []
            for at in range(begin, min(begin + AT_ONCE, len(places))):
                head, tail = around(failure[places[at]], codes[places[at]])
                lines.append(f"{starts_ms[at]},{elapsed_ms[at]},{head},{elapsed_ms[at]}{tail}")
            yield "".join(lines)


def _groups(window: Window, workload: str, times: Histogram) -> list[_Group]:
    """Groups by step where the workload has several; per step only the number of errors is known."""
    if not window.steps:
        return [_Group(workload, times, window.completed, window.failed, window.status, window.errors)]
    return [
        _Group(
            step.name, request_times(step), step.completed, step.failed, step.status, {"failed": step.failed}
        )
        for step in window.steps
    ]


def _samples(group: _Group) -> tuple[NDArray[np.float64], list[str]]:
    """Times in ms, ascending, and each sample's kind of error or ''. Timeouts have the longest times."""
    _refuse_beyond(group.completed + group.failed, group)
    values = np.empty(0)
    if group.times is not None and group.times.count:
        try:
            decoded = decode(group.times)
        except HistogramError as fault:
            raise UsageError(f"the stored histogram of {group.label} is damaged: {fault}") from fault
        _refuse_beyond(int(decoded.counts.sum()), group)
        values = np.repeat(decoded.middle_ns, decoded.counts.astype(np.int64)) / 1e6
    failure = [""] * len(values)
    timed_out = max(0, len(values) - group.completed)
    for at in range(len(values) - timed_out, len(values)):
        failure[at] = "timeout"
    missed = [(kind, n) for kind, n in group.errors.items() if kind.startswith(EXPECTED)]
    places = iter(np.argsort(_spread(len(values) - timed_out), kind="stable"))
    for kind, count in missed:
        for place in islice(places, max(0, min(count, len(values)))):
            failure[int(place)] = kind
    left = max(0, group.failed - timed_out - sum(count for _, count in missed))
    without: list[str] = []
    for kind, count in group.errors.items():
        if kind != "timeout" and not kind.startswith(EXPECTED):
            without += [kind] * min(count, left - len(without))
    without += ["failed"] * (left - len(without))
    return np.concatenate([values, np.zeros(len(without))]), failure + without


def _refuse_beyond(samples: int, group: _Group) -> None:
    if samples > MOST_SAMPLES:
        raise UsageError(
            f"{group.label}: {samples:,} requests, JTL takes {MOST_SAMPLES:,}; use another format"
        )


def _ends(one: Recorded, count: int) -> NDArray[np.float64]:
    """Unix ms at which each of `count` samples ended, distributed over the seconds by responses."""
    engine = one.trial.record.evidence.engine
    assert engine is not None
    opened_ms, length_ms = one.window.opened_ms, one.window.duration_s * 1000
    rows = [row for row in engine.rows if row.in_window and row.completed]
    edges = [0.0, *(min(max(0.0, row.t_ms - opened_ms), length_ms) for row in rows)]
    shares = np.cumsum([0, *(row.completed for row in rows)], dtype=np.float64)
    if len(rows) < 2:
        edges, shares = [0.0, length_ms], np.asarray([0.0, 1.0])
    base_ms = one.began.timestamp() * 1000
    after_ms = np.interp(_spread(count), shares / shares[-1], np.asarray(edges))
    return np.asarray(base_ms + after_ms, dtype=np.float64)


def _codes(group: _Group, count: int) -> list[str]:
    """The status of each sample, evenly interleaved."""
    each = (repeat(code, min(n, count)) for code, n in sorted(group.status.items()))
    dealt = list(islice(chain.from_iterable(each), count))
    dealt += [next(iter(sorted(group.status)), "200")] * (count - len(dealt))
    places = np.argsort(_spread(count), kind="stable")
    codes = [""] * count
    for place, code in zip(places, dealt, strict=True):
        codes[int(place)] = code
    return codes


def _spread(count: int) -> NDArray[np.float64]:
    return np.asarray((np.arange(1, count + 1) * GOLDEN) % 1.0, dtype=np.float64)


def _each(total: int | None, count: int) -> int:
    return round(total / count) if total and count else 0


FORMAT = Format("JMeter's log of samples (JTL)", write, ".jtl")
