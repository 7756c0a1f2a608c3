"""Which rejections have a cause outside of client and server. Must not know how a trial is repeated or
compared.
"""

from __future__ import annotations

from prony.judge.finding import Judgement, Status

FROM_OUTSIDE = frozenset({"isolation", "host"})
"""Checks that reject a trial for what happened outside of client and server."""


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether a trial was rejected, and only for what happened outside of client and server: that says
    nothing about either.
    """
    rejecting = {f.check for f in judgement.findings if f.status is Status.INVALID}
    return failure is None and bool(rejecting) and rejecting <= FROM_OUTSIDE
