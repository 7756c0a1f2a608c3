"""The measured window of a trial."""

from __future__ import annotations

from prony.evidence.engine import Counters, Histogram, StepFigures, Window
from prony.evidence.trial import Evidence

SHORTEST_S = 1e-6
"""Shortest window with a rate. A hundred requests to a fast server take less than a millisecond."""


def measured(evidence: Evidence) -> Window | None:
    """The measured window; None if missing or empty."""
    if evidence.engine is None or evidence.engine.window is None:
        return None
    window = evidence.engine.window
    return window if window.duration_s >= SHORTEST_S else None


def request_times(of: Window | StepFigures) -> Histogram | None:
    """From the start of the connect, if any, else from the actual send: never the send lag."""
    return of.response_time or of.service_time


def expectations_missed(counters: Counters) -> int:
    """Responses that missed an expectation or lacked a value to capture."""
    return sum(
        count for kind, count in counters.errors.items() if kind.startswith("expect_") or kind == "capture"
    )
