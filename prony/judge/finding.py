"""Finding, judgement and their status; the findings that say *unknown*. Must not know any one check."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from prony.evidence.base import Record


class Status(StrEnum):
    """The result of a check. `unknown`: a counter it needs could not be read, which is never a pass."""

    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"
    UNKNOWN = "unknown"


WORST_FIRST = (Status.INVALID, Status.SUSPECT, Status.UNKNOWN, Status.VALID)


class Finding(Record):
    """The result of one check: the measured value, the limit, and what to do."""

    check: str
    status: Status
    value: float | str | None = None
    limit: str = ""
    """The limit that was in force for this trial, as text."""
    unit: str = ""
    reason: str
    """One sentence: what was found."""
    advice: str = ""
    """What to do; empty when there is nothing to do."""
    source: str = ""
    """Where the rule comes from."""
    outside: bool | None = None
    """Whether what rejects the trial came wholly from outside of client and server, where the check can tell:
    a CPU quota of the server's group depends on what the server burns. None: as its check usually is
    (prony.judge.outside).
    """
    essential: bool = False
    """Whether the trial cannot be valid while this check is unknown (docs/method.md)."""


class Judgement(Record):
    """All findings of one trial and the verdict that follows from them."""

    verdict: Status
    findings: tuple[Finding, ...]
    bound_by: str = "unknown"
    """The bottleneck: server-cpu, server-thread, service-cpu, client, network, a ceiling's name, offered-load
    or unknown.
    """
    limits: dict[str, float] = Field(default_factory=dict)
    """The limits that were not the defaults, by key."""

    @property
    def worst(self) -> Finding | None:
        """The first finding that decided the verdict; None when the verdict is valid."""
        deciding = (f for f in self.findings if f.status is self.verdict and self.verdict is not Status.VALID)
        if self.verdict is Status.UNKNOWN:
            return next((f for f in deciding if f.essential), None)
        return next(deciding, None)


def unknown(check: str, reason: str, *, limit: str = "", advice: str = "", source: str = "") -> Finding:
    """A finding that names what could not be read."""
    return Finding(
        check=check, status=Status.UNKNOWN, reason=reason, limit=limit, advice=advice, source=source
    )


def no_window(check: str, *, limit: str = "", source: str = "") -> Finding:
    """The finding of a check whose window is missing."""
    return unknown(check, "the engine reported no measured window", limit=limit, source=source)


def worst(*statuses: Status) -> Status:
    """The worst of several partial results; unknown outweighs valid."""
    return min(statuses, key=WORST_FIRST.index, default=Status.VALID)
