"""The table of figures as lines of text that fit a width. Must not know what a figure means.

Wide enough: median and range side by side. Too narrow: the range below the median. Narrower yet: several
tables.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from prony.report.style import STATUS_STYLE
from prony.report.summary import Cell, Row, Section

BEST = "bold underline"
INDENT = 2
LEAST_COLUMN = 9
MOST_LABEL = 24
"""Widest label when ranges stand below: longer ones are wrapped."""


@dataclass(frozen=True, slots=True)
class Column:
    """One server: widths of the median and of the range beside it, and of all together."""

    name: str
    median: int
    spread: int
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How the table lies: `side_by_side` when the range stands beside the median."""

    label: int
    columns: tuple[Column, ...]
    side_by_side: bool
    gap: int
    mark: str


def table(
    sections: Sequence[Section], names: Sequence[str], width: int, *, mark: str, heading: str
) -> Iterator[Text]:
    """The lines of one or more tables no wider than `width`; `mark` ends every row of figures."""
    layout = _side_by_side(sections, names, mark)
    if _total(layout, len(names)) <= width:
        yield from _lines(sections, layout, range(len(names)), heading, width)
        return
    layout = _below(sections, names, mark)
    for number, places in enumerate(_shares(layout, width)):
        if number:
            yield Text()
        yield from _lines(sections, layout, places, heading, width)


def _side_by_side(sections: Sequence[Section], names: Sequence[str], mark: str) -> Layout:
    label = max([len(_label(row)) for s in sections for row in s.rows], default=0) + INDENT
    columns = []
    for place, name in enumerate(names):
        cells = [row.cells[place] for s in sections for row in s.rows if row.figure]
        median = max([len(c.text) for c in cells], default=0)
        spread = max([len(_range(c)) for c in cells], default=0)
        words = max(
            [len(_one_line(row.cells[place])) for s in sections for row in s.rows if not row.figure],
            default=0,
        )
        columns.append(Column(name, median, spread, max(median + 1 + spread, len(name), min(words, 26))))
    return Layout(label, tuple(columns), True, 3, mark)


def _below(sections: Sequence[Section], names: Sequence[str], mark: str) -> Layout:
    label = min(MOST_LABEL, max([len(row.label) for s in sections for row in s.rows], default=0) + 1)
    columns = []
    for place, name in enumerate(names):
        cells = [row.cells[place] for s in sections for row in s.rows if row.figure]
        widest = max([len(t) for c in cells for t in (c.text, _range(c))], default=0)
        columns.append(Column(name, widest, widest, max(LEAST_COLUMN, widest, min(len(name), 18))))
    return Layout(label, tuple(columns), False, 2, mark)


def _total(layout: Layout, columns: int) -> int:
    return layout.label + sum(layout.gap + c.width for c in layout.columns[:columns]) + _mark_width(layout)


def _mark_width(layout: Layout) -> int:
    return len(layout.mark) + 1 if layout.mark else 0


def _shares(layout: Layout, width: int) -> Iterator[list[int]]:
    """Places of the servers that share a table, as many as fit, in order."""
    room = width - layout.label - _mark_width(layout)
    places: list[int] = []
    used = 0
    for place, column in enumerate(layout.columns):
        need = layout.gap + column.width
        if places and used + need > room:
            yield places
            places, used = [], 0
        places.append(place)
        used += need
    if places:
        yield places


def _lines(
    sections: Sequence[Section], layout: Layout, places: Iterable[int], heading: str, width: int
) -> Iterator[Text]:
    chosen = list(places)
    yield from _header(layout, chosen, heading)
    yield Text("─" * (layout.label + sum(layout.gap + layout.columns[p].width for p in chosen)), style="dim")
    for number, section in enumerate(sections):
        if number:
            yield Text()
        if section.title:
            between = "\n  " if len(section.title) + len(section.note) + 2 > width else "  "
            note = f"{between}{section.note}" if section.note else ""
            yield Text.assemble((section.title, "bold"), (note, "dim"))
        for row in section.rows:
            yield from _row(row, layout, chosen)


def _header(layout: Layout, places: Sequence[int], heading: str) -> Iterator[Text]:
    words = textwrap.wrap(heading, max(8, layout.label - 1))
    names = [textwrap.wrap(layout.columns[p].name, layout.columns[p].width) for p in places]
    height = max([len(words), *(len(n) for n in names)])
    for line in range(height):
        text = Text(_at(words, line - height + len(words)).ljust(layout.label), style="dim")
        for place, name in zip(places, names, strict=True):
            part = _at(name, line - height + len(name))
            text.append(" " * layout.gap).append(
                part.rjust(layout.columns[place].width), style="bold not dim"
            )
        if text.plain.strip():
            yield text


def _row(row: Row, layout: Layout, places: Sequence[int]) -> Iterator[Text]:
    indent = INDENT if layout.side_by_side else 1
    if layout.side_by_side:
        labels = [_label(row)]
    else:
        labels = textwrap.wrap(row.label, layout.label - indent) + ([row.unit] if row.unit else [])
    cells = [_cell(row, row.cells[p], layout, layout.columns[p]) for p in places]
    for line in range(max([len(labels), *(len(c) for c in cells)])):
        is_unit = line > 0 and line == len(labels) - 1 and bool(row.unit) and not layout.side_by_side
        text = Text(" " * indent)
        text.append(_at(labels, line).ljust(layout.label - indent), style="dim" if is_unit else "")
        for place, cell in zip(places, cells, strict=True):
            part = cell[line] if line < len(cell) else Text()
            text.append(" " * (layout.gap + layout.columns[place].width - part.cell_len)).append_text(part)
        if layout.mark and line == 0 and row.measured:
            text.append(f" {layout.mark}", style="dim yellow")
        yield text


def _cell(row: Row, cell: Cell, layout: Layout, column: Column) -> list[Text]:
    style = STATUS_STYLE[cell.status] if cell.status else BEST if cell.best else ""
    if not row.figure:
        if layout.side_by_side:
            return [Text(line, style=style) for line in textwrap.wrap(_one_line(cell), column.width)]
        lines = [Text(line, style=style) for line in textwrap.wrap(cell.text, column.width)]
        return lines + [Text(line, style="dim") for line in textwrap.wrap(cell.spread, column.width)]
    median = Text(cell.text, style=style)
    if layout.side_by_side:
        beside = f" {_range(cell).ljust(column.spread)}"
        return [Text.assemble(median, (beside, "dim"))]
    return [median, Text(_range(cell), style="dim")] if cell.spread else [median]


def _range(cell: Cell) -> str:
    return f"({cell.spread})" if cell.spread else ""


def _one_line(cell: Cell) -> str:
    return f"{cell.text}, {cell.spread}" if cell.spread else cell.text


def _label(row: Row) -> str:
    return f"{row.label}, {row.unit}" if row.unit else row.label


def _at(lines: Sequence[str], index: int) -> str:
    return lines[index] if 0 <= index < len(lines) else ""
