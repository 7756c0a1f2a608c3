"""Whether a trial says too little because of what happened outside of client and server."""

from __future__ import annotations

import math

from prony.judge.checks.isolation import IsolationLimits
from prony.judge.finding import Judgement, added


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether a trial that conforms may be off by too much through others, in its rate or in the time of a
    response (its mean and its median): it is run again.
    """
    if failure is not None or not judgement.conforms:
        return False
    outside = [finding for finding in judgement.findings if finding.outside]
    rate, mean, median = (
        added(finding.of(figure) for finding in outside).size
        for figure in ("requests_per_s", "mean_ms", "p50_ms")
    )
    least = IsolationLimits.among(judgement.limits).isolation_repeat_min
    return max(rate, min(mean, median)) >= math.log1p(least)
