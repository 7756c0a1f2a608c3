"""Blocks as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from prony.report.blocks import Block, Row, Table, TableCell

WIDTH = 100
_MARKER = re.compile(r"^(\s*)([-+*#>]|\d+[.)])(?=\s)")
"""What would begin a list, a heading or a quotation at the beginning of a line."""


def escaped(text: str, more: str = "") -> str:
    """On one line, without a meaning in Markdown or HTML. `more`: further characters to escape."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    marks = rf"[\\`*|{re.escape(more)}]|(?<!\w)_|_(?!\w)"  # within a word _ has no meaning
    return re.sub(marks, r"\\\g<0>", " ".join(plain.split())).replace("](", "]\\(")


def heading(text: str, level: int = 3) -> str:
    return f"{'#' * level} {escaped(text)}"


def paragraph(text: str, begin: str = "") -> str:
    """Lines of at most WIDTH characters; `begin` (`- `) stands before the first, blanks before the others."""
    lines = textwrap.wrap(
        escaped(text), WIDTH - len(begin), break_long_words=False, break_on_hyphens=False
    ) or [""]
    safe = [lines[0] if begin else _unmarked(lines[0]), *map(_unmarked, lines[1:])]
    return "\n".join((" " * len(begin) if at else begin) + line for at, line in enumerate(safe))


def drawn(blocks: Iterable[Block]) -> str:
    return "\n\n".join(_table(block) if isinstance(block, Table) else _lines(block) for block in blocks)


def _unmarked(line: str) -> str:
    return _MARKER.sub(lambda found: f"{found[1]}{found[2][:-1]}\\{found[2][-1]}", line)


def _lines(block: Block) -> str:
    assert not isinstance(block, Table)
    title = (
        [paragraph(f"{block.title}{f' ({block.note})' if block.note else ''}:"), ""] if block.title else []
    )
    begin = "- " if block.listed else ""
    return "\n".join([*title, *(paragraph(line, begin) for line in block.lines)])


def _table(table: Table) -> str:
    head = [table.heading, *(column.name for column in table.columns)]
    ruler = ["---", *("--:" if column.number else "---" for column in table.columns)]
    rows = [_row(row) for section in table.sections for row in section.rows]
    lines = (_line(escaped(name) for name in head), "|".join(["", *ruler, ""]), *rows)
    return "\n".join([*([paragraph(f"{table.title}:"), ""] if table.title else []), *lines])


def _row(row: Row) -> str:
    return _line([escaped(row.named), *map(_cell, row.cells)])


def _cell(cell: TableCell) -> str:
    if cell.kind is not None:
        return escaped(f"{cell.text}, {cell.beside}" if cell.spread else cell.text)
    text = f"**{escaped(cell.text)}**" if cell.best else escaped(cell.text)
    return f"{text} {escaped(cell.beside)}" if cell.spread else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
