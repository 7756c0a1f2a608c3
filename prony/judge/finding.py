"""The words of a judgement: finding and verdict. Must not know any particular check."""

from __future__ import annotations

from enum import StrEnum

from prony.evidence.base import Record


class Status(StrEnum):
    """How one check ended. `unknown`: a counter it needs could not be read; that is never a pass."""

    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Finding(Record):
    """One check: what was measured, what the limit is, and what to do about it."""

    check: str
    status: Status
    value: float | str | None = None
    limit: str = ""
    """The limit in words and numbers, as it stood for this trial."""
    unit: str = ""
    reason: str
    """One sentence: what was found."""
    advice: str = ""
    """What to do; empty when there is nothing to do."""
    source: str = ""
    """Where the rule comes from."""
    essential: bool = False
    """Whether a figure cannot be called valid while this check is unknown (decided by the judge, see
    docs/method.md)."""


class Judgement(Record):
    """All findings of one trial and the verdict that follows from them."""

    verdict: Status
    findings: tuple[Finding, ...]
    bound_by: str = "unknown"
    """What bound the throughput: server-cpu, service-cpu, client, a ceiling's name, offered-load, unknown."""

    @property
    def worst(self) -> Finding | None:
        """The finding that decided the verdict (the first one that did), None when the verdict is valid."""
        deciding = (f for f in self.findings if f.status is self.verdict and self.verdict is not Status.VALID)
        if self.verdict is Status.UNKNOWN:
            return next((f for f in deciding if f.essential), None)
        return next(deciding, None)
