"""Trials as CSV lines with the columns of experiment A's wrk script. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from prony.evidence.engine import Window
from prony.evidence.trial import TrialRecord
from prony.judge.figures import times_ms
from prony.judge.times import headline_times
from prony.judge.window import measured
from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony.report.wording import counted

COLUMNS = (
    "timeStamp", "duration_microseconds", "num_requests", "total_bytes", "connect_errors", "read_errors",
    "write_errors", "error_status_codes", "timeouts", "requests_per_sec", "bytes_per_sec",
    "lat_min_microseconds", "lat_max_microseconds", "lat_mean_microseconds", "lat_stdev_microseconds",
    "lat_percentile_90_microseconds", "lat_percentile_95_microseconds", "lat_percentile_99_microseconds",
)  # fmt: skip
CONNECT = ("connect_refused", "connect_timeout", "connect_other", "tls", "address_unavailable", "descriptors")
READ = (
    "read", "premature_close", "tls_truncated", "protocol", "header_too_long", "answer_memory",
    "stream_reset", "goaway",
)  # fmt: skip
WRITE = ("write", "client")
TIMEOUT = ("timeout",)


def write(view: ResultView) -> Exported:
    """Heading, and a line per included trial with a measured window, in order of execution."""
    text = to_csv(trial.record for trial in view.trials if trial.counts)
    out = sum(not trial.counts for trial in view.trials)
    return Exported(text, f"left out: {counted(out, 'trial')}, without a figure or a control" if out else "")


def to_csv(records: Iterable[TrialRecord]) -> str:
    """Heading, and a line per trial with a measured window, in the given order."""
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
        *_latency(record),
    ]


def _latency(record: TrialRecord) -> list[object]:
    """In µs, from the actual send; open loads from the intended send. Too few samples: empty."""
    times = headline_times(record.evidence)
    if times is None:
        return [""] * 7
    mean_s = times.responses.moment(1)
    variance = max(0.0, times.responses.moment(2) - mean_s**2)
    quantiles_ms = times_ms(times)
    tails = [quantiles_ms.get(name) for name in ("p90_ms", "p95_ms", "p99_ms")]
    return [
        "" if times.shortest_ms is None else f"{times.shortest_ms * 1000:.0f}",
        f"{times.longest_ms * 1000:.0f}",
        f"{times.mean_ms * 1000:.2f}",
        f"{variance**0.5 * 1e6:.2f}",
        *("" if value is None else f"{value * 1000:.0f}" for value in tails),
    ]


FORMAT = Format("CSV with the columns of experiment A's wrk script", write, ".csv")
