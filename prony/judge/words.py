"""Small helpers that every check shares: how numbers are written, how *unknown* is said. Must not know any
formula."""

from __future__ import annotations

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.finding import Finding, Status
from prony.numbers import milliseconds, number, percent

__all__ = ["SHORTEST_S", "measured", "milliseconds", "no_window", "number", "percent", "unknown", "worst"]

SHORTEST_S = 0.001
"""A window below a millisecond is a slip of a clock, not a measurement."""


def measured(evidence: Evidence) -> Window | None:
    """The measured window, None when the engine reported none or one without length."""
    if evidence.engine is None or evidence.engine.window is None:
        return None
    window = evidence.engine.window
    return window if window.duration_s >= SHORTEST_S else None


def unknown(check: str, reason: str, *, limit: str = "", advice: str = "", source: str = "") -> Finding:
    """A finding that says what could not be read."""
    return Finding(
        check=check, status=Status.UNKNOWN, reason=reason, limit=limit, advice=advice, source=source
    )


def no_window(check: str, *, limit: str = "", source: str = "") -> Finding:
    """The finding of a check whose window is missing."""
    return unknown(check, "the engine reported no measured window", limit=limit, source=source)


def worst(*statuses: Status) -> Status:
    """The worst of several partial results; unknown outweighs valid, never the other way."""
    for status in (Status.INVALID, Status.SUSPECT, Status.UNKNOWN):
        if status in statuses:
            return status
    return Status.VALID
