"""HdrHistogram's interval log (.hlog): histograms of each trial's window, in ns. Pure.

Format 1.3 of HdrHistogram's `HistogramLogWriter`. An interval is a window, tagged with its trial; a single
trial has no tag, so that tools read it without options.
"""

from __future__ import annotations

from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_frontends._exports.recorded import Recorded, note, recorded

NS_PER_MS = 1e6


def write(view: ResultView) -> Exported:
    """A line per included trial. Raises UsageError when there is none."""
    included = recorded(view)
    start = min(trial.began for trial in included)  # clocks may go backwards
    since = f"{start.timestamp():.3f} (seconds since epoch)"
    lines = [
        f"#[Prony {view.id}: times in ns, Interval_Max in ms]",
        "#[Histogram log format version 1.3]",
        f"#[BaseTime: {since}]",
        f"#[StartTime: {since}, {start:%a %b %d %H:%M:%S} UTC {start:%Y}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
        *(_line(trial, start.timestamp(), tagged=len(included) > 1) for trial in included),
    ]
    return Exported("\n".join(lines) + "\n", note(view, included))


def _line(one: Recorded, base_s: float, *, tagged: bool) -> str:
    tag = f"Tag={one.trial.record.id}," if tagged else ""
    longest_ms = (one.times.max_ns or 0) / NS_PER_MS
    after_s = one.began.timestamp() - base_s
    return f"{tag}{after_s:.3f},{one.window.duration_s:.3f},{longest_ms:.3f},{one.times.v2}"


FORMAT = Format("HdrHistogram's interval log, a window per line", write, ".hlog")
