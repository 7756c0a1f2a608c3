"""What a report shows, as one pure value built from records. Must not know how it is drawn or stored.

`view(...)` is the way in; every output (terminal, JSON, HTML) reads an `ExperimentView` and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prony.evidence.host import CpuPartition, Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement, Status
from prony.report.latency_pass import LatencyPass

SEVERITY: Mapping[Status, int] = {Status.INVALID: 0, Status.SUSPECT: 1, Status.UNKNOWN: 2, Status.VALID: 3}
"""Worst first."""


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server under test as the reader knows it."""

    address: str
    """Its name in the catalogue, with the variant: spring-tomcat, tomcat:async."""
    title: str
    versions: Mapping[str, str] = field(default_factory=dict)
    jdk: str = ""


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial with what was concluded from it. `figures` holds finite numbers by their names in FIGURES."""

    record: TrialRecord
    judgement: Judgement
    figures: Mapping[str, float] = field(default_factory=dict)
    change_points_ms: tuple[float, ...] = ()
    """Where the level of throughput changed, in the engine's time."""

    @property
    def counts(self) -> bool:
        """Whether its figures may be printed and compared: finished, not a control, not judged invalid."""
        return self.rejected_because is None and self.record.kind == "trial"

    @property
    def rejected_because(self) -> str | None:
        """The cause in one sentence when it may not be printed."""
        if self.record.failure is not None:
            return self.record.failure
        if self.judgement.verdict is Status.INVALID:
            worst = self.judgement.worst
            if worst is None:
                return "judged invalid"
            broken = [
                f.check for f in self.judgement.findings if f.status is Status.INVALID and f is not worst
            ]
            also = f" (also invalid: {', '.join(broken)})" if broken else ""
            return f"{worst.check}: {worst.reason}{also}"
        return None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of one figure over trials; `n` of them had it."""

    median: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class PairView:
    """One figure of two servers: `ratio` is a ÷ b with its interval; the sentence says what follows."""

    a: str
    b: str
    figure: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    sentence: str
    more_trials: int | None = None


@dataclass(frozen=True, slots=True)
class PublishedFigures:
    """What somebody printed on other hardware with other versions: for shape and order, never a target."""

    source: str
    figures: Mapping[str, Mapping[str, float]]
    """Figure (its name in FIGURES) -> server address -> value."""
    note: str = "other hardware, other versions: shape only"


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """All that a report needs."""

    id: str
    title: str
    created: datetime
    quick: bool
    plan: Mapping[str, Any]
    plan_text: str
    """The exact plan as YAML."""
    fingerprint: Fingerprint | None
    partition: CpuPartition | None
    servers: tuple[ServerView, ...]
    trials: tuple[TrialView, ...]
    pairs: tuple[PairView, ...] = ()
    band: float = 0.02
    """The practical band: ratios within 1 ± band are equivalent."""
    published: PublishedFigures | None = None
    warnings: tuple[str, ...] = ()
    passes: tuple[LatencyPass, ...] = ()
    """Tables of a second pass, at given rates."""

    @property
    def foreign(self) -> bool:
        """Whether the servers were running already, and not started by Prony."""
        return bool(self.trials) and all(not t.record.evidence.server.owned for t in self.trials)

    def of(self, server: str) -> tuple[TrialView, ...]:
        """The trials of one server, controls left out."""
        return tuple(t for t in self.trials if t.record.server == server and t.record.kind == "trial")


def spread(values: Iterable[float]) -> Spread | None:
    """Median with smallest and largest; None without a finite value."""
    finite = sorted(v for v in values if math.isfinite(v))
    if not finite:
        return None
    middle = len(finite) // 2
    median = finite[middle] if len(finite) % 2 else (finite[middle - 1] + finite[middle]) / 2
    return Spread(median, finite[0], finite[-1], len(finite))


def view(
    *,
    id: str,
    title: str,
    created: datetime,
    quick: bool,
    plan: Mapping[str, Any],
    plan_text: str,
    servers: Sequence[ServerView],
    trials: Sequence[TrialView],
    pairs: Sequence[PairView] = (),
    band: float = 0.02,
    fingerprint: Fingerprint | None = None,
    partition: CpuPartition | None = None,
    published: PublishedFigures | None = None,
    warnings: Sequence[str] = (),
) -> ExperimentView:
    """The view of an experiment: trials in the order they ran, servers in the order of the plan."""
    ordered = sorted(trials, key=lambda t: (t.record.block, t.record.position, t.record.started_at))
    return ExperimentView(
        id=id,
        title=title,
        created=created,
        quick=quick,
        plan=dict(plan),
        plan_text=plan_text,
        fingerprint=fingerprint,
        partition=partition,
        servers=tuple(servers),
        trials=tuple(ordered),
        pairs=tuple(pairs),
        band=band,
        published=published,
        warnings=tuple(warnings),
    )
