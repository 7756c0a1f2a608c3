"""What a check returns and what a trial's findings come to: does it conform, and by how much may each figure
be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, Self

from pydantic import Field

from prony.evidence.base import Record

NEGLIGIBLE = 0.0005
"""A bias of less than 0.05 % is in the sum, and not worth a line on a screen."""


class Bias(Record):
    """Bound on the bias of one figure, relative to what was measured: the true value lies between
    measured × (1 + low) and measured × (1 + high). None: not bounded on that side.
    """

    low: float | None = Field(default=0.0, ge=-1.0, le=0.0)
    high: float | None = Field(default=0.0, ge=0.0)

    @classmethod
    def of_logs(cls, down: float = 0.0, up: float = 0.0) -> Self:
        """From how far the true value may lie below and above on the log scale (both at least 0; infinite:
        not bounded).
        """
        return cls(
            low=None if math.isinf(down) else math.expm1(-down) if down > 0 else 0.0,
            high=None if math.isinf(up) else math.expm1(max(0.0, up)),
        )

    @property
    def down(self) -> float:
        """How far below the true value may lie, on the log scale: at least 0, infinite where not bounded."""
        return math.inf if self.low is None or self.low <= -1 else -math.log1p(self.low)

    @property
    def up(self) -> float:
        """The same above."""
        return math.inf if self.high is None else math.log1p(self.high)

    @property
    def size(self) -> float:
        """The larger of the two, on the log scale."""
        return max(self.down, self.up)

    @property
    def half(self) -> float:
        """Half the width, as a share; infinite where a side is not bounded."""
        return math.expm1((self.up + self.down) / 2)

    @property
    def counts(self) -> bool:
        """Whether it is worth a line."""
        return self.size >= NEGLIGIBLE

    def beyond(self, low: float, high: float) -> tuple[float | None, float | None]:
        """An interval, relative to what was measured, with this bias at its worst beyond both ends."""
        return (
            None if self.low is None else (1 + low) * (1 + self.low) - 1,
            None if self.high is None else (1 + high) * (1 + self.high) - 1,
        )


NO_BIAS = Bias()


def added(parts: Iterable[Bias]) -> Bias:
    """All sources at their worst: bounds of systematic effects of unknown sign and unknown dependence are
    added, not combined as the root of squares (JCGM 100:2008, F.2.4.5 and E.4 leave that to known variances).
    """
    known = list(parts)
    return Bias.of_logs(sum(one.down for one in known), sum(one.up for one in known))


class Plateau(Record):
    """How far a figure may move from the window's value up to a horizon: relative, with 95 %. None: not
    bounded on that side.
    """

    low: float | None
    high: float | None
    horizon_s: float

    @property
    def bias(self) -> Bias:
        """As a bias that contains 0: from now on, up to the horizon."""
        low = None if self.low is None else min(0.0, self.low)
        high = None if self.high is None else max(0.0, self.high)
        return Bias(low=low, high=high)


class Kind(StrEnum):
    """What a finding does to a result."""

    NOT_CONFORMING = "not_conforming"
    """What was asked for did not happen, or two counters disagree: the trial has no figure."""
    BUDGET = "budget"
    """A figure may be off by so much."""
    PROVIDED = "provided"
    """Nothing bounds it: whatever is said holds provided that it did no harm."""
    FINE = "fine"


GRAVEST_FIRST = tuple(Kind)
"""The only order of severity: findings, reports and pages sort by it."""


class Finding(Record):
    """The result of one check: what was measured, the limit, what it may do to each figure, and what to
    do.
    """

    check: str
    code: str = "ok"
    """What was found, for programs: a sentence may change, this does not."""
    conforms: bool = True
    bias: dict[str, Bias] = Field(default_factory=dict)
    """By figure, of the figures in BUDGETED that it may bend."""
    plateau: dict[str, Plateau] = Field(default_factory=dict)
    """By figure: residual drift after the window."""
    provided: str = ""
    """Completes "provided that …": what a claim rests on where nothing bounds the effect."""
    assumption: str = ""
    """What the bound rests on."""
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
    outside: bool = False
    """Whether what bends the figure came from outside of client and server: the trial may be run again."""

    @property
    def kind(self) -> Kind:
        """The gravest of what it does."""
        if not self.conforms:
            return Kind.NOT_CONFORMING
        if any(one.counts for one in self.bias.values()):
            return Kind.BUDGET
        return Kind.PROVIDED if self.provided else Kind.FINE

    def of(self, figure: str) -> Bias:
        """Its bias of a figure, of a derived one as of what it is derived from."""
        return self.bias.get(BUDGET_OF.get(figure, figure), NO_BIAS)


class Line(NamedTuple):
    """One line of a figure's budget."""

    finding: Finding
    bias: Bias


class Judgement(Record):
    """All findings of one trial, and what follows from them."""

    conforms: bool
    findings: tuple[Finding, ...]
    bound_by: str = "unknown"
    """The bottleneck: server-cpu, server-thread, service-cpu, client, network, a ceiling's name, offered-load
    or unknown.
    """
    limits: dict[str, float] = Field(default_factory=dict)
    """The limits that were not the defaults, by key."""

    @property
    def not_conforming(self) -> tuple[Finding, ...]:
        """What makes it not conforming, causes before symptoms."""
        return tuple(one for one in self.findings if not one.conforms)

    @property
    def provided(self) -> tuple[Finding, ...]:
        """What its figures rest on."""
        return tuple(one for one in self.findings if one.conforms and one.provided)

    def finding(self, check: str) -> Finding | None:
        """Of one check; None where it did not apply."""
        return next((one for one in self.findings if one.check == check), None)

    def budget(self, figure: str) -> tuple[Line, ...]:
        """The lines that bend this figure, the largest first."""
        lines = (Line(one, one.of(figure)) for one in self.findings)
        return tuple(sorted((line for line in lines if line.bias.size > 0), key=lambda line: -line.bias.size))

    def bias(self, figure: str) -> Bias:
        """Of all sources together."""
        return added(line.bias for line in self.budget(figure))

    def plateau(self, figure: str) -> Plateau | None:
        """Residual drift of a figure; None where no plateau is asked for."""
        name = BUDGET_OF.get(figure, figure)
        return next((one.plateau[name] for one in self.findings if name in one.plateau), None)


THROUGHPUT = ("requests_per_s",)
MEAN = ("mean_ms",)
PERCENTILES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
TIMES = MEAN + PERCENTILES
CPU = ("server_cpu_us_per_request",)
CAPACITY = ("capacity_per_s",)
"""What the server could carry with more users: no figure that is printed, but what a rate is often taken
for.
"""
BUDGETED = (*THROUGHPUT, *TIMES, *CPU)

BUDGET_OF: Mapping[str, str] = {
    "sessions_per_s": "requests_per_s",
    "requests_per_s_per_gib": "requests_per_s",
    "service_time_p50_ms": "p50_ms",
    "service_time_p99_ms": "p99_ms",
    "session_mean_ms": "mean_ms",
    "session_p50_ms": "p50_ms",
    "session_p95_ms": "p95_ms",
    "session_p99_ms": "p99_ms",
}
"""Derived figures and the figure whose budget they have."""


def unread(
    check: str, reason: str, *, provided: str, limit: str = "", advice: str = "", source: str = ""
) -> Finding:
    """A finding that names what could not be read. `provided` completes "provided that …"."""
    return Finding(
        check=check,
        code="unread",
        reason=reason,
        provided=provided,
        limit=limit,
        advice=advice,
        source=source,
    )


def no_window(check: str, *, limit: str = "", source: str = "") -> Finding:
    """The finding of a check whose window is missing: there is no figure."""
    reason = "the engine reported no measured window"
    return Finding(check=check, code="no_window", conforms=False, reason=reason, limit=limit, source=source)
