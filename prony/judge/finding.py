"""Findings of checks, and a trial's judgement: does it conform, and by how much may each figure be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, Self

from pydantic import Field

from prony.evidence.base import Record

NEGLIGIBLE = 0.0005
"""Biases below 0.05 % are summed but not printed."""


class Bias(Record):
    """Bound on a figure's bias: the true value lies between measured × (1 + low) and measured × (1 + high).
    None: not bounded on that side.
    """

    low: float | None = Field(default=0.0, ge=-1.0, le=0.0)
    high: float | None = Field(default=0.0, ge=0.0)

    @classmethod
    def of_logs(cls, down: float = 0.0, up: float = 0.0) -> Self:
        """From distances below and above on the log scale (both at least 0; infinite: not bounded)."""
        return cls(
            low=None if math.isinf(down) else math.expm1(-down) if down > 0 else 0.0,
            high=None if math.isinf(up) else math.expm1(max(0.0, up)),
        )

    @property
    def down(self) -> float:
        """Distance below on the log scale: at least 0, infinite where not bounded."""
        return math.inf if self.low is None or self.low <= -1 else -math.log1p(self.low)

    @property
    def up(self) -> float:
        """Distance above, likewise."""
        return math.inf if self.high is None else math.log1p(self.high)

    @property
    def size(self) -> float:
        return max(self.down, self.up)

    @property
    def half(self) -> float:
        """Half the width as a share; infinite where a side is not bounded."""
        return math.expm1((self.up + self.down) / 2)

    @property
    def counts(self) -> bool:
        return self.size >= NEGLIGIBLE

    def beyond(self, low: float, high: float) -> tuple[float | None, float | None]:
        """A relative interval extended by this bias at both ends."""
        return (
            None if self.low is None else (1 + low) * (1 + self.low) - 1,
            None if self.high is None else (1 + high) * (1 + self.high) - 1,
        )


NO_BIAS = Bias()


def added(parts: Iterable[Bias]) -> Bias:
    """Sum of all sources at their worst (JCGM 100:2008, F.2.4.5 and E.4)."""
    biases = list(parts)
    return Bias.of_logs(sum(bias.down for bias in biases), sum(bias.up for bias in biases))


class Plateau(Record):
    """Residual drift of a figure to a horizon ÷ the window's value, 95 % bounds. None: not bounded."""

    low: float | None
    high: float | None
    horizon_s: float

    @property
    def bias(self) -> Bias:
        low = None if self.low is None else min(0.0, self.low)
        high = None if self.high is None else max(0.0, self.high)
        return Bias(low=low, high=high)


class Kind(StrEnum):
    """Effect of a finding on the result."""

    NOT_CONFORMING = "not_conforming"
    """The plan was not carried out, or two counters disagree: the trial has no figure."""
    BUDGET = "budget"
    PROVIDED = "provided"
    """Nothing bounds the effect: figures hold provided that there was none."""
    FINE = "fine"


GRAVEST_FIRST = tuple(Kind)
"""The only order of severity: findings, reports and pages sort by it."""


class Finding(Record):
    """Result of a check: measured value, limit, bias of each figure, advice."""

    check: str
    code: str = "ok"
    """The result for programs: stable, unlike the sentences."""
    conforms: bool = True
    bias: dict[str, Bias] = Field(default_factory=dict)
    """By figure, of those in BUDGETED."""
    plateau: dict[str, Plateau] = Field(default_factory=dict)
    """By figure: residual drift after the window."""
    provided: str = ""
    """Completes "provided that …" where nothing bounds the effect."""
    assumption: str = ""
    value: float | str | None = None
    limit: str = ""
    unit: str = ""
    reason: str
    advice: str = ""
    source: str = ""
    outside: bool = False
    """Whether the cause lies outside client and server: the trial may be repeated."""

    @property
    def kind(self) -> Kind:
        if not self.conforms:
            return Kind.NOT_CONFORMING
        if any(bias.counts for bias in self.bias.values()):
            return Kind.BUDGET
        return Kind.PROVIDED if self.provided else Kind.FINE

    def of(self, figure: str) -> Bias:
        """Bias of a figure; a derived figure has that of its base."""
        return self.bias.get(BUDGET_OF.get(figure, figure), NO_BIAS)


class Line(NamedTuple):
    finding: Finding
    bias: Bias


class Judgement(Record):
    """A trial's findings, and whether it conforms."""

    conforms: bool
    findings: tuple[Finding, ...]
    bound_by: str = "unknown"
    """server-cpu, server-thread, service-cpu, client, network, offered-load, unknown, or a ceiling's name."""
    limits: dict[str, float] = Field(default_factory=dict)
    """The limits that were not the defaults, by key."""

    @property
    def not_conforming(self) -> tuple[Finding, ...]:
        """Causes before symptoms."""
        return tuple(finding for finding in self.findings if not finding.conforms)

    @property
    def provided(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.conforms and finding.provided)

    def finding(self, check: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.check == check), None)

    def budget(self, figure: str) -> tuple[Line, ...]:
        """Largest first."""
        lines = (Line(finding, finding.of(figure)) for finding in self.findings)
        return tuple(sorted((line for line in lines if line.bias.size > 0), key=lambda line: -line.bias.size))

    def bias(self, figure: str) -> Bias:
        return added(line.bias for line in self.budget(figure))

    def plateau(self, figure: str) -> Plateau | None:
        name = BUDGET_OF.get(figure, figure)
        return next((finding.plateau[name] for finding in self.findings if name in finding.plateau), None)


THROUGHPUT = ("requests_per_s",)
MEAN = ("mean_ms",)
PERCENTILES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
TIMES = MEAN + PERCENTILES
CPU = ("server_cpu_us_per_request",)
CAPACITY = ("capacity_per_s",)
"""Rate with more users: not a printed figure, but what a rate is often read as."""
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
"""Derived figure -> figure whose budget it shares."""


def unread(
    check: str, reason: str, *, provided: str, limit: str = "", advice: str = "", source: str = ""
) -> Finding:
    """Finding for a missing reading. `provided` completes "provided that …"."""
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
    """Finding for a missing window: there is no figure."""
    reason = "the engine reported no measured window"
    return Finding(check=check, code="no_window", conforms=False, reason=reason, limit=limit, source=source)
