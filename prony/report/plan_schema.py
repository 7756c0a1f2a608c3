"""The JSON that `prony run --json` prints, as models: the names are a contract, as in schema.py.

Must not know how a value is obtained.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.report.out import Out

Verdict = Literal["valid", "suspect", "invalid", "unknown"]


class CellSpreadOut(Out):
    """A figure over the trials of a cell that count."""

    median: float
    low: float
    high: float
    n: int


class TrialCountsOut(Out):
    """Trials of a cell."""

    planned: int
    ended: int
    counting: int = Field(description="those whose figures may be printed")


class PublishedOut(Out):
    """What somebody printed for a cell on other hardware: history, never a target."""

    label: str
    source: str
    note: str
    figures: dict[str, float]


class CellOut(Out):
    """One server under one load of one workload."""

    id: str = Field(description="part/server/workload/load")
    server: str
    workload: str
    load: str
    users: int | None = Field(description="of a closed load")
    think_ms: float
    verdict: Verdict | None = Field(description="null before any trial ended; invalid when none counts")
    why: list[str] = Field(description="of every check that decided, one sentence")
    bound_by: str | None
    trials: TrialCountsOut
    figures: dict[str, CellSpreadOut] = Field(description="names carry units; empty when no trial counts")
    published: list[PublishedOut]


class SkippedOut(Out):
    """A cell that was not run."""

    cell: str
    why: str


class ComparisonOut(Out):
    """One figure of two servers under the same workload and load: ratio = a ÷ b."""

    where: str = Field(description="workload and load")
    a: str
    b: str
    figure: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    sentence: str


class ConcernOut(Out):
    """A check that did not end with valid, and the cells in which."""

    check: str
    status: Verdict
    reason: str
    advice: str
    cells: list[str]


class PartOut(Out):
    """One part of a plan."""

    name: str
    title: str
    note: str
    cells: list[CellOut]
    skipped: list[SkippedOut]
    comparisons: list[ComparisonOut]
    findings: list[ConcernOut]


class PlanOut(Out):
    """`prony run --json`, and `prony results show --json` of a run of a plan."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["plan"] = "plan"
    id: str
    title: str
    created: str = Field(description="ISO 8601")
    status: Literal["running", "finished", "interrupted"]
    quick: bool
    verdict: Verdict = Field(description="the worst of all cells")
    planned_trials: int
    ended_trials: int = Field(description="without those that were interrupted half-way")
    changes: list[str] = Field(description="what --quick and the like changed, in words")
    warnings: list[str]
    parts: list[PartOut]
    seed: int
    fingerprint: str | None = Field(description="of the machine and its software")
