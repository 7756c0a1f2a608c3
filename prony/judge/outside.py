"""Which rejections have a cause outside of client and server. Must not know how a trial is repeated or
compared.
"""

from __future__ import annotations

from prony.judge.finding import Finding, Judgement, Status

FROM_OUTSIDE = frozenset({"isolation", "host"})
"""Checks that can reject a trial for what happened outside of client and server."""


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether a trial was rejected, and only for what happened outside of client and server: that says
    nothing about either.
    """
    rejecting = [f for f in judgement.findings if f.status is Status.INVALID]
    return failure is None and bool(rejecting) and all(_from_outside(f) for f in rejecting)


def _from_outside(finding: Finding) -> bool:
    return finding.check in FROM_OUTSIDE and finding.outside is not False
