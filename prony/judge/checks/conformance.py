"""conformance: did the server respond as declared, in its first process after the load."""

from __future__ import annotations

from prony.evidence.trial import Evidence, Nonconformity
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, unread

CHECK = "conformance"
SOURCE = "a wrong response can be fast; docs/conformance.md"
LIMIT = "every check passed, or its deviation declared in the server.yaml"
WRONG_RESPONSES = frozenset({"prepare", "answers"})
"""Checks whose failure leaves nothing to measure; other failures are conditions."""


@check(DeclaredLimits, order=190)
def conformance(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """None when the suite was not run."""
    del limits
    facts = evidence.conformance
    if facts is None:
        return None
    if not facts.checks:
        reason = "not checked: the package prony-conformance is not installed"
        return unread(CHECK, reason, provided="the server responds as declared", limit=LIMIT, source=SOURCE)
    reason = value = f"passed {facts.passed} of {facts.checks}"
    if facts.declared:
        reason += f"; as declared: {_listed(facts.declared)}"
    wrong = any(failed.check in WRONG_RESPONSES for failed in facts.failed)
    return Finding(
        check=CHECK,
        code="wrong_responses" if wrong else "deviation" if facts.failed else "ok",
        conforms=not wrong,
        provided="the deviations did not affect the load" if facts.failed else "",
        value=value,
        limit=LIMIT,
        reason=f"{reason}; {_listed(facts.failed)}" if facts.failed else reason,
        advice=f"`prony servers check {evidence.server.name}` shows all results; fix the server, or declare "
        "the deviation"
        if facts.failed
        else "",
        source=SOURCE,
    )


def _listed(checks: tuple[Nonconformity, ...]) -> str:
    return "; ".join(f"{result.check}: {result.found}, expected {result.expected}" for result in checks)
