"""How much may still be to come in the windows of a server's trials: which of their rows can tell, and the
bound of one trial or of several together. Must not know the limits that are in force, or findings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.window import measured
from prony.steady.detector import full_rows
from prony.steady.limits import SteadyLimits
from prony.steady.stretch import Stretch, still_to_come, stretch

DRIFTING = frozenset({"requests_per_s", "mean_ms", "p50_ms", "p99_ms", "server_cpu_us_per_request"})
"""Figures that change while a server approaches its plateau, as its throughput does."""


def drift(trials: Sequence[Evidence], limits: SteadyLimits | None = None) -> float | None:
    """Upper bound (95 %) on plateau less window, as a share, of these trials of one cell together: pooled, as
    trends that are weak in each of them are strong in all.

    None where the question is not asked: the rate changes by plan, a fixed protocol claims no more than its
    own run, or there is no trial. Infinite where the rows of a trial cannot tell.
    """
    asked = [one for one in trials if is_asked(one)]
    return bound_of([level_stretch(one, limits) for one in asked]) if asked else None


def bound_of(levels: Iterable[Stretch | None]) -> float:
    """The bound of these trials together, as a share; infinite where one of them cannot tell."""
    known = list(levels)
    stretches = [one for one in known if one is not None]
    found = still_to_come(stretches) if len(stretches) == len(known) else None
    return math.inf if found is None else math.expm1(found.bound)


def is_asked(evidence: Evidence) -> bool:
    """Whether a plateau is claimed at all."""
    return not evidence.load.phased and evidence.load.claim != "protocol"


def level_stretch(evidence: Evidence, limits: SteadyLimits | None = None) -> Stretch | None:
    """The window of a trial and the level rows before it; None without a window, or where too many rows have
    no value.

    Of the phases before, those with the window's CPUs that lead up to it, and the warm-up on other CPUs
    before those. What came earlier still (the published part of a cold server) is left out.
    """
    window = measured(evidence)
    if window is None or evidence.engine is None or evidence.load.phased:
        return None
    end_ms = window.opened_ms + window.duration_s * 1000
    rows = level_rows(full_rows(evidence.engine.rows, 0.0, end_ms), evidence.load)
    own_ms, elsewhere_ms = _moves(evidence)
    return stretch(
        [row for row in rows if row.t_ms - row.duration_ms >= own_ms],
        [row for row in rows if row.t_ms - row.duration_ms >= elsewhere_ms and row.t_ms <= own_ms],
        opens_ms=window.opened_ms,
        by_p50=evidence.load.model == "open",
        limits=limits,
    )


def level_rows(rows: Sequence[IntervalRow], load: LoadFacts) -> list[IntervalRow]:
    """Rows in which the full load was on: all users active, or arrivals at their full rate."""
    if load.model == "open":
        end_ms = math.inf if load.arrivals_end_s is None else load.arrivals_end_s * 1000
        return [
            row
            for row in rows
            if row.t_ms - row.duration_ms >= load.ramp_up_s * 1000 and row.t_ms <= end_ms + 0.5
        ]
    asked = load.at_once if load.populations else load.users
    if asked is None:
        return list(rows)
    there = [row.users is None or row.users >= asked for row in rows]
    return [row for at, row in enumerate(rows) if there[at] and there[max(0, at - 1)]]


def _moves(evidence: Evidence) -> tuple[float, float]:
    """Since when the server has had the window's CPUs, and the ones before them, in the engine's time."""
    own_ms = elsewhere_ms = 0.0
    before = [p for p in evidence.phases if p.name != "after"]
    cpus = next((p.server_cpus for p in before if p.name == "window"), None)
    while before and before[-1].server_cpus == cpus:
        own_ms = before.pop().start_ms
    if before:
        elsewhere_ms = before[-1].start_ms
    return own_ms, min(own_ms, elsewhere_ms)
