"""conformance: did the server answer as declared, in a process of its own before the first trial. Must not
send requests.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence, Nonconformity
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, Status

CHECK = "conformance"
SOURCE = "a wrong response can be fast; docs/conformance.md"
LIMIT = "every check passed, or its deviation declared in the server.yaml; wrong responses are invalid"
WRONG_RESPONSES = frozenset({"prepare", "answers"})
"""A failure of these leaves nothing to measure; a failure of others leaves a figure that needs explaining."""


@check(DeclaredLimits, order=190)
def conformance(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """The result of the suite's short part. Left out when it was not run."""
    del limits
    facts = evidence.conformance
    if facts is None:
        return None
    said = f"passed {facts.passed} of {facts.checks} before the first trial"
    if facts.declared:
        said += f" (as declared: {_listed(facts.declared)})"
    if not facts.failed:
        return Finding(
            check=CHECK,
            status=Status.VALID,
            value=said.split(" before")[0],
            limit=LIMIT,
            reason=said,
            source=SOURCE,
        )
    wrong = any(failed.check in WRONG_RESPONSES for failed in facts.failed)
    name = evidence.server.name
    return Finding(
        check=CHECK,
        status=Status.INVALID if wrong else Status.SUSPECT,
        value=said.split(" before")[0],
        limit=LIMIT,
        reason=f"{said}; {_listed(facts.failed)}",
        advice=f"`prony servers check {name}` shows all results; fix the server, or declare the deviation",
        source=SOURCE,
    )


def _listed(checks: tuple[Nonconformity, ...]) -> str:
    return "; ".join(f"{one.check}: {one.found}, expected {one.expected}" for one in checks)
