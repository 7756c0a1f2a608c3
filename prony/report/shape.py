"""What a kind of part comes to, what is said of it, its tables, and the chapters of its page. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from prony.report import shared
from prony.report.blocks import Block, Chapter, Lines
from prony.report.cell_view import HEADLINE, CellView, Spread
from prony.report.intervals import over_trials
from prony.report.labels import label_of
from prony.report.result import PartView
from prony.report.wording import counted, figure_good_to

MOST_SENTENCES = 4


class Shape(ABC):
    """How a part is shown of which nothing more is known than its cells."""

    lists_failures = False
    """Whether the details list every trial without a figure; else the findings tell of them."""
    picture = ""
    """What shows the answer on the page before its rows: law, capacity or changes."""
    answers_by_server = False
    """Whether each server has an answer of its own."""
    charts: tuple[str, ...] = ()
    """What stands above the tables of the page's first chapter."""

    def analysed(self, part: PartView) -> PartView:
        return part

    def ranking(self, part: PartView) -> list[CellView]:
        """Its cells as the answer shows them: those with a figure first."""
        return sorted(part.cells, key=lambda cell: cell.figure(part.asked_figure) is None)

    def winner(self, part: PartView, figure: str) -> str | None:  # noqa: ARG002
        """The server that is shown to be better than every other one; None where servers are not ranked."""
        return None

    def sentences(self, part: PartView, most: int = MOST_SENTENCES) -> tuple[str, ...]:
        """What holds of it, the first thing first."""
        if part.trials:
            return self.measured(part, most)
        return (f"Not run: {part.skipped[0].why.partition(' (')[0]}" if part.skipped else "Not run",)

    def measured(self, part: PartView, most: int) -> tuple[str, ...]:  # noqa: ARG002
        return of_cells(part)

    @abstractmethod
    def blocks(self, part: PartView) -> list[Block]:
        """Its tables and sentences."""

    def everything(self, part: PartView) -> list[Block]:
        """The same with what shared processes did."""
        return [*self.blocks(part), *shared.blocks(part)]

    @abstractmethod
    def chapters(self, part: PartView) -> list[Chapter | str]:
        """Of its page: as they stand, or the names of those that charts make."""


def of_cells(part: PartView) -> tuple[str, ...]:
    """A sentence for the cell of a part without pairs; of several, where the figure is highest and lowest."""
    figure = part.asked_figure
    found = [(spread, cell) for cell in part.cells if (spread := cell.figure(figure)) is not None]
    if len(found) < 2:
        return tuple(_of_cell(cell, spread) for spread, cell in found)
    found.sort(key=lambda one: one[0].median)
    least, most = (
        f"{cell.label}: {over_trials(figure, spread, spread.median)}"
        for spread, cell in (found[0], found[-1])
    )
    return (f"Of {len(found)} cells {label_of(figure)} is highest in {most}, and lowest in {least}",)


def _of_cell(cell: CellView, found: Spread) -> str:
    figure, off = cell.asked_figure, cell.uncertainty(cell.asked_figure)
    unit, of = ("requests/s", "") if figure == HEADLINE else ("ms", f"{label_of(figure)} ")

    def written(value: float) -> str:
        return f"{over_trials(figure, found, value)} {unit}"

    value = written(found.median)
    if off is not None:
        value = figure_good_to(found.median, *off.worst, written, ", good to ")
    bound = f"; bound by {cell.bound_by}" if cell.bound_by not in ("", "unknown") else ""
    return f"{of}{value}{bound}"


def steps_chapter(tables: Sequence[Block]) -> Chapter:
    lead = "Requests per step over the window; service times, median over trials; failed is the sum."
    return Chapter("steps", "Steps", tuple(tables), lead)


def left_out(part: PartView) -> tuple[Lines, ...]:
    reasons: dict[str, list[str]] = {}
    for one in () if part.failure else part.skipped:
        reasons.setdefault(one.why, []).append(one.cell)
    lines = tuple(
        f"{counted(len(cells), 'cell')}, such as {cells[0]}: {why}"
        if len(cells) > 1
        else f"{cells[0]}: {why}"
        for why, cells in reasons.items()
    )
    return (Lines("Not run", lines, style="yellow"),) if lines else ()
