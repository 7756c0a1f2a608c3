"""A plan made ready to run: its cells (server x workload x load) and the order of their trials.

Self-contained: this is what is stored and what is resumed. Must not know how a trial is run.
"""

from __future__ import annotations

import fnmatch
import random
from typing import Any, Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.plan.load import ClosedLoad
from prony.plan.planfile import CpuKeys, NeedKeys
from prony.plan.target import Value
from prony.plan.trial import TrialPlan


class Launch(Record):
    """How a server is started: its address, and what the plan sets beside it."""

    address: str
    jdk: str | None = None
    heap: str | None = None
    jvm_flags: tuple[str, ...] = ()
    settings: dict[str, Value] = Field(default_factory=dict)


class PublishedFigures(Record):
    """What one source printed for a cell."""

    label: str
    source: str
    figures: dict[str, float]
    note: str = ""


class Cell(Record):
    """One server under one load of one workload: so many trials of it are run."""

    id: str
    """`part/server/workload/load`, unique in the plan."""
    part: str
    server: str
    """As the plan names it."""
    launch: Launch
    trial: TrialPlan
    trials: int = Field(ge=1)
    limits: dict[str, Any] = Field(default_factory=dict)
    expected_requests_per_s: float | None = None
    needs: NeedKeys | None = None
    optional: bool = False
    """Left out where the machine cannot do it, instead of refusing the whole plan."""
    published: tuple[PublishedFigures, ...] = ()

    @property
    def users(self) -> int | None:
        """Of a closed load."""
        return self.trial.load.users if isinstance(self.trial.load, ClosedLoad) else None


class PlanPart(Record):
    """What a report needs to know about a part."""

    name: str
    title: str
    note: str = ""
    comparisons: tuple[tuple[str, str], ...] | None = None
    band: float = Field(default=0.02, gt=0, lt=1)
    """Servers whose ratio is surely nearer to 1 than this are equivalent: no practical difference."""
    soak: bool = False


class Skipped(Record):
    """A cell that is not run, and why."""

    cell: str
    part: str
    server: str
    why: str


class Turn(Record):
    """One trial in the order of the run; `index` counts from 1 and is the end of the trial's id."""

    index: int
    cell: str
    block: int
    position: int


class RunPlan(Record):
    """Everything that is run, with nothing left to look up."""

    kind: Literal["plan"] = "plan"
    version: Literal[1] = 1
    name: str
    title: str
    note: str = ""
    parts: tuple[PlanPart, ...]
    cells: tuple[Cell, ...] = Field(min_length=1)
    skipped: tuple[Skipped, ...] = ()
    changes: tuple[str, ...] = ()
    """What --quick and the like changed, in words."""
    cpus: CpuKeys = CpuKeys()
    seed: int = 0
    quick: bool = False

    def cell(self, id: str) -> Cell:
        """The cell of this id."""
        return next(cell for cell in self.cells if cell.id == id)

    def of(self, part: str) -> tuple[Cell, ...]:
        """The cells of a part, in the order of the plan."""
        return tuple(cell for cell in self.cells if cell.part == part)

    def order(self) -> tuple[Turn, ...]:
        """Part by part; within a part block by block, each holding one trial of every cell in an order drawn
        from the seed.
        """
        source = random.Random(self.seed)
        turns: list[Turn] = []
        for part in self.parts:
            cells = self.of(part.name)
            for block in range(max((cell.trials for cell in cells), default=0)):
                row = [cell.id for cell in cells if cell.trials > block]
                source.shuffle(row)
                for position, cell in enumerate(row):
                    turns.append(Turn(index=len(turns) + 1, cell=cell, block=block, position=position))
        return tuple(turns)

    @property
    def estimate_s(self) -> float:
        """About how long it takes, builds apart."""
        return sum(cell.trials * cell.trial.estimate_s for cell in self.cells)

    def only(self, pattern: str) -> RunPlan | None:
        """The cells whose id matches the pattern (or lies in a part of that name), and of those that are not
        run the same ones; None when there is none to run.
        """

        def asked(identifier: str, part: str) -> bool:
            return fnmatch.fnmatchcase(identifier, pattern) or part == pattern

        kept = tuple(cell for cell in self.cells if asked(cell.id, cell.part))
        skipped = tuple(one for one in self.skipped if asked(one.cell, one.part))
        return self.model_copy(update={"cells": kept, "skipped": skipped}) if kept else None
