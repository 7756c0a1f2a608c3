"""Blocks beyond the planned ones: which cells get another one together, and whose turn it is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from prony.analysis import questions
from prony.experiment.clear import Watch
from prony.plan.cell import Cell
from prony.plan.part import Part
from prony.plan.plan import ScheduledTrial


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of a part that get their blocks together, and what watches them."""

    part: Part
    cells: frozenset[str]
    watches: tuple[Watch, ...]

    def need(self) -> float:
        """How wide the widest interval is that is not clear yet, relative to what is asked; 0 where all are
        clear, infinite where there is none yet.
        """
        return max((watch.need() for watch in self.watches), default=0.0)

    @property
    def decided(self) -> str:
        """What holds when there is no need."""
        return self.watches[0].decided


def groups(part: Part, cells: Sequence[Cell], watched: Mapping[str, Watch]) -> list[Group]:
    """The cells of a part as they get further blocks. All together; with a budget each question by itself, as
    far as they do not share processes, so that its time goes where it tells most.
    """
    if not watched:
        return []
    if part.budget_s is None or part.share_process == "workloads":
        together = [list(cells)]
    elif part.share_process is not None:
        together = list(_by_workload(cells).values())
    else:
        together = list(questions(part, cells).values())
    return [
        Group(
            part, frozenset(cell.id for cell in some), tuple({id(w): w for w in _of(some, watched)}.values())
        )
        for some in together
    ]


def _by_workload(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.trial.workload.name, []).append(cell)
    return found


def _of(cells: Sequence[Cell], watched: Mapping[str, Watch]) -> list[Watch]:
    return [watched[cell.id] for cell in cells if cell.id in watched]


def next_block(group: Group, left: Sequence[ScheduledTrial]) -> list[ScheduledTrial]:
    """Of the trials that have not ended those of the group's next block; empty after its last one."""
    mine = [one for one in left if one.cell in group.cells and one.kind == "trial"]
    first = min((one.block for one in mine), default=0)
    return [one for one in mine if one.block == first]


def begun(
    groups: Sequence[Group], left: Sequence[ScheduledTrial], ended: Collection[tuple[str, int, str]]
) -> list[ScheduledTrial]:
    """What is left of a block that was begun before an interrupt, and is run to its end; empty where there is
    none. `ended`: (cell, block, kind).
    """
    for group in groups:
        some = next_block(group, left)
        blocks = {block for cell, block, kind in ended if cell in group.cells and kind == "trial"}
        if some and some[0].block in blocks:
            return some
    return []


def by_need(
    groups: Sequence[Group], left: Sequence[ScheduledTrial]
) -> list[tuple[Group, list[ScheduledTrial]]]:
    """The groups that need another block and have one, the neediest first; of equal ones that with the fewest
    blocks.
    """
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
