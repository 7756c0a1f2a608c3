"""From evidence to a judgement. A trial conforms unless a finding says otherwise; other findings bound
figures or add conditions.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.checks import CHECKS
from prony.judge.checks.bound_by import BoundLimits, bound
from prony.judge.finding import Judgement
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
