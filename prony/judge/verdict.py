"""From findings to one verdict. Must not know any formula; the order of the checks is the order of printing.

Rule: *invalid* if any finding is invalid; else *suspect* if any is suspect; else *unknown* if an
**essential** check is
unknown; else *valid*. Findings that are unknown but not essential are printed and do not decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.evidence.trial import Evidence
from prony.judge.checks import CHECKS
from prony.judge.checks.bound_by import bound
from prony.judge.finding import Finding, Judgement, Status
from prony.judge.limits import CheckLimits

ALWAYS_ESSENTIAL = frozenset({"errors", "little", "client", "content"})
"""Were the answers answers, did the load exist, was it the server that was measured: no figure without
these."""
OWNED_ESSENTIAL = frozenset({"identity", "isolation"})
"""What Prony can and must know when it started the server itself."""
RATE_ESSENTIAL = frozenset({"steady"})
"""For a figure that claims to hold beyond this run: capacity and latency, not the re-run of a fixed
protocol."""


def is_essential(check: str, evidence: Evidence) -> bool:
    """Whether a trial of this kind cannot be valid while `check` is unknown."""
    owned = evidence.server.owned
    claim = evidence.load.claim
    return (
        check in ALWAYS_ESSENTIAL
        or (owned and check in OWNED_ESSENTIAL)
        or (claim != "protocol" and check in RATE_ESSENTIAL)
        or (check == "bound_by" and owned and claim == "capacity")
        or (check == "schedule" and evidence.load.model == "open")
    )


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
    """All findings that apply to this trial, and what follows from them. Never raises on missing evidence."""
    limits = limits or CheckLimits()
    findings = tuple(
        finding.model_copy(update={"essential": is_essential(finding.check, evidence)})
        for finding in (check(evidence, limits) for check in CHECKS)
        if finding is not None
    )
    return Judgement(verdict=verdict_of(findings), findings=findings, bound_by=bound(evidence, limits).name)
