"""conformance: did the server answer as declared, in a process of its own before the first trial."""

from __future__ import annotations

from prony.evidence.trial import Evidence, Nonconformity
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding

CHECK = "conformance"
SOURCE = "a wrong response can be fast; docs/conformance.md"
LIMIT = "every check passed, or its deviation declared in the server.yaml"
WRONG_RESPONSES = frozenset({"prepare", "answers"})
"""A failure of these leaves nothing to measure; a failure of others leaves a figure that needs explaining."""


@check(DeclaredLimits, order=190)
def conformance(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """The result of the suite's short part. Left out when it was not run."""
    del limits
    facts = evidence.conformance
    if facts is None:
        return None
    value = f"passed {facts.passed} of {facts.checks}"
    said = f"{value} before the first trial"
    if facts.declared:
        said += f"; as declared: {_listed(facts.declared)}"
    wrong = any(failed.check in WRONG_RESPONSES for failed in facts.failed)
    return Finding(
        check=CHECK,
        code="wrong_responses" if wrong else "deviation" if facts.failed else "ok",
        conforms=not wrong,
        provided="what the server did not do as expected was not under load" if facts.failed else "",
        value=value,
        limit=LIMIT,
        reason=f"{said}; {_listed(facts.failed)}" if facts.failed else said,
        advice=f"`prony servers check {evidence.server.name}` shows all results; fix the server, or declare "
        "the deviation"
        if facts.failed
        else "",
        source=SOURCE,
    )


def _listed(checks: tuple[Nonconformity, ...]) -> str:
    return "; ".join(f"{one.check}: {one.found}, expected {one.expected}" for one in checks)
