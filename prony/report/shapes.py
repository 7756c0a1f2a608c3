"""From a part to its blocks: the one place that knows the shapes."""

from __future__ import annotations

from prony.report import cells_table, comparison, cross_check, scaling, shared, single
from prony.report.blocks import Block, Lines
from prony.report.cells_table import skipped_lines
from prony.report.hosts import host_blocks
from prony.report.result import PartView
from prony.report.wording import counted

MOST_LISTED = 12
LISTED = ("comparison", "cross-check", "aa", "gate")


def blocks(part: PartView) -> list[Block]:
    """What a part shows before its hosts, its trials without a figure, and findings."""
    return [] if part.failure else [*_of_its_shape(part), *shared.blocks(part)]


def _of_its_shape(part: PartView) -> list[Block]:
    match part.layout:
        case "single":
            return single.blocks(part)
        case "sweep":
            return scaling.sweep_blocks(part)
        case "capacity":
            return scaling.capacity_blocks(part)
        case "cross-check":
            return cross_check.blocks(part)
        case "comparison":
            return comparison.blocks(part, comparison.drawn_pairs(part))
        case "aa":
            return comparison.aa_blocks(part)
        case "gate":
            return comparison.gate_blocks(part)
        case "matrix":
            return cells_table.blocks(part)


def hosts(part: PartView) -> list[Block]:
    """The hosts of the trials that count, and their links; where none counts, of all: a host that was lost,
    or a link that was full, is the reason then. Nothing where everything was on one host.
    """
    counting = [trial for cell in part.cells for trial in cell.counting]
    return host_blocks(counting or [trial for cell in part.cells for trial in cell.every])


def not_conforming(part: PartView) -> Lines | None:
    """The trials without a figure, each with its cause; where a part has many cells only those that were run
    again, as the findings tell of the others.
    """
    lines = []
    for cell in part.cells:
        for trial in cell.superseded:
            why = trial.why_not or "interrupted, or disturbed"
            lines.append(f"{_place(cell.label, trial.record.block)}: {why}; run again")
        for trial in cell.every if part.part.shape in LISTED else ():
            if trial.why_not is not None:
                lines.append(f"{_place(cell.label, trial.record.block)}: {trial.why_not}")
    more = len(lines) - MOST_LISTED
    if more > 1:
        lines = [*lines[:MOST_LISTED], f"… and {counted(more, 'more trial')}"]
    return Lines("Trials without a figure", tuple(lines), note="on record") if lines else None


def _place(label: str, block: int) -> str:
    return f"{label}, block {block + 1}"


def left_out(part: PartView) -> Lines | None:
    """The cells that were not run, and why."""
    lines = () if part.failure else skipped_lines(part)
    return Lines("Not run", lines, style="yellow") if lines else None
