"""arrivals: do the gaps between sends follow a Poisson process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.finding import Finding, no_window, unread
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "arrivals"
SOURCE = "Lancet tests this, against twice the critical value"
NO_CHANCE = 1e-4
"""Below alpha × this, chance does not explain the gaps; above, 1 clean run in 1/alpha falls."""
BURSTY = "the arrivals were Poisson"


class ArrivalsLimits(DeclaredLimits):
    arrivals_alpha: Share = 0.01
    """Significance level of the Kolmogorov-Smirnov test of the gaps (Lancet: twice the critical value)."""

    arrivals_resolution_us: NotNegative = 5.0
    """Shortest time of a thread for a send and a clock reading."""


@check(ArrivalsLimits, order=120)
def arrivals(evidence: Evidence, limits: ArrivalsLimits) -> Finding | None:
    """Only for Poisson arrivals."""
    if evidence.load.model != "open" or evidence.load.arrivals != "poisson":
        return None
    limit = f"p at least {limits.arrivals_alpha:g} (Kolmogorov-Smirnov against exponential gaps)"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    gaps, distance = window.arrival_gaps, window.arrival_gaps_ks
    if not gaps or distance is None:
        reason = "the gaps between sends were not tested"
        return unread(CHECK, reason, provided=BURSTY, limit=limit, source=SOURCE)
    busy = _busy(evidence, window, limits)
    tested = _tested(window, distance, busy)
    if tested is None:
        return unread(
            CHECK,
            f"a client thread was busy for {percent(busy)} of the window: too busy to test the gaps between "
            "its sends",
            provided=BURSTY,
            limit=limit,
            source=SOURCE,
            advice="give the client more threads or CPUs",
        )
    chance = _chance(max(0.0, tested.distance - tested.allowed), gaps)
    unlike = chance < limits.arrivals_alpha
    return Finding(
        check=CHECK,
        code="not_poisson" if unlike else "ok",
        conforms=chance >= limits.arrivals_alpha * NO_CHANCE,
        provided=BURSTY if unlike else "",
        value=tested.distance,
        limit=limit,
        reason=f"KS distance {tested.distance:.4f} over {number(gaps)} gaps{tested.among} "
        f"({tested.allowed:.4f} allowed for queued sends), p = {chance:.2g}",
        advice="burstiness other than Poisson changes queueing: see schedule" if unlike else "",
        source=SOURCE,
    )


def _chance(distance: float, gaps: int) -> float:
    from scipy import stats as untyped_stats

    stats: Any = untyped_stats
    return float(stats.kstwo.sf(distance, gaps))


@dataclass(frozen=True, slots=True)
class _Tested:
    distance: float
    among: str
    allowed: float


def _busy(evidence: Evidence, window: Window, limits: ArrivalsLimits) -> float:
    rate, engine = evidence.load.offered_per_s, evidence.engine
    sends = 0.0
    if rate is not None and engine is not None:
        sends = rate / max(1, len(engine.ready.threads)) * limits.arrivals_resolution_us * 1e-6
    return max(sends, window.busiest_thread_share or 0.0)


def _tested(window: Window, distance: float, busy: float) -> _Tested | None:
    """A thread that takes c per request sends like an M/D/1 queue of load ρ = rate × c: no gap below c, which
    would be 1 - exp(-ρ) of all, and above c at most exp(-ρ) - (1 - ρ) away. So only longer gaps are tested;
    None where no reported distance starts there. Evidence without such distances gets the first allowance.
    """
    short = -math.expm1(-busy)
    if not window.arrival_gaps_ks_from:
        return _Tested(distance, "", short)
    longer = next(((least, away) for least, away in window.arrival_gaps_ks_from if least >= short), None)
    if longer is None:
        return None
    return _Tested(longer[1], f" longer than the shortest {percent(longer[0])}", math.exp(-busy) - (1 - busy))
