"""injected_faults: did the load generator run with injected faults."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding

CHECK = "injected_faults"
SOURCE = "injected faults are for the self-test"


@check(DeclaredLimits, order=5)
def injected_faults(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    del limits
    faults = evidence.engine.ready.injected_faults if evidence.engine is not None else ()
    if not faults:
        return None
    return Finding(
        check=CHECK,
        code="injected",
        conforms=False,
        value=", ".join(faults),
        limit="none",
        reason=f"the load generator ran with injected faults: {', '.join(faults)}",
        advice="measure without them: they are for prony selftest",
        source=SOURCE,
    )
