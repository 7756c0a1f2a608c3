"""Every shape of a part by its name, and what all parts show. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from prony.plan.part import Shape as Name
from prony.report.blocks import Block, Lines
from prony.report.comparison import Comparison, Matrix, SameServer
from prony.report.cross_check import CrossCheck
from prony.report.gate import Gate
from prony.report.hosts import host_blocks
from prony.report.result import PartView
from prony.report.scaling import Capacity, Sweep
from prony.report.shape import Shape
from prony.report.trial_tables import Single
from prony.report.wording import counted

MOST_LISTED = 12
SHAPES: Mapping[Name, Shape] = {
    "comparison": Comparison(),
    "matrix": Matrix(),
    "sweep": Sweep(),
    "capacity": Capacity(),
    "single": Single(),
    "cross-check": CrossCheck(),
    "aa": SameServer(),
    "gate": Gate(),
}


def shape_of(part: PartView) -> Shape:
    return SHAPES[part.layout]


def blocks(part: PartView) -> list[Block]:
    """What a part shows before its hosts, its trials without a figure, and findings."""
    return [] if part.failure else shape_of(part).everything(part)


def hosts(part: PartView) -> list[Block]:
    """Of the trials that count; where none does, of all: a lost host or a full link is the reason then."""
    counting = [trial for cell in part.cells for trial in cell.counting]
    return host_blocks(counting or [trial for cell in part.cells for trial in cell.every])


def not_conforming(part: PartView) -> tuple[Lines, ...]:
    """Each with its cause; of many cells only those that were run again, as findings tell of the others."""
    lines = []
    for cell in part.cells:
        for trial in cell.superseded:
            why = trial.why_not or "interrupted, or disturbed"
            lines.append(f"{cell.label}, block {trial.record.block + 1}: {why}; run again")
        for trial in cell.every if SHAPES[part.part.shape].lists_failures else ():
            if trial.why_not is not None:
                lines.append(f"{cell.label}, block {trial.record.block + 1}: {trial.why_not}")
    more = len(lines) - MOST_LISTED
    if more > 1:
        lines = [*lines[:MOST_LISTED], f"… and {counted(more, 'more trial')}"]
    return (Lines("Trials without a figure", tuple(lines), note="on record"),) if lines else ()
