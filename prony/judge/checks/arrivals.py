"""arrivals: were Poisson arrivals really Poisson. Must not know how the gaps were drawn."""

from __future__ import annotations

from typing import Any

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.finding import Finding, Status, no_window, unknown
from prony.judge.window import measured
from prony.numbers import number

CHECK = "arrivals"
SOURCE = "Lancet tests this, against twice the critical value"
INVALID_ALPHA_FACTOR = 1e-4
"""Below alpha × this, chance does not explain the gaps; between the two, one clean run in 1/alpha
is unlucky.
"""


class ArrivalsLimits(DeclaredLimits):
    arrivals_alpha: Share = 0.01
    """Significance level of the Kolmogorov-Smirnov test of the gaps (Lancet: twice the critical value)."""

    arrivals_resolution_us: NotNegative = 5.0
    """The shortest gap between two sends of one thread: one send and one clock reading. It shifts the
    distribution of the gaps by up to rate per thread × resolution, which is allowed for.
    """


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
        return unknown(CHECK, "the gaps between sends were not tested", limit=limit, source=SOURCE)
    allowed = _resolution(evidence, limits)
    chance = _chance(max(0.0, distance - allowed), gaps)
    status = Status.VALID
    if chance < limits.arrivals_alpha * INVALID_ALPHA_FACTOR:
        status = Status.INVALID
    elif chance < limits.arrivals_alpha:
        status = Status.SUSPECT
    return Finding(
        check=CHECK,
        status=status,
        value=distance,
        limit=limit,
        reason=f"KS distance {distance:.4f} over {number(gaps)} gaps "
        f"({allowed:.4f} allowed for send resolution), p = {chance:.2g}",
        advice=""
        if status is Status.VALID
        else "arrivals are more or less bursty than a Poisson process, which changes queueing; see schedule",
        source=SOURCE,
    )


def _chance(distance: float, gaps: int) -> float:
    """p-value of this distance. Imported here: scipy.stats costs half a second of CPU, and few
    loads need it.
    """
    from scipy import stats as untyped_stats

    stats: Any = untyped_stats
    return float(stats.kstwo.sf(distance, gaps))


def _resolution(evidence: Evidence, limits: ArrivalsLimits) -> float:
    """KS distance that the resolution of sends alone can cause: the density of the gaps is at most a thread's
    rate.
    """
    rate, engine = evidence.load.offered_per_s, evidence.engine
    if rate is None or engine is None:
        return 0.0
    return rate / max(1, len(engine.ready.threads)) * limits.arrivals_resolution_us * 1e-6
