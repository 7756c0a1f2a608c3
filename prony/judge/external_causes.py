"""Whether causes outside client and server bend a trial too much."""

from __future__ import annotations

import math

from prony.judge.checks.isolation import IsolationLimits
from prony.judge.finding import Judgement, added


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether a conforming trial is to be repeated: external bias of its rate, or of both mean and median
    time, from `isolation_repeat_min`.
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
