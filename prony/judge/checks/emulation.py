"""emulation: does the load generator run on the architecture it was built for."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding

CHECK = "emulation"
SOURCE = "times of an emulated program are the emulator's"


@check(DeclaredLimits, order=6)
def emulation(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    del limits
    emulator = evidence.engine.ready.emulated if evidence.engine is not None else None
    if emulator is None:
        return None
    return Finding(
        check=CHECK,
        code="emulated",
        conforms=False,
        value=emulator,
        limit="none",
        reason=f"the load generator is emulated: {emulator}",
        advice="install the package for this CPU architecture",
        source=SOURCE,
    )
