"""Which trials are worth repeating because of what happened outside of client and server. Must not know how a
trial is repeated or compared.
"""

from __future__ import annotations

from prony.judge.finding import Judgement

WORTH_REPEATING = 0.05
"""Bias of throughput, or of p50, on the log scale, from which a repeated trial is the better answer: as large
as the effects that are measured.
"""


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether what happened outside of client and server bends a trial's figures by WORTH_REPEATING or
    more.
    """
    outside = [one for one in judgement.findings if one.outside]
    sizes = (one.of(figure).size for one in outside for figure in ("requests_per_s", "p50_ms"))
    return failure is None and judgement.conforms and max(sizes, default=0.0) >= WORTH_REPEATING
