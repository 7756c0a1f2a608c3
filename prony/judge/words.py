"""What every check shares: the measured window, the *unknown* finding, number formats. Must not know any
formula.
"""

from __future__ import annotations

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.finding import Finding, Status
from prony.numbers import milliseconds, number, percent

__all__ = ["SHORTEST_S", "measured", "milliseconds", "no_window", "number", "percent", "unknown", "worst"]

SHORTEST_S = 1e-6
"""Below a microsecond a window has no length to divide by. A hundred requests to a fast server take less than
a millisecond, and are counted and judged as any others."""


def measured(evidence: Evidence) -> Window | None:
    """The measured window; None when the engine reported none, or one of no length."""
    if evidence.engine is None or evidence.engine.window is None:
        return None
    window = evidence.engine.window
    return window if window.duration_s >= SHORTEST_S else None


def unknown(check: str, reason: str, *, limit: str = "", advice: str = "", source: str = "") -> Finding:
    """A finding that names what could not be read."""
    return Finding(
        check=check, status=Status.UNKNOWN, reason=reason, limit=limit, advice=advice, source=source
    )


def no_window(check: str, *, limit: str = "", source: str = "") -> Finding:
    """The finding of a check whose window is missing."""
    return unknown(check, "the engine reported no measured window", limit=limit, source=source)


def worst(*statuses: Status) -> Status:
    """The worst of several partial results; unknown outweighs valid."""
    for status in (Status.INVALID, Status.SUSPECT, Status.UNKNOWN):
        if status in statuses:
            return status
    return Status.VALID
