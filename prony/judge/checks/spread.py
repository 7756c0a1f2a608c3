"""spread: did the processes of the server get an even share of the connections. Must not know what they did
with them.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, Status
from prony.numbers import number

CHECK = "spread"
SOURCE = "socket(7), SO_REUSEPORT: a hash of the connection's addresses chooses the socket"
LEAST_EXTRA = 3
"""Connections above the mean: a process of one connection each is never uneven."""


class SpreadLimits(DeclaredLimits):
    spread_factor: float = 1.5
    """Connections of the fullest process ÷ the mean, from here on suspect: it is at its limit while others
    have room, and another draw of ports gives another figure.
    """


@check(SpreadLimits, order=145)
def spread(evidence: Evidence, limits: SpreadLimits) -> Finding | None:
    """Connections of the fullest process ÷ their mean. Left out for a server of one process, and where its
    processes' connections cannot be read.
    """
    window = evidence.server_window
    counts = window.connections_by_process if window is not None else None
    if not counts:
        return None
    mean = sum(counts) / len(counts)
    factor = counts[0] / mean if mean else 1.0
    uneven = factor >= limits.spread_factor and counts[0] >= mean + LEAST_EXTRA
    total = sum(counts)
    return Finding(
        check=CHECK,
        status=Status.SUSPECT if uneven else Status.VALID,
        value=factor,
        limit=f"the fullest process has less than {number(limits.spread_factor)} times the mean",
        reason=f"{counts[0]} of {total} connections are in one of {len(counts)} processes"
        + (f", {counts[-1]} in the emptiest" if uneven else ""),
        advice="use more connections, or let the processes share one listening socket; then repeat"
        if uneven
        else "",
        source=SOURCE,
    )
