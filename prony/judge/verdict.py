"""From findings to a verdict. Must not know any formula.

Rule: *invalid* if any finding is invalid; else *suspect* if any is suspect; else *unknown* if a check that is
essential for this trial is unknown; else *valid*. Other unknown findings are printed and do not decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.evidence.trial import Evidence
from prony.judge.checks import CHECKS
from prony.judge.checks.bound_by import BoundLimits, bound
from prony.judge.finding import Finding, Judgement, Status
from prony.judge.limits import CheckLimits


def verdict_of(findings: Sequence[Finding]) -> Status:
    """The rule above."""
    statuses = {finding.status for finding in findings}
    if Status.INVALID in statuses:
        return Status.INVALID
    if Status.SUSPECT in statuses:
        return Status.SUSPECT
    if any(f.status is Status.UNKNOWN and f.essential for f in findings) or not findings:
        return Status.UNKNOWN
    return Status.VALID


def judge(evidence: Evidence, limits: CheckLimits | None = None) -> Judgement:
    """All findings that apply to this trial, and the verdict. Never raises on missing evidence."""
    limits = limits or CheckLimits()
    findings = tuple(
        finding.model_copy(update={"essential": check.essential(evidence)})
        for check in CHECKS
        if (finding := check(evidence, limits)) is not None
    )
    return Judgement(
        verdict=verdict_of(findings),
        findings=findings,
        bound_by=bound(evidence, limits.of(BoundLimits)).name,
        limits=limits.model_dump(exclude_defaults=True),
    )
