"""A part of a plan: cells that are read together, and by which question."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.redaction import Name, Title

Shape = Literal["comparison", "matrix", "sweep", "capacity", "single", "cross-check", "aa", "gate"]
"""How the result of a part is read: servers against each other, a table of cells, throughput over users, the
highest rate at which an objective holds, one trial, other load generators beside Prony, a server against
itself, a candidate against its base.
"""
Sharing = Literal["loads", "workloads"]
"""Which cells of a server are measured in one process, one after the other: those of one workload, which
differ in their load, or those of all workloads (prony.plan.processes).
"""


MOST_LOOKS = 100
"""Planning the looks takes seconds from here on, and this many trials take days."""


class Search(Record):
    """A part that grows: the rate of each trial follows from those before it."""

    objectives: str
    """What must hold, such as `p99<50ms,p99.9<1s` (prony.plan.objective)."""
    highest_per_s: float
    resolution: float
    """The search ends when the bracket is so narrow, as a share."""
    most_trials: int
    arrivals: Literal["constant", "poisson"] = "constant"


class Follow(Record):
    """A part whose loads are open at a share of what the servers carried in another part of the plan."""

    part: Name
    share: float = Field(gt=0)
    rate: Literal["own", "common"]
    """Of each server's own capacity, or of the lowest of all."""


class CrossCheck(Record):
    """The other tools of a cross-check. Their runs are in the trials (`TrialPlan.beside`)."""

    versions: dict[str, str] = Field(default_factory=dict)
    """Tool -> version, of those that run."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Tool -> why it does not run, and how to get it."""


class AATest(Record):
    """A server against itself: experiments drawn from its trials, each under two names."""

    experiments: int = Field(ge=1)
    each: int = Field(ge=3)
    """Trials per name in one experiment."""


class StoredFigures(Record):
    """The trials of one stored experiment that count, of the base of a gate."""

    experiment: str
    created: str
    """ISO 8601."""
    values: dict[str, tuple[float, ...]]
    """Figure -> its value in each trial."""


class Baseline(Record):
    """What a candidate is held against where its base is not measured anew."""

    tag: str
    """Of the stored experiments."""
    experiments: tuple[StoredFigures, ...]


class GateTest(Record):
    """Is a candidate no worse than its base? (prony.compare.noninferiority)"""

    base: Name
    """A server of the part; with `baseline` the name of the stored one."""
    candidate: Name
    figures: tuple[str, ...] = Field(min_length=1)
    margin: float = Field(gt=0, lt=1)
    """The loss that is tolerated, as a share."""
    margins: dict[str, float] = Field(default_factory=dict)
    """Of figures that have a margin of their own."""
    baseline: Baseline | None = None
    """None: base and candidate are measured in turns."""


class Part(Record):
    """Cells that are read together."""

    name: Name
    title: Title
    note: Title = ""
    shape: Shape = "matrix"
    comparisons: tuple[tuple[Name, Name], ...] | None = None
    """Pairs of servers; all pairs when None, no pair when empty."""
    band: float = Field(default=0.02, gt=0, lt=1)
    """Servers whose ratio is surely nearer to 1 than this are equivalent: no practical difference."""
    at_least: float = Field(default=0.01, ge=0, lt=100)
    """A difference is claimed where it is larger than this with everything unknown against it."""
    until_clear: int | None = Field(default=None, ge=1)
    """After each cell's `trials` add blocks, up to this many, until every pair is clear; the intervals then
    hold at every look (docs/method.md). None: exactly `trials`.
    """
    budget_s: float | None = Field(default=None, gt=0)
    """No block begins that would end later than this after the first trial of the plan began: one time for
    all parts that have it. With `until_clear` blocks are added when every part has had its planned ones, to
    those cells first whose intervals are widest (prony.experiment.blocks).
    """
    share_process: Sharing | None = None
    """None: a process for each trial."""
    search: Search | None = None
    follows: Follow | None = None
    cross_check: CrossCheck | None = None
    aa: AATest | None = None
    gate: GateTest | None = None
    soak: bool = False
