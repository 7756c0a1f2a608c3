"""emulation: does the load generator run on a CPU that it was built for."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding

CHECK = "emulation"
SOURCE = "the times of an emulated program are those of the emulator"


@check(DeclaredLimits, order=6)
def emulation(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """A run of an emulated load generator does not conform. Left out of a run of one that is not."""
    del limits
    found = evidence.engine.ready.emulated if evidence.engine is not None else None
    if found is None:
        return None
    return Finding(
        check=CHECK,
        code="emulated",
        conforms=False,
        value=found,
        limit="none",
        reason=f"the load generator is emulated: {found}",
        advice="install the package for this CPU, or measure on one that the package is for",
        source=SOURCE,
    )
