"""Trials as the CSV lines that experiment A's wrk script wrote: one line each, with exactly its columns.

Pure. Must not know where the lines go.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from prony.evidence.engine import Window
from prony.evidence.trial import TrialRecord
from prony.judge.histogram import HistogramError, decode, percentiles_ms
from prony.judge.window import measured
from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony.report.wording import counted

COLUMNS = (
    "timeStamp",
    "duration_microseconds",
    "num_requests",
    "total_bytes",
    "connect_errors",
    "read_errors",
    "write_errors",
    "error_status_codes",
    "timeouts",
    "requests_per_sec",
    "bytes_per_sec",
    "lat_min_microseconds",
    "lat_max_microseconds",
    "lat_mean_microseconds",
    "lat_stdev_microseconds",
    "lat_percentile_90_microseconds",
    "lat_percentile_95_microseconds",
    "lat_percentile_99_microseconds",
)
CONNECT = ("connect_refused", "connect_timeout", "connect_other", "tls", "address_unavailable", "descriptors")
READ = ("read", "premature_close", "protocol", "header_too_long", "answer_memory")
WRITE = ("write", "client")
TIMEOUT = ("timeout",)


def write(view: ResultView) -> Exported:
    """The heading and a line per trial that counts and has a measured window, in the order they ran."""
    text = to_csv(trial.record for trial in view.trials if trial.counts)
    out = sum(not trial.counts for trial in view.trials)
    return Exported(text, f"left out: {counted(out, 'trial')}, rejected or a control" if out else "")


def to_csv(records: Iterable[TrialRecord]) -> str:
    """The heading and a line per trial that has a measured window, in the order given."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        window = measured(record.evidence)
        if window is not None:
            writer.writerow(_line(record, window))
    return text.getvalue()


def _line(record: TrialRecord, window: Window) -> list[object]:
    def errors(kinds: Iterable[str]) -> int:
        return sum(window.errors.get(kind, 0) for kind in kinds)

    bad = sum(count for code, count in window.status.items() if int(code) >= 400)  # as wrk counts them
    received = window.bytes_received
    return [
        record.started_at.isoformat(),
        round(window.duration_s * 1e6),
        window.completed,
        "" if received is None else received,
        errors(CONNECT),
        errors(READ),
        errors(WRITE),
        bad,
        errors(TIMEOUT),
        f"{window.completed / window.duration_s:.2f}",
        "" if received is None else f"{received / window.duration_s:.2f}",
        *_latency(record, window),
    ]


def _latency(record: TrialRecord, window: Window) -> list[object]:
    """In µs: from the actual send, as wrk has it; of an open load from the intended one. What the samples do
    not support is left empty.
    """
    histogram = window.latency if record.evidence.load.model == "open" else window.service_time
    nothing: list[object] = [""] * 7
    if histogram is None or histogram.count == 0:
        return nothing
    try:
        decoded = decode(histogram)
    except HistogramError:
        return nothing
    mean_s = decoded.moment(1)
    variance = max(0.0, decoded.moment(2) - mean_s**2)
    found = percentiles_ms(decoded, confidence=0.99)
    least = "" if histogram.min_ns is None else f"{histogram.min_ns / 1e3:.0f}"
    most = histogram.max_ns / 1e3 if histogram.max_ns is not None else decoded.max_ns / 1e3
    tails = [found[percent] for percent in (90.0, 95.0, 99.0)]
    return [
        least,
        f"{most:.0f}",
        f"{mean_s * 1e6:.2f}",
        f"{variance**0.5 * 1e6:.2f}",
        *("" if value is None else f"{value * 1000:.0f}" for value in tails),
    ]


FORMAT = Format("the columns of experiment A's wrk script", write)
