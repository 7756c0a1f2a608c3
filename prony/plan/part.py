"""A part of a plan: cells reported together, and the question they answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.redaction import Name, Title

Shape = Literal["comparison", "matrix", "sweep", "capacity", "single", "cross-check", "aa", "gate"]
Sharing = Literal["loads", "workloads"]


MOST_LOOKS = 100
"""Planning the looks takes seconds from here on, and this many trials take days."""


class Search(Record):
    """A part that grows: previous trials decide the rate of the next."""

    objectives: str
    highest_per_s: float
    resolution: float
    """Width of the bracket, as a share, that ends the search."""
    most_trials: int
    arrivals: Literal["constant", "poisson"] = "constant"


class Follow(Record):
    """A part with open loads at a share of the servers' capacity in another part."""

    part: Name
    share: float = Field(gt=0)
    rate: Literal["own", "common"]
    """Each server's own capacity, or the lowest of all."""


class CrossCheck(Record):
    """Other tools of a cross-check; their runs are in the trials (`TrialPlan.beside`)."""

    versions: dict[str, str] = Field(default_factory=dict)
    left_out: dict[str, str] = Field(default_factory=dict)


class AATest(Record):
    """A server against itself: experiments drawn from its trials, each under two names."""

    experiments: int = Field(ge=1)
    each: int = Field(ge=3)


class StoredFigures(Record):
    """Trials that count of a stored experiment with a gate's base."""

    experiment: str
    created: str
    values: dict[str, tuple[float, ...]]


class Baseline(Record):
    """Stored base of a gate."""

    tag: str
    experiments: tuple[StoredFigures, ...]


class GateTest(Record):
    """Is a candidate no worse than its base? (prony.compare.noninferiority)"""

    base: Name
    """A server of the part, or with `baseline` the stored server's name."""
    candidate: Name
    figures: tuple[str, ...] = Field(min_length=1)
    margin: float = Field(gt=0, lt=1)
    """Tolerated loss, as a share."""
    margins: dict[str, float] = Field(default_factory=dict)
    baseline: Baseline | None = None
    """None: base and candidate are measured round-robin."""


class Part(Record):
    """Cells reported together."""

    name: Name
    title: Title
    note: Title = ""
    shape: Shape = "matrix"
    comparisons: tuple[tuple[Name, Name], ...] | None = None
    """Pairs of servers; all pairs when None, no pair when empty."""
    band: float = Field(default=0.02, gt=0, lt=1)
    at_least: float = Field(default=0.01, ge=0, lt=100)
    until_clear: int | None = Field(default=None, ge=1)
    """Cap on blocks that are added after `trials` until every pair is clear (docs/method.md)."""
    budget_s: float | None = Field(default=None, gt=0)
    """Latest end of a block, from the start of the plan's first trial; shared by all parts."""
    share_process: Sharing | None = None
    duet: bool = False
    """Whether the servers of a block are alive together and take turns under load (docs/method.md)."""
    search: Search | None = None
    follows: Follow | None = None
    cross_check: CrossCheck | None = None
    aa: AATest | None = None
    gate: GateTest | None = None
    soak: bool = False
