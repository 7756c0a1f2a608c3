"""From evidence to a judgement: a trial conforms unless a finding says otherwise."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence
from prony.judge.checks import CHECKS
from prony.judge.checks.bound_by import BoundLimits, bound
from prony.judge.checks.isolation import IsolationLimits
from prony.judge.finding import Judgement, added
from prony.judge.limits import CheckLimits


def judge(evidence: Evidence, limits: CheckLimits | None = None) -> Judgement:
    """All findings that apply to this trial. Never raises on missing evidence."""
    limits = limits or CheckLimits()
    findings = tuple(finding for check in CHECKS if (finding := check(evidence, limits)) is not None)
    return Judgement(
        conforms=all(finding.conforms for finding in findings),
        findings=findings,
        bound_by=bound(evidence, limits.of(BoundLimits)).name,
        limits=limits.model_dump(exclude_defaults=True),
    )


def disturbed(judgement: Judgement, failure: str | None) -> bool:
    """Whether to repeat: external bias of the rate, or of mean and median, from `isolation_repeat_min`."""
    if failure is not None or not judgement.conforms:
        return False
    outside = [finding for finding in judgement.findings if finding.outside]
    rate, mean, median = (
        added(finding.of(figure) for finding in outside).size
        for figure in ("requests_per_s", "mean_ms", "p50_ms")
    )
    least = IsolationLimits.among(judgement.limits).isolation_repeat_min
    return max(rate, min(mean, median)) >= math.log1p(least)
