"""A result as it is printed in a text about it. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from prony.errors import UsageError
from prony.judge.finding import Kind
from prony.report import comparison
from prony.report.answer import Answer, answer, quick_words
from prony.report.blocks import KIND_WORDS, Block, Column, Lines, Row, Section, Table, TableCell
from prony.report.cell_view import HEADLINE, CellView
from prony.report.comparison import closing_rows, figure_row
from prony.report.history import printed, published_figures
from prony.report.intervals import heading as brackets
from prony.report.labels import named
from prony.report.result import PartView, ResultView
from prony.report.shape import left_out, shared_blocks
from prony.report.shapes import FindingGroup, finding_groups, shape_of
from prony.report.shapes import blocks as all_blocks
from prony.report.wording import bytes_in_words, counted, escaped, good_to, within

WIDTH = 100
_MARKER = re.compile(r"^(\s*)([-+*#>]|\d+[.)])(?=\s)")
"""What would begin a list, a heading or a quotation at the beginning of a line."""


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


BEGIN, END = "<!-- figures: written by prony results publish -->", "<!-- end of the figures -->"
MOST_COLUMNS = 5
"""Measured figures of a table of cells; the others are in the page and in the export."""
SERVERS_AS_COLUMNS = (HEADLINE, "mean_ms", "p50_ms", "p99_ms", "server_cpu_us_per_request", "time_to_ready_s")
"""The measured figures of a comparison, besides those that others published."""
MOST_SERVERS = 4
"""That stand beside each other as columns."""
GOOD_TO = "good to"
"""The row or column beside a figure that says how far it may be off."""

Shown = TypeVar("Shown")


def text(view: ResultView) -> str:
    """The whole as Markdown, without a title: it is a part of a page."""
    found = answer(view)
    claims = _claims(found)
    lines = [f"{title}: {claim}" if len(view.parts) > 1 else claim for title, claim in claims]
    said = ["\n".join(paragraph(f"{line}.", "- ") for line in lines)] if lines else []
    said += [paragraph(f"{_conditions(found)}."), paragraph(_origin(view))]
    if view.quick:
        said.append(paragraph(f"Quick: {quick_words(view)}."))
    for part in view.parts:
        if len(view.parts) > 1:
            said.append(heading(f"{part.part.title} ({part.part.name})"))
        said.append(drawn(_blocks(part, [claim for _, claim in claims])))
    return "\n\n".join(said) + "\n"


def _claims(found: Answer) -> list[tuple[str, str]]:
    """Each with the title of its part: everything of one part, of several the first of each."""
    most = 1 if len(found.parts) > 1 else None
    return [
        (part.title, text) for part in found.parts for text in (*part.sentences[:most], part.failure) if text
    ]


def _conditions(found: Answer) -> str:
    rest = f". Provided that {'; '.join(one.text for one in found.provided)}" if found.provided else ""
    return f"{found.conforming[:1].upper()}{found.conforming[1:]}{rest}"


def placed(page: str, figures: str) -> str:
    """The page with these figures between its marks, or at its end. Raises UsageError for one mark only."""
    block = f"{BEGIN}\n{figures.rstrip()}\n{END}\n"
    found = re.search(rf"{re.escape(BEGIN)}.*?{re.escape(END)}\n?", page, re.DOTALL)
    if found is not None:
        return page[: found.start()] + block + page[found.end() :]
    if BEGIN in page or END in page:
        raise UsageError(f"the page has only one of the marks '{BEGIN}' and '{END}'; write both, or neither")
    return f"{page.rstrip()}\n\n{block}" if page.strip() else block


def _origin(view: ResultView) -> str:
    servers = "; ".join(
        f"{one.title or one.address} ({', '.join(f'{k} {v}' for k, v in one.versions.items())})"
        if one.versions
        else one.title or one.address
        for one in view.servers
    )
    host = view.fingerprint
    where = (
        "an unknown host"
        if host is None
        else f"{counted(host.cpus, 'CPU')} ({host.cpu_model}), {bytes_in_words(host.memory_bytes)}, "
        f"Linux {host.kernel}, fingerprint {host.key}"
    )
    return f"Measured {view.created:%Y-%m-%d} as {view.id} on {where}. {servers}."


def _blocks(part: PartView, claims: Iterable[str]) -> Iterator[Block]:
    if part.failure:
        yield Lines("", (f"Not run: {part.failure}",))
        return
    if part.cells:
        one_each = len(part.cells) == len(part.servers) <= MOST_SERVERS
        yield _of_servers(part) if one_each else _of_cells(part)
    short = {within(p.where, p.sentence): within(p.where, p.window_sentence) for p in part.pairs}
    told = {short.get(claim, claim) for claim in claims}
    said = [block for block in all_blocks(part) if isinstance(block, Lines) and block.marked]
    for block in said if shape_of(part).answers_by_server else said[:1]:
        left = tuple(line for line in block.lines if short.get(line, line) not in told)
        if left:
            yield replace(block, lines=left)
    yield from shared_blocks(part)
    groups = [group for group in finding_groups(part) if group.kind is not Kind.PROVIDED]
    why = (*_failures(part), *map(_reason, groups))
    if why:
        yield Lines("What does not conform, and what may bend a figure", why)
    yield from left_out(part)


def _theirs(cells: Sequence[CellView]) -> dict[str, tuple[str, Mapping[str, float]]]:
    """By figure: how its row or column is called, and values by cell id."""
    return {
        figure: (f"{_name(figure)}, published{f' ({source})' if source else ''}", values)
        for figure, (source, values) in published_figures(cells).items()
    }


def _name(figure: str) -> str:
    """As a row or a column is called; what the published protocol, run again, would print has its own."""
    own = named(figure)
    return f"{own}, published protocol" if figure.startswith("published_") else own


def _printed(figure: str, value: float | None) -> TableCell:
    return TableCell("–" if value is None else printed(figure, value))


def _of_servers(part: PartView) -> Table:
    cells = part.cells
    theirs = _theirs(cells)
    rows = []
    for figure in dict.fromkeys((*SERVERS_AS_COLUMNS, *theirs)):
        if any(cell.figure(figure) for cell in cells):
            rows.append(figure_row(part, figure, _name(figure)))
        if figure == part.asked_figure:
            rows.append(Row(GOOD_TO, tuple(_good_to(cell, figure) for cell in cells)))
        if figure in theirs:
            name, values = theirs[figure]
            rows.append(Row(name, tuple(_printed(figure, values.get(cell.cell.id)) for cell in cells)))
    columns = tuple(Column(server.address) for server in part.servers)
    head = brackets(cell.figure(HEADLINE) for cell in cells)
    return Table(columns, (Section((*rows, *closing_rows(cells))),), heading=head)


def _good_to(cell: CellView, figure: str) -> TableCell:
    found = cell.uncertainty(figure)
    return TableCell("–" if found is None else good_to(*found.worst))


def _of_cells(part: PartView) -> Table:
    """A row per cell with the most telling columns, and what others published beside them."""
    whole = comparison.cells_table(part)
    figures = comparison.columns(part)
    theirs = _theirs(part.cells)
    words = len(whole.columns) - 1 - len(figures)
    shown = [
        (at, figure)
        for at, figure in enumerate(figures, words)
        if whole.columns[at].rank <= MOST_COLUMNS or figure in theirs
    ]

    def beside(own: Sequence[Shown], good: Shown, published: Callable[[str], Shown]) -> Iterator[Shown]:
        yield from own[:words]
        for at, figure in shown:
            yield own[at]
            if figure == part.asked_figure:
                yield good
            if figure in theirs:
                yield published(figure)
        yield own[-1]

    def of(cell: CellView) -> Callable[[str], TableCell]:
        return lambda figure: _printed(figure, theirs[figure][1].get(cell.cell.id))

    rows = tuple(
        Row(row.label, tuple(beside(row.cells, _good_to(cell, part.asked_figure), of(cell))))
        for row, cell in zip(whole.sections[0].rows, part.cells, strict=True)
    )
    columns = beside(whole.columns, Column(GOOD_TO), lambda figure: Column(theirs[figure][0]))
    return Table(tuple(columns), (Section(rows),), heading=whole.heading)


def _failures(part: PartView) -> tuple[str, ...]:
    failed = (
        f"{KIND_WORDS[Kind.NOT_CONFORMING]}, {cell.label}: {trial.record.failure}"
        for cell in part.cells
        for trial in cell.trials
        if trial.record.failure is not None and not trial.judgement.not_conforming
    )
    return tuple(dict.fromkeys(failed))


def _reason(group: FindingGroup) -> str:
    """With one of its reasons."""
    where = f" ({group.where})" if group.where else ""
    more = f"; {group.more + len(group.reasons) - 1} more like it" if len(group.reasons) > 1 else ""
    advice = f" → {group.advice[0]}" if group.advice else ""
    return f"{KIND_WORDS[group.kind]}, {group.check}{where}: {group.reasons[0]}{more}{advice}"
