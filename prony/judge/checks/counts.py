"""counts: did the server read as many requests as the client sent.

A hidden retry, or a cache that answers in the server's place, leaves all of the client's counters consistent.
The server's counter is independent.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding
from prony.numbers import number

CHECK = "counts"
SOURCE = "two independent counters of the same thing"
LIMIT = "as many as were sent; those that failed or were in flight at the end may be missing"


@check(DeclaredLimits, order=30)
def counts(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """Requests read by the server against requests sent, over the engine's whole run. Left out for a server
    without a request counter.
    """
    del limits
    if evidence.server_count is None or evidence.engine is None:
        return None
    totals = evidence.engine.totals
    read = evidence.server_count.requests
    most = totals.sent
    fewest = max(0, totals.sent - totals.failed - totals.abandoned)
    code, advice = "ok", ""
    if read > most:
        code = "more_than_sent"
        advice = (
            f"{number(read - most)} more than the client sent: an uncounted retry (in the client or in a "
            "proxy), or another client on the same server"
        )
    elif read < fewest:
        code = "fewer_than_answered"
        advice = (
            f"{number(fewest - read)} responses did not come from this server: a cache or another server "
            "answered in its place"
        )
    return Finding(
        check=CHECK,
        code=code,
        conforms=code == "ok",
        value=read / totals.sent if totals.sent else None,
        limit=LIMIT,
        reason=f"the server read {number(read)} requests, the client sent {number(totals.sent)}",
        advice=advice,
        source=SOURCE,
    )
