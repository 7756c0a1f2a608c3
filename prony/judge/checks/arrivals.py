"""arrivals: were Poisson arrivals really Poisson."""

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
"""Below alpha × this, chance does not explain the gaps; between the two, one clean run in 1/alpha
is unlucky.
"""
BURSTY = "arrivals were as bursty as a Poisson process"


class ArrivalsLimits(DeclaredLimits):
    arrivals_alpha: Share = 0.01
    """Significance level of the Kolmogorov-Smirnov test of the gaps (Lancet: twice the critical value)."""

    arrivals_resolution_us: NotNegative = 5.0
    """A send and a clock reading take a thread at least so long, whatever CPU time was read of it."""


@check(ArrivalsLimits, order=120)
def arrivals(evidence: Evidence, limits: ArrivalsLimits) -> Finding | None:
    """Kolmogorov-Smirnov test of the gaps between sends. Left out unless arrivals are Poisson."""
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
            f"a thread of the client worked for {percent(busy)} of the time: its sends cannot be told from "
            "other arrivals",
            provided=BURSTY,
            limit=limit,
            source=SOURCE,
            advice="more threads or CPUs for the client",
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
        f"({tested.allowed:.4f} allowed for sends that wait for each other), p = {chance:.2g}",
        advice="arrivals are more or less bursty than a Poisson process, which changes queueing; see schedule"
        if unlike
        else "",
        source=SOURCE,
    )


def _chance(distance: float, gaps: int) -> float:
    """p-value of this distance. Imported here: scipy.stats costs half a second of CPU, and few
    loads need it.
    """
    from scipy import stats as untyped_stats

    stats: Any = untyped_stats
    return float(stats.kstwo.sf(distance, gaps))


@dataclass(frozen=True, slots=True)
class _Tested:
    """A distance, among which gaps it was looked for, and what of it a thread that is at work makes."""

    distance: float
    among: str
    allowed: float


def _busy(evidence: Evidence, window: Window, limits: ArrivalsLimits) -> float:
    """Share of the time in which the busiest thread could not send: its work, and at least its sends."""
    rate, engine = evidence.load.offered_per_s, evidence.engine
    sends = 0.0
    if rate is not None and engine is not None:
        sends = rate / max(1, len(engine.ready.threads)) * limits.arrivals_resolution_us * 1e-6
    return max(sends, window.busiest_thread_share or 0.0)


def _tested(window: Window, distance: float, busy: float) -> _Tested | None:
    """A thread that takes c for a request sends as an M/D/1 queue of load ρ = rate × c lets requests go: no
    two within c, which are 1 - exp(-ρ) of all gaps, and from c on at most exp(-ρ) - (1 - ρ) away. So only
    longer gaps are looked at; None where none of the distances told begins there. What was stored before
    such distances were told has the first allowance.
    """
    short = -math.expm1(-busy)
    if not window.arrival_gaps_ks_from:
        return _Tested(distance, "", short)
    found = next(((least, away) for least, away in window.arrival_gaps_ks_from if least >= short), None)
    if found is None:
        return None
    return _Tested(found[1], f" longer than the shortest {percent(found[0])}", math.exp(-busy) - (1 - busy))
