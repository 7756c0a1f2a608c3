"""`ResultView`: the input of every report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prony import seams
from prony.compare.capacity import Outcome, SearchResult
from prony.compare.claim import Claim, Settles
from prony.compare.false_differences import FalseDifferences
from prony.compare.levels import Levels
from prony.compare.noninferiority import Change, FigureChange
from prony.compare.position import PositionEffect
from prony.compare.scaling import Scaling
from prony.compare.shared import CarryOver, LoadRatio
from prony.evidence.host import CpuPartition, Fingerprint
from prony.judge.finding import Finding
from prony.plan.objective import Objective
from prony.plan.part import Part, Shape
from prony.plan.plan import Plan, Skipped
from prony.report.aa import OnRecord
from prony.report.blocks import Block, Chapter, Lines, Picture
from prony.report.cell_view import HEADLINE, CellView, Condition, TrialView
from prony.store.rows import Note

TITLE = "Where CPU time goes"


@dataclass(frozen=True)
class Explained:
    """A part's stored explanation, readable without the package that made it."""

    blocks: tuple[Block, ...]
    servers: tuple[dict[str, Any], ...] = ()
    """As JSON, each server."""
    differences: tuple[dict[str, Any], ...] = ()
    """As JSON, each pair."""
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Drawn(Explained):
    """With a chapter of its own for the page. Never stored: a file from elsewhere brings no script."""

    chapter: Callable[[], Chapter] = field(kw_only=True)
    """Drawn when it is called."""
    script: str = ""
    """Of the chapter."""


def explained(cells: Sequence[CellView]) -> Explained | None:
    """Explanation of the explained cells; None without any. Recomputed, or as stored without the package."""
    with_profile = [cell for cell in cells if cell.explained]
    if not with_profile:
        return None
    explain = seams.found(seams.HOOKS, "explanations")
    if explain is not None:
        made: Explained | None = explain(cells)
        return made
    records = [trial.record for cell in with_profile for trial in cell.explained]
    stored = max((r for r in records if r.explanation), key=lambda r: r.ended_at, default=None)
    if stored is not None:
        with suppress(ValidationError):  # of another version, or not Prony's
            return TypeAdapter(Explained).validate_python(stored.explanation)
    lines = tuple(f"{cell.cell.server}: {_recorded(cell)}" for cell in with_profile)
    needed = seams.OWN[seams.HOOKS, "explanations"].package
    return Explained((Lines(TITLE, lines, note=f"{needed} shows what they hold"),))


def _recorded(cell: CellView) -> str:
    profile = cell.explained[-1].record.evidence.profile
    if profile is None:
        return "no profile"
    samples = 0 if profile.cpu is None else profile.cpu.total
    return f"{samples:,} CPU samples, {profile.profiler}"


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server under test as the reader knows it."""

    address: str
    """Its name in the catalogue with the variant (spring-tomcat, tomcat:async), or its URL."""
    title: str
    versions: Mapping[str, str] = field(default_factory=dict)
    jdk: str = ""


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source in a ratio's budget: relative bounds, None where not bounded."""

    source: str
    """The check's name; `missing`, `position`, `order`, and `steady` for the drift to the horizon."""
    low: float | None
    high: float | None
    cancelled: float
    """Less than both sides' bounds together by this much on the log scale, because it bends both alike."""


@dataclass(frozen=True, slots=True)
class PairView:
    """A figure of two servers: `ratio` is a ÷ b with its interval; `sentence` states the claim."""

    a: str
    b: str
    figure: str
    ratio: float | None
    low: float | None
    high: float | None
    worst_low: float | None
    worst_high: float | None
    """The interval with every source of the budget at its worst; None: not bounded."""
    later_low: float | None
    later_high: float | None
    """The same up to `horizon_s` after the window; None, too, where no plateau is claimed."""
    horizon_s: float | None
    claim: Claim
    at_least: float | None
    """Of a difference: the near end, as a factor above 1."""
    within: float | None
    """Of an equivalence: the margin, as a share."""
    better: str | None
    """Which of the two is better, where they are shown to differ and the figure has a direction."""
    settles: Settles | None
    """What settles an open pair, or extends a window's claim to the horizon."""
    sources: tuple[SourceView, ...]
    """What may bend the ratio, the largest first."""
    provided: tuple[Condition, ...]
    """What the claim rests on where nothing bounds it."""
    sentence: str
    window_sentence: str
    """The same without what may come after the window."""
    basis: str = ""
    """What the interval rests on: level, trials, family."""
    where: str = ""
    """Workload and load, where a part has several."""

    @property
    def differs(self) -> bool:
        """Whether a difference is shown, for the window at least."""
        return self.claim in {Claim.SHOWN, Claim.SHOWN_FOR_WINDOW}


@dataclass(frozen=True, slots=True)
class PositionView:
    """Change of a figure per place in the block, as a ratio with its 95 % interval."""

    figure: str
    ratio_per_place: float
    low: float
    high: float
    trials: int
    found: bool
    sentence: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class SharedView:
    """Loads that shared processes, in a figure: of a workload, or of all where `workload` is empty."""

    workload: str
    figure: str
    processes: int
    trials: int
    ratios: tuple[LoadRatio, ...]
    """From each load to the next, by server."""
    place: PositionEffect | None
    """Effect per position of a load in its process; None if it cannot be estimated."""
    carry_over: CarryOver | None
    """Carry-over from the preceding load; None if it cannot be estimated."""
    found: bool


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial of a capacity search."""

    trial: TrialView
    rate_per_s: float
    outcome: Outcome
    pressure: float | None
    """Measured ÷ allowed of the tightest objective; None when it cannot be printed."""


@dataclass(frozen=True, slots=True)
class SearchView:
    """The result of a capacity search."""

    objectives: tuple[Objective, ...]
    result: SearchResult
    tried: tuple[Tried, ...]
    """By rate."""


@dataclass(frozen=True, slots=True)
class GateView:
    """The result of a gate."""

    change: Change
    sentence: str
    base: str
    candidate: str
    margin: float
    """The loss that is tolerated, as a share."""
    figures: tuple[FigureChange, ...]
    notes: tuple[str, ...]
    blocks: int
    """Blocks in which both sides count; of a baseline trials of the candidate."""
    most_blocks: int
    """As many as were planned at the most."""
    budget_s: float | None
    baseline: str | None
    """The tag of the stored base, where it was not measured anew."""
    experiments: int | None
    advice: tuple[str, ...]
    """What the runner can see, and what to do where that is too little."""


@dataclass(frozen=True)
class PartView:
    """A part of a plan: cells reported together."""

    part: Part
    cells: tuple[CellView, ...] = ()
    servers: tuple[ServerView, ...] = ()
    pairs: tuple[PairView, ...] = ()
    positions: tuple[PositionView, ...] = ()
    """Of the figure that each question is about; none where the trials do not suffice."""
    skipped: tuple[Skipped, ...] = ()
    laws: Mapping[str, Scaling | None] = field(default_factory=dict)
    """Of a sweep, by server; None where too few numbers of users have a trial that counts."""
    search: SearchView | None = None
    aa: FalseDifferences | None = None
    """Of a server against itself; None where too few trials count."""
    gate: GateView | None = None
    shared: tuple[SharedView, ...] = ()
    """Of loads that shared processes, by figure, and by workload where these did not."""
    levels: Levels | None = None
    """Of a comparison of a single workload and load: variance within and between processes."""
    aa_on_record: OnRecord | None = None
    """Of a comparison: the stored A/A experiment that fits."""
    explanation: Explained | None = None
    """Where CPU time goes; None where no trial ran with a profiler."""
    seed: int = 0
    ended: bool = True
    """Whether no further trial will come."""
    failure: str = ""
    """Why a part that depends on another was not run."""
    findings: tuple[Finding, ...] = ()
    """Findings across trials, in addition to each trial's own."""

    @property
    def trials(self) -> tuple[TrialView, ...]:
        """Trials and controls, in the order in which they ran."""
        every = [trial for cell in self.cells for trial in cell.every]
        return tuple(sorted(every, key=lambda t: (t.record.started_at, t.record.id)))

    @property
    def counting(self) -> tuple[TrialView, ...]:
        """The trials whose figures are printed."""
        return tuple(trial for trial in self.trials if trial.counts)

    @property
    def external(self) -> bool:
        """Whether the servers were already running, and not started by Prony."""
        return bool(self.trials) and all(not t.record.evidence.server.owned for t in self.trials)

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(view.cell.trial.workload.name for view in self.cells))

    @property
    def swept(self) -> bool:
        """Whether the number of users is what changes between loads."""
        return len({view.users for view in self.cells if view.users is not None}) > 1

    @property
    def is_open(self) -> bool:
        """Whether its times are latencies of an open loop, from the intended send."""
        return any(view.cell.trial.load.model == "open" for view in self.cells)

    def of(self, server: str) -> tuple[CellView, ...]:
        return tuple(view for view in self.cells if view.cell.server == server)

    @property
    def headline_figure(self) -> str:
        return next((view.headline_figure for view in self.cells), HEADLINE)

    @property
    def layout(self) -> Shape:
        """As its shape says; but a comparison under several loads as a table of cells, and conversely."""
        if self.part.shape not in ("comparison", "matrix"):
            return self.part.shape
        one_each = self.part.follows is None and len(self.cells) == len(self.servers)
        if self.part.shape == "comparison":
            return "comparison" if one_each else "matrix"
        one_load = (
            len({(view.cell.trial.load_name, view.cell.trial.workload.name) for view in self.cells}) == 1
        )
        compared = len(self.servers) > 1 and self.part.comparisons is None
        return "comparison" if one_each and one_load and compared else "matrix"

    @property
    def usable(self) -> bool:
        """Whether it has its figures: every cell, any point of a sweep, a rate that held in a search."""
        if self.failure or any(not finding.conforms for finding in self.findings):
            return False
        if self.search is not None:
            return self.search.result.held_per_s is not None
        if self.part.aa is not None:
            return self.aa is not None
        if self.gate is not None:
            return self.gate.change is not Change.NOT_MEASURABLE
        if self.part.shape == "sweep":
            return bool(self.counting)
        return all(view.counting for view in self.cells)


@dataclass(frozen=True)
class ResultView:
    """A stored experiment of any command, as a report needs it."""

    id: str
    title: str
    created: datetime
    state: str
    """finished, interrupted, running."""
    plan: Plan
    plan_text: str
    parts: tuple[PartView, ...]
    fingerprint: Fingerprint | None = None
    partition: CpuPartition | None = None
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    """What people wrote about it, the oldest first."""

    @property
    def quick(self) -> bool:
        """Whether every figure is marked as a first look."""
        return self.plan.quick

    @property
    def cells(self) -> tuple[CellView, ...]:
        return tuple(view for part in self.parts for view in part.cells)

    @property
    def trials(self) -> tuple[TrialView, ...]:
        """Trials and controls of all parts, in the order in which they ran."""
        return tuple(trial for part in self.parts for trial in part.trials)

    @property
    def servers(self) -> tuple[ServerView, ...]:
        return tuple({server.address: server for part in self.parts for server in part.servers}.values())

    @property
    def planned(self) -> int:
        """Number of trials in the plan as drawn up so far, explained trials excluded."""
        return sum(trial.kind != "explained" for trial in self.plan.order())

    @property
    def external(self) -> bool:
        """Whether the servers were already running, and not started by Prony."""
        return bool(self.trials) and all(part.external for part in self.parts if part.trials)

    @property
    def conforms(self) -> bool:
        """Whether every trial conforms; False without trials."""
        return bool(self.trials) and all(trial.conforms for trial in self.trials)

    @property
    def usable(self) -> bool:
        """Whether every part has its figures."""
        return bool(self.trials) and all(part.usable for part in self.parts)
