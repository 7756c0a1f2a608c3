"""spread: were connections spread evenly over the server's processes."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, unread
from prony.numbers import number

CHECK = "spread"
SOURCE = "socket(7), SO_REUSEPORT: a hash of the connection's addresses chooses the socket"
FAIR_SHARE = 0.01
"""Share of fair hashes called uneven, at most."""
EVEN = "another distribution of connections gives the same figure"


class SpreadLimits(DeclaredLimits):
    spread_factor: float = 1.5
    """Connections of the fullest process ÷ the mean that is flagged: it reaches its limit first."""


@check(SpreadLimits, order=145)
def spread(evidence: Evidence, limits: SpreadLimits) -> Finding | None:
    """None for a single or unknown process."""
    window = evidence.server_window
    limit = f"the fullest process has less than {number(limits.spread_factor)} times the mean"
    counts = window.connections_by_process if window is not None else None
    if window is not None and counts is None and (window.processes or 1) > 1:
        why = "another user's processes, too many, a Unix socket, or too short a run"
        reason = f"connections of its {window.processes} processes were not read: {why}"
        return unread(CHECK, reason, provided=EVEN, limit=limit, source=SOURCE)
    if not counts:
        return None
    mean = sum(counts) / len(counts)
    factor = counts[0] / mean if mean else 1.0
    total = sum(counts)
    by_chance = by_fair_hash(counts[0], total, len(counts))
    uneven = factor >= limits.spread_factor and by_chance < FAIR_SHARE
    return Finding(
        check=CHECK,
        code="uneven" if uneven else "ok",
        provided=EVEN if uneven else "",
        value=factor,
        limit=limit,
        reason=f"{counts[0]} of {total} connections in the fullest of {len(counts)} processes"
        + (f", {counts[-1]} in the emptiest" if uneven else "")
        + (
            f"; a fair hash does that with a chance of up to {number(100 * by_chance)} %"
            if factor >= limits.spread_factor and not uneven
            else ""
        ),
        advice="use more connections, or one listening socket for all processes; then repeat"
        if uneven
        else "",
        source=SOURCE,
    )


def by_fair_hash(fullest: int, connections: int, processes: int) -> float:
    """Upper bound on the chance of `fullest` connections from a fair hash: binomial tail, Bonferroni."""
    if fullest <= 0 or processes < 2:
        return 1.0

    def logarithm(k: int) -> float:
        ways = math.lgamma(connections + 1) - math.lgamma(k + 1) - math.lgamma(connections - k + 1)
        return ways - k * math.log(processes) + (connections - k) * math.log1p(-1 / processes)

    tail = math.fsum(math.exp(logarithm(k)) for k in range(fullest, connections + 1))
    return min(1.0, processes * tail)
