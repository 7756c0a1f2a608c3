"""Times that a window is judged by. Failed requests, and those due and unsent, exceed any response."""

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

UNLIKE = 0.05
"""Latencies whose variance exceeds that of service times by more than this need rows of their own."""
OF_SESSIONS = ("p50_ms", "p95_ms", "p99_ms")


def headline(window: Window, model: str) -> Histogram | None:
    """Open loop: from the intended send; else from the connect, if any, or the actual send."""
    return window.latency if model == "open" else request_times(window)


def headline_times(evidence: Evidence) -> Times | None:
    """The figures' times with the failed requests; None when unreadable."""
    window = measured(evidence)
    return None if window is None else window_times(headline(window, evidence.load.model), evidence)


def window_times(histogram: Histogram | None, evidence: Evidence) -> Times | None:
    """A request histogram of the window with the failed requests; None when unreadable."""
    window = measured(evidence)
    if window is None:
        return None
    return _by_seconds(
        read_times(histogram, window.completed, without_response(evidence)), evidence, histogram
    )


def _by_seconds(times: Times | None, evidence: Evidence, histogram: Histogram | None = None) -> Times | None:
    window, engine = measured(evidence), evidence.engine
    if times is None or window is None or engine is None:
        return times
    watched = read_times(window.service_time, window.completed, 0)
    if watched is None:
        return times
    rows = full_rows(engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000)
    if histogram is not None and histogram is window.latency and not _alike(times, watched):
        has_latency = all(row.latency_p50_ns is not None for row in rows if row.completed)
        # Without latency in the rows only the mean is lost; percentiles then cluster as service times do.
        return replace(
            times, seconds=Seconds.of_latencies(rows), watched=None if has_latency else watched.responses
        )
    return replace(times, seconds=Seconds.of(rows), watched=watched.responses)


def _alike(times: Times, watched: Times) -> bool:
    def variance(of: Times) -> float:
        return of.responses.moment(2) - of.responses.moment(1) ** 2

    return variance(times) <= (1 + UNLIKE) * max(0.0, variance(watched))


def without_response(evidence: Evidence) -> int:
    """Requests of the window without a response, and those due in it and never sent."""
    window, engine = measured(evidence), evidence.engine
    if window is None or engine is None:
        return 0
    unsent = min(window.due_unsent or 0, engine.totals.due_unsent or 0)
    return max(0, window.failed - expectations_missed(window)) + unsent


def step_times(step: StepFigures, evidence: Evidence) -> Times | None:
    """Where responses missed an expectation only timeouts count as failed: the rest is not known."""
    window = measured(evidence)
    countable = window is not None and not expectations_missed(window) and step in window.steps
    return _by_seconds(
        read_times(request_times(step), step.completed, step.failed if countable else 0), evidence
    )


def session_times(evidence: Evidence) -> Times | None:
    window = measured(evidence)
    return None if window is None else _by_seconds(plain_times(window.session_time), evidence)


def plain_times(histogram: Histogram | None) -> Times | None:
    return None if histogram is None else read_times(histogram, histogram.count, 0)


def read_times(histogram: Histogram | None, completed: int, failed: int) -> Times | None:
    """`failed` of `completed + failed` have no response; timeouts are the histogram's longest samples."""
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
    requests = supported(headline_times(evidence), confidence)
    sessions = supported(session_times(evidence), confidence)
    return requests | {f"session_{name}": sessions[name] for name in OF_SESSIONS if name in sessions}


def supported(times: Times | None, confidence: float = CONFIDENCE) -> dict[str, Percentile]:
    if times is None:
        return {}
    return {
        name: value
        for name, percentile in NAMED.items()
        if times.supports(percentile, confidence)
        and (value := times.percentile(percentile, confidence)) is not None
    }
