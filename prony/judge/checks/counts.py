"""counts: did the server read as many requests as the client sent (no hidden retry, no cache in front)."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding
from prony.numbers import number

CHECK = "counts"
SOURCE = "two independent counters of the same thing"
LIMIT = "requests read = requests sent, less at most those that failed or were in flight at the end"


@check(DeclaredLimits, order=30)
def counts(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """None without a server counter."""
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
            f"{number(fewest - read)} responses did not come from this server: look for a cache, or for "
            "another server on its port"
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
