"""Where the CPU time of a request goes, as the package that explains says it: no profile is read here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prony import seams
from prony.report.blocks import Block, Lines
from prony.report.cell_view import CellView

if TYPE_CHECKING:
    from prony.report.html.chapters import Item

TITLE = "Where CPU time goes"


@dataclass(frozen=True, slots=True)
class Explained:
    """Of one part."""

    blocks: tuple[Block, ...]
    """For a terminal."""
    servers: Sequence[dict[str, Any]] = ()
    """As JSON, each server."""
    differences: Sequence[dict[str, Any]] = ()
    """As JSON, each pair."""
    items: Callable[[], Sequence[Item]] | None = None
    """The chapter of a page, drawn when it is called; None: the blocks."""
    lead: str = ""
    script: str = ""
    """Of the chapter."""


def explained(cells: Sequence[CellView]) -> Explained | None:
    """Of the cells that have an explained trial; None where no cell has one."""
    with_profile = [cell for cell in cells if cell.explained]
    if not with_profile:
        return None
    explain = seams.found(seams.HOOKS, "explanations")
    if explain is not None:
        made: Explained | None = explain(cells)
        return made
    lines = tuple(f"{cell.cell.server}: {_recorded(cell)}" for cell in with_profile)
    needed = seams.OWN[seams.HOOKS, "explanations"].package
    return Explained((Lines(TITLE, lines, note=f"{needed} shows what they hold"),))


def _recorded(cell: CellView) -> str:
    profile = cell.explained[-1].record.evidence.profile
    if profile is None:
        return "no profile"
    samples = 0 if profile.cpu is None else profile.cpu.total
    return f"{samples:,} CPU samples, {profile.profiler}"
