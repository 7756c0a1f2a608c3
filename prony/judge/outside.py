"""Whether a trial says too little because of what happened outside of client and server. Must not know how it
is repeated or compared.
"""

from __future__ import annotations

import math

from prony.judge.checks.isolation import IsolationLimits
from prony.judge.finding import Judgement, added

DECIDES = ("requests_per_s", "p50_ms")


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether a trial that conforms may be off by too much through others: it is run again."""
    least = math.log1p(IsolationLimits.among(judgement.limits).isolation_repeat_min)
    outside = [finding for finding in judgement.findings if finding.outside]
    sizes = [added(finding.of(figure) for finding in outside).size for figure in DECIDES]
    return failure is None and judgement.conforms and max(sizes) >= least
