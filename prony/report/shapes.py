"""From a part to its blocks: the one place that knows the shapes. Must not know how a block is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prony.experiment.clear import compared_figure
from prony.report import cells_table, comparison, cross_check, scaling, shared, single
from prony.report.blocks import Block, Lines, TableCell
from prony.report.cells_table import skipped_lines
from prony.report.comparison import figure_cell, spread_of
from prony.report.hosts import host_blocks
from prony.report.intervals import heading as brackets
from prony.report.ranking import ranking, table, telling
from prony.report.result import HEADLINE, PairView, PartView, ResultView
from prony.report.wording import counted

MOST_REJECTED = 12
REJECTED_LISTED = ("comparison", "cross-check", "aa", "gate")
MOST_HEADLINES = 8
HEADLINED = ("comparison", "sweep", "capacity", "aa")


@dataclass(frozen=True, slots=True)
class Headlines:
    """The sentences of a part that a reader should see first."""

    part: str
    """Its title."""
    sentences: tuple[str, ...]
    note: str = ""
    """What holds for all of them."""


def blocks(part: PartView) -> list[Block]:
    """What a part shows before its hosts, its rejected trials and findings."""
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
            return _comparison(part)
        case "aa":
            return comparison.aa_blocks(part)
        case "gate":
            return comparison.gate_blocks(part)
        case "matrix":
            return cells_table.blocks(part)


def _comparison(part: PartView) -> list[Block]:
    """Of many servers a ranking first, and fewer pairs."""
    pairs = telling(part)
    found = ranking(part) if len(pairs) < len(part.pairs) else None
    return [*([table(found)] if found is not None else []), *comparison.blocks(part, pairs)]


def hosts(part: PartView) -> list[Block]:
    """The hosts of the trials that count, and their links; where none counts, of all: a host that was lost,
    or a link that was full, is the reason then. Nothing where everything was on one host.
    """
    counting = [trial for cell in part.cells for trial in cell.counting]
    return host_blocks(counting or [trial for cell in part.cells for trial in cell.every])


def rejected(part: PartView) -> Lines | None:
    """The trials whose figures are not printed, each with its cause; where a part has many cells only those
    that were run again, as the findings tell of the others.
    """
    lines = []
    for cell in part.cells:
        for trial in cell.superseded:
            lines.append(f"{_place(cell.label, trial.record.block)}: {trial.why or 'interrupted'}; run again")
        for trial in cell.every if part.part.shape in REJECTED_LISTED else ():
            if trial.rejected_because is not None:
                lines.append(f"{_place(cell.label, trial.record.block)}: {trial.rejected_because}")
    more = len(lines) - MOST_REJECTED
    if more > 1:
        lines = [*lines[:MOST_REJECTED], f"… and {counted(more, 'more trial')}"]
    return Lines("Rejected trials", tuple(lines), note="on record, in no figure above") if lines else None


def _place(label: str, block: int) -> str:
    return f"{label}, block {block + 1}"


def left_out(part: PartView) -> Lines | None:
    """The cells that were not run, and why."""
    lines = () if part.failure else skipped_lines(part)
    return Lines("Not run", lines, style="yellow") if lines else None


def headlines(view: ResultView) -> tuple[Headlines, ...]:
    """What a reader should see first: what the law or the search came to, or the comparison, where any trial
    counts and its servers have no ranking; of tables of cells the pairs of the first one that has any, and
    of one server's the most and the fewest requests/s. Where not all pairs fit, those that are clear come
    first.
    """
    said: list[Headlines] = []
    tables = (part for part in view.parts if part.layout == "matrix" and _marked(part).lines)
    first_table = next(tables, None)
    for part in view.parts:
        if part.gate is not None:
            said_first = Lines("", (part.gate.sentence,))
        elif ranking(part) is not None or (part.layout == "comparison" and not part.counting):
            continue
        elif part is first_table or (part.part.shape in HEADLINED and part.part.follows is None):
            said_first = _marked(part)
            if len(said_first.lines) > MOST_HEADLINES + 1:
                said_first = _marked(replace(part, pairs=_clear_first(part.pairs)))
        elif part.layout == "matrix" and len(part.servers) == 1:
            said_first = _most_and_least(part)
        else:
            continue
        lines = said_first.lines
        more = len(lines) - MOST_HEADLINES
        lines = (*lines[:MOST_HEADLINES], f"… and {more} more below") if more > 1 else lines
        if lines:
            said.append(Headlines(part.part.title, lines, said_first.note))
    return tuple(said)


def _most_and_least(part: PartView) -> Lines:
    """Of one server, the cells with the highest and the lowest rate, where users who never think set it."""
    found = [(cell, figure) for cell in part.cells if (figure := spread_of(cell, HEADLINE)) is not None]
    if len(found) < 2 or any(compared_figure(cell.cell.trial.load) != HEADLINE for cell, _ in found):
        return Lines("", ())
    found.sort(key=lambda one: one[1].median)
    least, most = (
        (cell.label, _in_line(figure_cell(HEADLINE, f, cell))) for cell, f in (found[0], found[-1])
    )
    said = f"{most[0]} has the most requests/s, {most[1]}; {least[0]} the fewest, {least[1]}"
    return Lines("", (f"Of {len(found)} cells {said}.",), note=brackets(spread for _, spread in found))


def _in_line(cell: TableCell) -> str:
    return f"{cell.text} {cell.beside}".rstrip()


def _clear_first(pairs: Sequence[PairView]) -> tuple[PairView, ...]:
    """Those that are shown to differ, those shown not to, and the rest; each in the order that they had."""
    places = {"faster": 0, "slower": 0, "equivalent": 1}
    return tuple(sorted(pairs, key=lambda pair: places.get(pair.verdict, len(places))))


def _marked(part: PartView) -> Lines:
    """Its first block that is marked: what it comes to; an empty one where there is none."""
    return next((b for b in blocks(part) if isinstance(b, Lines) and b.marked), Lines("", ()))
