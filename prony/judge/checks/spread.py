"""spread: did the processes of the server get an even share of the connections."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, unread
from prony.numbers import number

CHECK = "spread"
SOURCE = "socket(7), SO_REUSEPORT: a hash of the connection's addresses chooses the socket"
FAIR_SHARE = 0.01
"""At most this share of fair hashes is called uneven."""
EVEN = "another draw of connections to its processes gives the same figure"


class SpreadLimits(DeclaredLimits):
    spread_factor: float = 1.5
    """Connections of the fullest process ÷ the mean, from here on flagged: it is at its limit while others
    have room, and another draw of ports gives another figure.
    """


@check(SpreadLimits, order=145)
def spread(evidence: Evidence, limits: SpreadLimits) -> Finding | None:
    """Connections of the fullest process ÷ their mean. Left out for a server of which one process serves, or
    none is known.
    """
    window = evidence.server_window
    limit = f"the fullest process has less than {number(limits.spread_factor)} times the mean"
    counts = window.connections_by_process if window is not None else None
    if window is not None and counts is None and (window.processes or 1) > 1:
        why = "another user's, too many, of a Unix socket, or a run that was too short"
        reason = f"the connections of its {window.processes} processes were not read ({why})"
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
        reason=f"{counts[0]} of {total} connections are in one of {len(counts)} processes"
        + (f", {counts[-1]} in the emptiest" if uneven else "")
        + (
            f"; a fair hash does that in up to {number(100 * by_chance)} % of the draws"
            if factor >= limits.spread_factor and not uneven
            else ""
        ),
        advice="use more connections, or let the processes share one listening socket; then repeat"
        if uneven
        else "",
        source=SOURCE,
    )


def by_fair_hash(fullest: int, connections: int, processes: int) -> float:
    """Upper bound on the chance that some process gets `fullest` connections or more where each connection
    goes to any process with the same probability: the binomial tail of one, times the processes (Bonferroni).
    """
    if fullest <= 0 or processes < 2:
        return 1.0

    def logarithm(k: int) -> float:
        ways = math.lgamma(connections + 1) - math.lgamma(k + 1) - math.lgamma(connections - k + 1)
        return ways - k * math.log(processes) + (connections - k) * math.log1p(-1 / processes)

    one = math.fsum(math.exp(logarithm(k)) for k in range(fullest, connections + 1))
    return min(1.0, processes * one)
