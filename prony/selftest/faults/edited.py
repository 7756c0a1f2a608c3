"""What no machine can be told to do, edited into the evidence of a real trial. Must not know the checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prony.evidence.trial import Evidence

FULL_MHZ, SLOW_MHZ = 3000.0, 2100.0


def clock(evidence: Evidence, level: Callable[[float], float]) -> Evidence:
    """As if the CPU clock had been this many MHz at each share (0..1) of the window."""
    window = evidence.engine.window if evidence.engine is not None else None
    if window is None or evidence.host_window is None:
        return evidence

    def mhz(t_ms: float) -> float:
        return level(min(1.0, max(0.0, (t_ms - window.opened_ms) / (window.duration_s * 1000))))

    rows = tuple(row.model_copy(update={"mhz": mhz(row.t_ms)}) for row in evidence.host_rows)
    edges = {"mhz_open": level(0.0), "mhz_close": level(1.0)}
    host = evidence.host_window.model_copy(update=edges)
    return evidence.model_copy(update={"host_rows": rows, "host_window": host})


def _dip(share: float) -> float:
    return SLOW_MHZ if 0.3 < share < 0.9 else FULL_MHZ


clock_dips = partial(clock, level=_dip)
"""Low for more than half of the window, and full again at both edges."""
clock_level = partial(clock, level=lambda _: FULL_MHZ)
clock_low = partial(clock, level=lambda _: SLOW_MHZ)


def quota_unreadable(evidence: Evidence) -> Evidence:
    """As if the control group's counters could not be read, as in some containers."""
    window = evidence.server_window
    changed = None if window is None else window.model_copy(update={"throttle": None})
    return evidence.model_copy(update={"server_window": changed})
