"""The measured window of a trial, for checks, figures and tables."""

from __future__ import annotations

from prony.evidence.engine import Counters, Histogram, StepFigures, Window
from prony.evidence.trial import Evidence

SHORTEST_S = 1e-6
"""Below a microsecond a window has no length to divide by. A hundred requests to a fast server take less than
a millisecond, and are counted and judged as any others."""


def measured(evidence: Evidence) -> Window | None:
    """The measured window; None when the engine reported none, or one of no length."""
    if evidence.engine is None or evidence.engine.window is None:
        return None
    window = evidence.engine.window
    return window if window.duration_s >= SHORTEST_S else None


def request_times(of: Window | StepFigures) -> Histogram | None:
    """From where a request begins: the start of its connect where it opened a connection, else its send.

    Not from the intended send, which the load generator decides: for what the server made users wait.
    """
    return of.response_time or of.service_time


def expectations_missed(counters: Counters) -> int:
    """Responses that missed an expectation or lacked a value to capture."""
    return sum(
        count for kind, count in counters.errors.items() if kind.startswith("expect_") or kind == "capture"
    )
