"""Added blocks: which cells get another block together, and which group is next. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from prony.analysis import CLOSED_FIGURE, changes_of, compared_figure, later, questions, sample
from prony.compare import MARGINS, Claim, Later, Looks, Margins, Sample, compare
from prony.compare.noninferiority import Change
from prony.compare.summary import half_width
from prony.evidence.trial import Evidence, TrialRecord
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.finding import Judgement
from prony.plan.cell import Cell
from prony.plan.part import GateTest, Part
from prony.plan.plan import ScheduledTrial

LEAST_NEED = 1e-6
"""Need of a pair that further blocks may not help: after all others."""


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of a part that get their blocks together, and their watches."""

    part: Part
    cells: frozenset[str]
    watches: tuple[Watch, ...]

    def need(self) -> float:
        """1 ÷ blocks to the nearest open claim; 0: all clear, infinite: no interval yet."""
        return max((watch.need() for watch in self.watches), default=0.0)

    @property
    def decided(self) -> str:
        """The state in which no block is needed, in words."""
        return self.watches[0].decided


def groups(part: Part, cells: Sequence[Cell], watched: Mapping[str, Watch]) -> list[Group]:
    """Cells that get further blocks together: the whole part, or with a budget each question."""
    if not watched:
        return []
    if part.budget_s is None or part.share_process == "workloads":
        together = [list(cells)]
    elif part.share_process is not None:
        by_workload: dict[str, list[Cell]] = {}
        for cell in cells:
            by_workload.setdefault(cell.trial.workload.name, []).append(cell)
        together = list(by_workload.values())
    else:
        together = list(questions(part, cells).values())
    return [
        Group(
            part,
            frozenset(cell.id for cell in some),
            tuple(dict.fromkeys(watched[cell.id] for cell in some if cell.id in watched)),
        )
        for some in together
    ]


def next_block(group: Group, left: Sequence[ScheduledTrial]) -> list[ScheduledTrial]:
    """The remaining trials of the group's next block; empty after its last."""
    own = [trial for trial in left if trial.cell in group.cells and trial.kind == "trial"]
    first = min((trial.block for trial in own), default=0)
    return [trial for trial in own if trial.block == first]


def interrupted_block(
    groups: Sequence[Group], left: Sequence[ScheduledTrial], ended: Collection[tuple[str, int, str]]
) -> list[ScheduledTrial]:
    """The remaining trials of an interrupted block. `ended`: (cell, block, kind)."""
    for group in groups:
        some = next_block(group, left)
        blocks = {block for cell, block, kind in ended if cell in group.cells and kind == "trial"}
        if some and some[0].block in blocks:
            return some
    return []


def by_need(
    groups: Sequence[Group], left: Sequence[ScheduledTrial]
) -> list[tuple[Group, list[ScheduledTrial]]]:
    """Groups that need another block and have some left: nearest to a claim first, then fewest blocks."""
    wanted = [
        (need, group, some)
        for group in groups
        if (some := next_block(group, left)) and (need := group.need()) > 0
    ]
    wanted.sort(key=lambda group_need: (-group_need[0], group_need[2][0].block))
    return [(group, some) for _, group, some in wanted]


def clear_groups(groups: Sequence[Group], left: Sequence[ScheduledTrial]) -> list[str]:
    """A sentence per group that is clear before its last block."""
    return [
        f"{group.part.title}: {group.decided} after {some[0].block} blocks"
        for group in groups
        if (some := next_block(group, left)) and not group.need()
    ]


class Ended:
    """Ended trials: samples by figure, and the evidence of conforming trials."""

    def __init__(self, figures: Sequence[str]) -> None:
        self.samples: dict[str, list[Sample]] = {figure: [] for figure in figures}
        self.conforming: dict[tuple[str, int], Evidence] = {}
        self.limits = SteadyWindowLimits()

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Add a trial, replacing an earlier attempt; controls are ignored."""
        if record.kind != "trial":
            return
        place = (record.server, record.block)
        for figure, samples in self.samples.items():
            samples[:] = [s for s in samples if (s.server, s.block) != place]
            samples.append(sample(record, judgement, figures, figure))
        self.conforming.pop(place, None)
        self.limits = SteadyWindowLimits.among(judgement.limits)
        if record.failure is None and judgement.conforms:
            self.conforming[place] = record.evidence

    def later(self, figure: str) -> Later | None:
        """Residual drift of a figure, by server."""
        by_server: dict[str, list[Evidence]] = {}
        for (server, _), evidence in self.conforming.items():
            by_server.setdefault(server, []).append(evidence)
        return later(by_server, figure, self.limits)


class UntilClear(Ended):
    """Until every pair of these servers is clear in the figure."""

    decided = "every pair is clear"

    def __init__(
        self,
        servers: Sequence[str],
        looks: Looks,
        figure: str = CLOSED_FIGURE,
        margins: Margins = MARGINS,
        among: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        super().__init__((figure,))
        self.servers, self.looks, self.figure, self.margins = servers, looks, figure, margins
        self.among = among

    def need(self) -> float:
        """1 ÷ expected blocks to the nearest open pair's claim; 0: clear."""
        samples = self.samples[self.figure]
        comparison = compare(
            samples, self.figure, servers=self.servers, among=self.among, looks=self.looks,
            margins=self.margins,
        )  # fmt: skip
        if len(self.servers) < 2:
            half = half_width(comparison.servers[0].values) if comparison.servers else math.inf
            near = math.log1p(self.margins.band) / half if half > 0 else 1.0
            return math.inf if math.isinf(half) else near**2 if near < 1 else 0.0
        lost = {
            values.server
            for values in comparison.servers
            if not values.values and len(values.missing) >= self.looks.first
        }
        needs = [
            LEAST_NEED
            if {pair.a, pair.b} & lost
            else math.inf
            if pair.low is None
            else LEAST_NEED
            if pair.settles is None or pair.settles.blocks is None
            else 1 / pair.settles.blocks
            for pair in comparison.pairs
            if pair.claim is Claim.OPEN
        ]
        return max(needs, default=0.0)


class UntilDecided(Ended):
    """Until the gate is decided, or cannot be decided on this host."""

    decided = "the gate has its outcome"

    def __init__(self, gate: GateTest, looks: Looks) -> None:
        super().__init__(gate.figures)
        self.gate, self.looks = gate, looks

    def need(self) -> float:
        """Infinite until the gate is decided, then 0."""
        changes = changes_of(self.gate, self.samples, self.looks, self.later)
        return math.inf if changes.change is Change.CANNOT_TELL else 0.0


Watch = UntilClear | UntilDecided
"""Decides before each block whether its servers `need` another; `decided`: the outcome in words."""


def watches(part: Part, cells: Sequence[Cell]) -> dict[str, Watch]:
    """Cell -> watch, shared by the servers of a question. Empty with a fixed number of trials."""
    if part.until_clear is None:
        return {}
    by_cell: dict[str, Watch] = {}
    for group in questions(part, cells).values():
        looks = Looks(group[0].trials, part.until_clear)
        watch: Watch
        if part.gate is not None:
            watch = UntilDecided(part.gate, looks)
        else:
            servers = tuple(cell.server for cell in group)
            # In an A/A comparison every further trial is informative.
            band = part.band if part.aa is None else LEAST_NEED
            margins = Margins(band, part.at_least)
            watch = UntilClear(
                servers, looks, compared_figure(group[0].trial.load), margins, part.comparisons
            )
        by_cell |= {cell.id: watch for cell in group}
    return by_cell
