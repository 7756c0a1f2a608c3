"""Which times a window is judged by, and which of its requests have none.

A request that failed took longer than any that was answered, whatever it failed with: otherwise a percentile
is one of the survivors. A whole response has its time even when it is a wrong one; `errors` and `content`
judge that. An open load's requests that were due and not sent count as failed.
"""

from __future__ import annotations

from dataclasses import replace

from prony.evidence.engine import Histogram, StepFigures, Window
from prony.evidence.trial import Evidence
from prony.judge.clustering import Seconds
from prony.judge.histogram import read
from prony.judge.percentiles import CONFIDENCE, Percentile, Times
from prony.judge.window import expectations_missed, measured, request_times
from prony.steady.detector import full_rows

NAMED: dict[str, float] = {
    "p50_ms": 50.0,
    "p90_ms": 90.0,
    "p95_ms": 95.0,
    "p99_ms": 99.0,
    "p999_ms": 99.9,
}
"""The percentiles that are figures, by their names there."""

UNLIKE = 0.05
"""Latencies whose variance is this much above that of the service times are not told of by those."""
OF_SESSIONS = ("p50_ms", "p95_ms", "p99_ms")


def headline(window: Window, model: str) -> Histogram | None:
    """What the figures' times are: from the intended send in an open load; else from the start of the connect
    where requests opened connections; else from the actual send.
    """
    return window.latency if model == "open" else request_times(window)


def headline_times(evidence: Evidence) -> Times | None:
    """The figures' times, with what failed; None when there are none to read."""
    window = measured(evidence)
    return None if window is None else window_times(headline(window, evidence.load.model), evidence)


def window_times(histogram: Histogram | None, evidence: Evidence) -> Times | None:
    """One of the window's histograms of requests, with what failed; None when there is none to read."""
    window = measured(evidence)
    if window is None:
        return None
    return _by_seconds(
        read_times(histogram, window.completed, without_response(evidence)), evidence, histogram
    )


def _by_seconds(times: Times | None, evidence: Evidence, histogram: Histogram | None = None) -> Times | None:
    """With what the window's seconds show of correlation. Also times of a part of its requests, or of
    sessions: rows tell of all requests, so those are taken to cluster as all do.
    """
    window, engine = measured(evidence), evidence.engine
    if times is None or window is None or engine is None:
        return times
    watched = read_times(window.service_time, window.completed, 0)
    if watched is None:
        return times
    rows = full_rows(engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000)
    if histogram is not None and histogram is window.latency and not _alike(times, watched):
        told = all(row.latency_p50_ns is not None for row in rows if row.completed)
        # Of rows that tell no latency only the mean is lost; percentiles are then as the service times say.
        return replace(times, seconds=Seconds.of_latencies(rows), watched=None if told else watched.responses)
    return replace(times, seconds=Seconds.of(rows), watched=watched.responses)


def _alike(times: Times, watched: Times) -> bool:
    """Whether the times vary as much as those that the rows are mostly of: then the rows tell of both."""

    def variance(of: Times) -> float:
        return of.responses.moment(2) - of.responses.moment(1) ** 2

    return variance(times) <= (1 + UNLIKE) * max(0.0, variance(watched))


def without_response(evidence: Evidence) -> int:
    """Requests of the window that got none, and those that were due in it and were never sent."""
    window, engine = measured(evidence), evidence.engine
    if window is None or engine is None:
        return 0
    unsent = min(window.due_unsent or 0, engine.totals.due_unsent or 0)
    return max(0, window.failed - expectations_missed(window)) + unsent


def step_times(step: StepFigures, evidence: Evidence) -> Times | None:
    """Of one step. Where some responses missed an expectation it is not known which failures of a step had
    none; then those that timed out count.
    """
    window = measured(evidence)
    known = window is not None and not expectations_missed(window) and step in window.steps
    return _by_seconds(read_times(request_times(step), step.completed, step.failed if known else 0), evidence)


def session_times(evidence: Evidence) -> Times | None:
    """Of the window's sessions."""
    window = measured(evidence)
    return None if window is None else _by_seconds(plain_times(window.session_time), evidence)


def plain_times(histogram: Histogram | None) -> Times | None:
    """Of a histogram in which nothing can be missing."""
    return None if histogram is None else read_times(histogram, histogram.count, 0)


def read_times(histogram: Histogram | None, completed: int, failed: int) -> Times | None:
    """`failed` of `completed + failed` requests have no response; those that timed out are the longest
    samples of the histogram.
    """
    if histogram is None or histogram.count == 0:
        return None
    decoded = read(histogram)
    if decoded is None:
        return None
    timed_out = min(max(0, histogram.count - completed), histogram.count)
    longest_ns = histogram.max_ns if histogram.max_ns is not None else decoded.max_ns
    responses = decoded.without_longest(timed_out) if timed_out else decoded
    mean_ms = decoded.moment(1) * 1000 if histogram.mean_ns is None else histogram.mean_ns / 1e6
    shortest_ms = None if histogram.min_ns is None else histogram.min_ns / 1e6
    return Times(responses, max(timed_out, failed), longest_ns / 1e6, mean_ms, shortest_ms)


def percentiles(evidence: Evidence, confidence: float = CONFIDENCE) -> dict[str, Percentile]:
    """Those that the sample supports, by their names among the figures."""
    found = supported(headline_times(evidence), confidence)
    sessions = supported(session_times(evidence), confidence)
    return found | {f"session_{name}": sessions[name] for name in OF_SESSIONS if name in sessions}


def supported(times: Times | None, confidence: float = CONFIDENCE) -> dict[str, Percentile]:
    """The percentiles of NAMED for which there are enough requests."""
    if times is None:
        return {}
    return {
        name: value
        for name, percentile in NAMED.items()
        if times.supports(percentile, confidence)
        and (value := times.percentile(percentile, confidence)) is not None
    }
