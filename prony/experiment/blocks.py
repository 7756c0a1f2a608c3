"""Blocks beyond the planned ones: which cells get another one together, and whose turn it is. Pure."""

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
"""The least need: of a pair that further blocks may not help. What can be told comes first."""


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of a part that get their blocks together, and what watches them."""

    part: Part
    cells: frozenset[str]
    watches: tuple[Watch, ...]

    def need(self) -> float:
        """1 ÷ the blocks to the nearest claim that is open; 0: all clear, infinite: no interval yet."""
        return max((watch.need() for watch in self.watches), default=0.0)

    @property
    def decided(self) -> str:
        """What holds when there is no need."""
        return self.watches[0].decided


def groups(part: Part, cells: Sequence[Cell], watched: Mapping[str, Watch]) -> list[Group]:
    """The cells of a part that get further blocks together: all, or with a budget each question by itself."""
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
    """Of the trials that have not ended those of the group's next block; empty after its last one."""
    mine = [one for one in left if one.cell in group.cells and one.kind == "trial"]
    first = min((one.block for one in mine), default=0)
    return [one for one in mine if one.block == first]


def begun(
    groups: Sequence[Group], left: Sequence[ScheduledTrial], ended: Collection[tuple[str, int, str]]
) -> list[ScheduledTrial]:
    """What is left of a block that an interrupt cut off. `ended`: (cell, block, kind)."""
    for group in groups:
        some = next_block(group, left)
        blocks = {block for cell, block, kind in ended if cell in group.cells and kind == "trial"}
        if some and some[0].block in blocks:
            return some
    return []


def by_need(
    groups: Sequence[Group], left: Sequence[ScheduledTrial]
) -> list[tuple[Group, list[ScheduledTrial]]]:
    """The groups that need another block and have one: nearest to a claim first, then the fewest blocks."""
    wanted = [
        (need, group, some)
        for group in groups
        if (some := next_block(group, left)) and (need := group.need()) > 0
    ]
    wanted.sort(key=lambda one: (-one[0], one[2][0].block))
    return [(group, some) for _, group, some in wanted]


def settled(groups: Sequence[Group], left: Sequence[ScheduledTrial]) -> list[str]:
    """A sentence for each group that is clear before its last block."""
    return [
        f"{group.part.title}: {group.decided} after {some[0].block} blocks"
        for group in groups
        if (some := next_block(group, left)) and not group.need()
    ]


class Ended:
    """The trials that ended: samples by figure, and the evidence of those that conform."""

    def __init__(self, figures: Sequence[str]) -> None:
        self.samples: dict[str, list[Sample]] = {figure: [] for figure in figures}
        self.conforming: dict[tuple[str, int], Evidence] = {}
        self.limits = SteadyWindowLimits()

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Take a trial into account, in place of an earlier attempt; controls take no part."""
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
    """Until every pair of these servers is clear in one figure."""

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
        """1 ÷ the blocks expected to settle the open pair that is nearest to a claim; 0: clear."""
        samples = self.samples[self.figure]
        found = compare(
            samples, self.figure, servers=self.servers, among=self.among, looks=self.looks,
            margins=self.margins,
        )  # fmt: skip
        if len(self.servers) < 2:
            half = half_width(found.servers[0].values) if found.servers else math.inf
            near = math.log1p(self.margins.band) / half if half > 0 else 1.0
            return math.inf if math.isinf(half) else near**2 if near < 1 else 0.0
        lost = {
            one.server for one in found.servers if not one.values and len(one.missing) >= self.looks.first
        }
        needs = [
            LEAST_NEED
            if {pair.a, pair.b} & lost
            else math.inf
            if pair.low is None
            else LEAST_NEED
            if pair.settles is None or pair.settles.blocks is None
            else 1 / pair.settles.blocks
            for pair in found.pairs
            if pair.claim is Claim.OPEN
        ]
        return max(needs, default=0.0)


class UntilDecided(Ended):
    """Until it is known whether a candidate is worse than its base, or that it cannot be known here."""

    decided = "the gate has its outcome"

    def __init__(self, gate: GateTest, looks: Looks) -> None:
        super().__init__(gate.figures)
        self.gate, self.looks = gate, looks

    def need(self) -> float:
        """Infinite until the gate is decided, then 0."""
        found = changes_of(self.gate, self.samples, self.looks, self.later)
        return math.inf if found.change is Change.CANNOT_TELL else 0.0


Watch = UntilClear | UntilDecided
"""Says before each block whether its servers `need` another; `decided`: what holds when they do not."""


def watches(part: Part, cells: Sequence[Cell]) -> dict[str, Watch]:
    """Cell -> what watches it: one for the servers of each question. Empty with a fixed number of trials."""
    if part.until_clear is None:
        return {}
    found: dict[str, Watch] = {}
    for group in questions(part, cells).values():
        looks = Looks(group[0].trials, part.until_clear)
        watch: Watch
        if part.gate is not None:
            watch = UntilDecided(part.gate, looks)
        else:
            servers = tuple(cell.server for cell in group)
            # Of a server against itself every further trial tells something.
            band = part.band if part.aa is None else LEAST_NEED
            margins = Margins(band, part.at_least)
            watch = UntilClear(
                servers, looks, compared_figure(group[0].trial.load), margins, part.comparisons
            )
        found |= {cell.id: watch for cell in group}
    return found
