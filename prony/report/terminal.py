"""The result on a terminal: the answer, and with --details all tables, sentences and checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from prony.judge.finding import Kind
from prony.report.answer import Answer, answer, provided, quick_words
from prony.report.blocks import KIND_STYLE, KIND_WORDS, Block, Column, Lines, Row, Table, TableCell
from prony.report.result import PartView, ResultView
from prony.report.shape import left_out
from prony.report.shapes import FindingGroup, blocks, finding_groups, hosts, not_conforming

if TYPE_CHECKING:
    from prony.report.two_results import TwoResults

BEST = "bold underline"
GAP, INDENT = 2, 2
LEAST_COLUMN = 7
WORDS = (40, 26, 16)
"""Where words are wrapped, from the widest terminal to the narrowest."""
FITS = (
    (True, WORDS[0], WORDS[0]),
    (True, WORDS[0], 2 * LEAST_COLUMN),
    (True, WORDS[1], 2 * LEAST_COLUMN),
    (False, WORDS[1], 2 * LEAST_COLUMN),
    (False, WORDS[2], 2 * LEAST_COLUMN),
)
"""Whether ranges are inline; widths at which words and less informative headings wrap."""
LEAST_LABEL, MOST_LABEL, MOST_HEADING = 14, 23, 30
"""Longest label that does not wrap when ranges are below."""


@dataclass(frozen=True, slots=True)
class _Layout:
    label: int
    widths: tuple[int, ...]
    ranges: tuple[int, ...]
    """Width of each column's ranges, which aligns medians."""
    inline: bool
    mark: str

    def total(self, places: Sequence[int]) -> int:
        return self.label + sum(GAP + self.widths[p] for p in places) + (len(self.mark) + 1) * bool(self.mark)


def drawn(table: Table, width: int, mark: str = "") -> Iterator[RenderableType]:
    """Tables no wider than `width`; `mark` ends every row of measured figures."""
    every = list(range(len(table.columns)))
    for inline, words, heads in FITS:
        layout = _layout(table, mark, words, heads, inline=inline)
        if layout.total(every) <= width:
            yield from _lines(table, layout, every)
            return
    if table.ranked:
        yield from _lines(table, layout, _most_telling(table, layout, width))
        return
    for number, places in enumerate(_shares(layout, width)):
        if number:
            yield Text()
        yield from _lines(table, layout, places)


def _layout(table: Table, mark: str, words: int, heads: int, *, inline: bool) -> _Layout:
    rows = [row for section in table.sections for row in section.rows]
    indent = _indent(table, inline=inline)
    longest = max([cell_len(row.named) for row in rows], default=0) + indent
    if not inline:
        plain = max([cell_len(row.label) for row in rows], default=0) + indent
        longest = min(MOST_LABEL, plain)
    label = max(longest, min(cell_len(table.heading), MOST_HEADING if inline else LEAST_LABEL))
    widths = []
    for place, column in enumerate(table.columns):
        cells = [row.cells[place] for row in rows]
        widest = max([_width(cell, column, words, inline=inline) for cell in cells], default=0)
        name = cell_len(column.name)
        if not column.number:
            widths.append(max(widest, min(name, words)))
        elif inline:
            widths.append(max(widest, LEAST_COLUMN, min(name, heads) if column.rank else name))
        else:
            widths.append(max(widest, LEAST_COLUMN, min(max(map(cell_len, column.name.split())), 18)))
    ranges = tuple(
        max(
            [cell_len(row.cells[place].spread_text) for row in rows if row.cells[place].kind is None],
            default=0,
        )
        for place in range(len(table.columns))
    )
    return _Layout(label, tuple(widths), ranges, inline, mark)


def _indent(table: Table, *, inline: bool) -> int:
    titled = any(section.title for section in table.sections)
    return (INDENT if inline else 1) if titled else 0


def _width(cell: TableCell, column: Column, words: int, *, inline: bool) -> int:
    """What a cell needs; words may be wrapped at `words`, numbers not."""
    text, below = cell_len(cell.text), cell_len(cell.spread_text)
    if not column.number or cell.kind is not None or not cell.text[:1].isdigit():
        whole = text + (below + 2) * bool(below) if inline else max(text, below)
        longest = max(map(cell_len, (*cell.text.split(), "")))
        return max(longest, min(whole, words))
    return text + (below + 1) * bool(below) if inline else max(text, below)


def _most_telling(table: Table, layout: _Layout, width: int) -> list[int]:
    places = sorted(range(len(table.columns)), key=lambda place: table.columns[place].rank)
    while len(places) > 2 and layout.total(places) > width and table.columns[places[-1]].rank:
        places.pop()
    return sorted(places)


def _shares(layout: _Layout, width: int) -> Iterator[list[int]]:
    places: list[int] = []
    for place in range(len(layout.widths)):
        if places and layout.total([*places, place]) > width:
            yield places
            places = []
        places.append(place)
    if places:
        yield places


def _lines(table: Table, layout: _Layout, places: Sequence[int]) -> Iterator[RenderableType]:
    titled = any(section.title for section in table.sections)
    if table.heading or any(table.columns[place].name for place in places):
        yield from _head(table, layout, places, ruled=titled)
    for number, section in enumerate(table.sections):
        if section.title:
            if number:
                yield Text()
            note = f"  {section.note}" if section.note else ""
            yield Text.assemble((section.title, "bold"), (note, "dim"))
        body = _grid(table, layout, places)
        for row in section.rows:
            body.add_row(*_cells(row, layout, places, _indent(table, inline=layout.inline)))
        yield body


def _head(table: Table, layout: _Layout, places: Sequence[int], *, ruled: bool) -> Iterator[RenderableType]:
    head = _grid(table, layout, places)
    names = (Text(table.columns[place].name, style="bold") for place in places)
    head.add_row(Text(table.heading, style="dim"), *names, *([""] if layout.mark else []))
    yield head
    if ruled:
        yield Text("─" * (layout.total(places) - (len(layout.mark) + 1) * bool(layout.mark)), style="dim")


def _grid(table: Table, layout: _Layout, places: Sequence[int]) -> rich_table.Table:
    grid = rich_table.Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    grid.add_column(width=layout.label, vertical="top", overflow="fold")
    for place in places:
        number = table.columns[place].number
        grid.add_column(
            width=layout.widths[place], justify="right" if number else "left", overflow="fold", vertical="top"
        )
    if layout.mark:
        grid.add_column(width=len(layout.mark), vertical="top")
    return grid


def _cells(row: Row, layout: _Layout, places: Sequence[int], indent: int) -> Iterator[RenderableType]:
    split = bool(row.unit) and not layout.inline
    label = Text.assemble(row.label, "\n", (row.unit, "dim")) if split else Text(row.named)
    yield Padding(label, (0, 0, 0, indent))
    for place in places:
        yield _cell(row.cells[place], layout, layout.ranges[place])
    if layout.mark:
        yield Text(layout.mark if row.measured else "", style="dim yellow")


def _cell(cell: TableCell, layout: _Layout, widest_range: int) -> Text:
    style = KIND_STYLE[cell.kind] if cell.kind else BEST if cell.best else ""
    text = Text(cell.text, style=style)
    if not layout.inline:
        return Text.assemble(text, "\n", (cell.spread_text, "dim")) if cell.spread else text
    if cell.kind is not None:
        return Text.assemble(text, (f", {cell.spread}" if cell.spread else "", "dim"))
    if widest_range and (cell.spread or cell.text[:1].isdigit()):
        return Text.assemble(text, (f" {cell.spread_text.ljust(widest_range)}", "dim"))
    return text


QUICK = "quick"
MOST_WIDTH = 160
"""Lines longer than this are hard to read on any screen."""


def render(view: ResultView, console: Console, *, details: bool = False) -> None:
    """Print the answer, and with `details` every table and check behind it."""
    out = _Printer(console, QUICK if view.quick else "")
    answers = answer(view)
    several = len(answers.parts) > 1
    out.line()
    for part in answers.parts:
        if several:
            out.text(Text(part.title, style="bold dim"))
        for sentence in part.sentences:
            out.text(Text(sentence, style="bold"), 2 if several else 0)
        if part.failure:
            out.text(Text(part.failure, style=KIND_STYLE[Kind.NOT_CONFORMING]), 2 if several else 0)
        if part.rows is not None:
            out.block(part.rows)
        if part.largest:
            out.text(Text(part.largest, style="yellow"), 2 if several else 0)
    for view_part in () if details else view.parts:
        for block in view_part.explanation.blocks if view_part.explanation is not None else ():
            out.block(block)
    for line in (*provided(answers), *view.warnings):
        out.text(Text(line, style="dim"))
    out.text(Text(_foot(view, answers, details), style="yellow" if view.state == "interrupted" else "dim"))
    if details:
        if view.plan.note:
            out.text(Text(view.plan.note, style="dim"))
        for view_part in view.parts:
            _part(view, view_part, out)
    out.line()


def _foot(view: ResultView, answer: Answer, details: bool) -> str:
    quick = f"quick: {quick_words(view)}" if view.quick else ""
    where = view.id if details else f"all of it: prony results show {view.id} --details"
    first = answer.conforming[:1].upper() + answer.conforming[1:]
    return " · ".join(filter(None, (first, quick, where)))


def render_two(two: TwoResults, console: Console) -> None:
    from prony.report.two_results import blocks as two_blocks

    out = _Printer(console, "")
    word = "CONFOUNDED" if two.confounded else "SAME FINGERPRINT"
    out.text(Text.assemble((word, "bold yellow"), "  ", two.words))
    for block in two_blocks(two):
        out.block(block)


def _part(view: ResultView, part: PartView, out: _Printer) -> None:
    if len(view.parts) > 1:
        out.heading(part.part.title, part.part.name)
        if part.part.note:
            out.text(Text(part.part.note, style="dim"))
    if part.failure:
        out.line()
        out.text(Text(part.failure, style=KIND_STYLE[Kind.NOT_CONFORMING]), 2)
    for block in (
        *blocks(part),
        *(part.explanation.blocks if part.explanation is not None else ()),
        *hosts(part),
        *not_conforming(part),
        *left_out(part),
    ):
        out.block(block)
    _findings(finding_groups(part), out)


def _findings(groups: Iterable[FindingGroup], out: _Printer) -> None:
    shown = list(groups)
    if shown:
        out.heading("Checks", "what does not conform, what may bend a figure, and what cannot be known")
    for group in shown:
        place = f"  {group.where}" if group.where else ""
        kind = (KIND_WORDS[group.kind], KIND_STYLE[group.kind])
        out.text(Text.assemble((group.check, "bold"), "  ", kind, (place, "dim")), 2)
        for reason in group.reasons:
            out.text(Text(reason), 4)
        if group.more:
            out.text(Text(f"… and {group.more} more like it", style="dim"), 4)
        if group.limit and group.kind is not Kind.PROVIDED:
            out.text(Text(f"limit: {group.limit}", style="dim"), 4)
        for advice in group.advice:
            out.text(Text.assemble(("→ ", "bold"), advice), 4)


class _Printer:
    """Prints text that wraps with a hanging indent, and tables that fit; no line ends in spaces."""

    def __init__(self, console: Console, mark: str) -> None:
        self._console = console
        self._mark = mark
        self.width = min(console.width, MOST_WIDTH)

    def line(self) -> None:
        self._console.print()

    def text(self, text: Text, indent: int = 0) -> None:
        for line in text.wrap(self._console, max(20, self.width - indent)):
            self._print(Text(" " * indent).append_text(line))

    def heading(self, title: str, note: str = "") -> None:
        self.line()
        self.text(Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim")))

    def block(self, block: Block) -> None:
        if block.title:
            self.heading(block.title, block.note)
        else:
            self.line()
        if isinstance(block, Table):
            for drawing in drawn(block, self.width, self._mark):
                self._drawing(drawing)
        else:
            self._lines(block)

    def _lines(self, block: Lines) -> None:
        for line in block.lines:
            marked = block.marked and self._mark and self._mark not in line
            mark = (f" [{self._mark}]" if marked else "", "dim yellow")
            self.text(Text.assemble((line, block.style), mark), 2 if block.title else 0)

    def _drawing(self, drawing: RenderableType) -> None:
        options = self._console.options.update(width=self.width)
        for segments in self._console.render_lines(drawing, options, pad=False):
            self._print(Text.assemble(*((part.text, part.style or "") for part in segments)))

    def _print(self, line: Text) -> None:
        line.rstrip()
        self._console.print(line, highlight=False, no_wrap=True, overflow="ignore", crop=False)
