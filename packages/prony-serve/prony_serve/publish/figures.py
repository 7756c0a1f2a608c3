"""The main figures of a result as Markdown, for the README of a published folder. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from prony.errors import UsageError
from prony.judge.finding import Kind
from prony.report import matrix
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
"""Start of a line that Markdown reads as a list, a heading or a quotation."""


def heading(text: str, level: int = 3) -> str:
    return f"{'#' * level} {escaped(text)}"


def paragraph(text: str, begin: str = "") -> str:
    """The text wrapped at WIDTH characters; `begin` (`- `) starts the first line, blanks the others."""
    lines = textwrap.wrap(
        escaped(text), WIDTH - len(begin), break_long_words=False, break_on_hyphens=False
    ) or [""]
    safe = [lines[0] if begin else _unmarked(lines[0]), *map(_unmarked, lines[1:])]
    return "\n".join((" " * len(begin) if at else begin) + line for at, line in enumerate(safe))


def drawn(blocks: Iterable[Block]) -> str:
    return "\n\n".join(_table(block) if isinstance(block, Table) else _lines(block) for block in blocks)


def _unmarked(line: str) -> str:
    return _MARKER.sub(lambda marker: f"{marker[1]}{marker[2][:-1]}\\{marker[2][-1]}", line)


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
    rows = (row for section in table.sections for row in section.rows)
    body = (_line([escaped(row.named), *map(_cell, row.cells)]) for row in rows)
    lines = (_line(escaped(name) for name in head), "|".join(["", *ruler, ""]), *body)
    return "\n".join([*([paragraph(f"{table.title}:"), ""] if table.title else []), *lines])


def _cell(cell: TableCell) -> str:
    if cell.kind is not None:
        return escaped(f"{cell.text}, {cell.spread_text}" if cell.spread else cell.text)
    text = f"**{escaped(cell.text)}**" if cell.best else escaped(cell.text)
    return f"{text} {escaped(cell.spread_text)}" if cell.spread else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


BEGIN, END = "<!-- figures: written by prony results publish -->", "<!-- end of the figures -->"
MOST_COLUMNS = 5
"""Limit on the figures of a table of cells; page and export have all."""
SERVERS_AS_COLUMNS = (HEADLINE, "mean_ms", "p50_ms", "p99_ms", "server_cpu_us_per_request", "time_to_ready_s")
"""Measured figures of a table of servers, besides published ones."""
MOST_SERVERS = 4
"""Limit on servers as columns; more are rows."""
GOOD_TO = "good to"
"""Heading of a figure's uncertainty."""

Shown = TypeVar("Shown")


def text(view: ResultView) -> str:
    """The result as Markdown, without a title: a section of a page."""
    summary = answer(view)
    claims = _claims(summary)
    lines = [f"{title}: {claim}" if len(view.parts) > 1 else claim for title, claim in claims]
    said = ["\n".join(paragraph(f"{line}.", "- ") for line in lines)] if lines else []
    said += [paragraph(f"{_conditions(summary)}."), paragraph(_origin(view))]
    if view.quick:
        said.append(paragraph(f"Quick: {quick_words(view)}."))
    for part in view.parts:
        if len(view.parts) > 1:
            said.append(heading(f"{part.part.title} ({part.part.name})"))
        said.append(drawn(_blocks(part, [claim for _, claim in claims])))
    return "\n\n".join(said) + "\n"


def _claims(summary: Answer) -> list[tuple[str, str]]:
    """(title of the part, sentence): all sentences of a single part, else the first of each."""
    most = 1 if len(summary.parts) > 1 else None
    return [
        (part.title, text)
        for part in summary.parts
        for text in (*part.sentences[:most], part.failure)
        if text
    ]


def _conditions(summary: Answer) -> str:
    rest = f". Provided that {'; '.join(p.text for p in summary.provided)}" if summary.provided else ""
    return f"{summary.conforming[:1].upper()}{summary.conforming[1:]}{rest}"


def placed(page: str, figures: str) -> str:
    """The page with these figures between its marks, or at its end. Raises UsageError for a single mark."""
    block = f"{BEGIN}\n{figures.rstrip()}\n{END}\n"
    marked = re.search(rf"{re.escape(BEGIN)}.*?{re.escape(END)}\n?", page, re.DOTALL)
    if marked is not None:
        return page[: marked.start()] + block + page[marked.end() :]
    if BEGIN in page or END in page:
        raise UsageError(f"the page has only one of the marks '{BEGIN}' and '{END}'; write both, or neither")
    return f"{page.rstrip()}\n\n{block}" if page.strip() else block


def _origin(view: ResultView) -> str:
    servers = "; ".join(
        f"{server.title or server.address} ({', '.join(f'{k} {v}' for k, v in server.versions.items())})"
        if server.versions
        else server.title or server.address
        for server in view.servers
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
    printed_claims = {short.get(claim, claim) for claim in claims}
    said = [block for block in all_blocks(part) if isinstance(block, Lines) and block.marked]
    for block in said if shape_of(part).answers_by_server else said[:1]:
        left = tuple(line for line in block.lines if short.get(line, line) not in printed_claims)
        if left:
            yield replace(block, lines=left)
    yield from shared_blocks(part)
    groups = [group for group in finding_groups(part) if group.kind is not Kind.PROVIDED]
    why = (*_failures(part), *map(_reason, groups))
    if why:
        yield Lines("What does not conform, and what may bend a figure", why)
    yield from left_out(part)


def _theirs(cells: Sequence[CellView]) -> dict[str, tuple[str, Mapping[str, float]]]:
    """Published figure -> (heading, value by cell id)."""
    return {
        figure: (f"{_name(figure)}, published{f' ({source})' if source else ''}", values)
        for figure, (source, values) in published_figures(cells).items()
    }


def _name(figure: str) -> str:
    """A figure's heading; one of the published protocol, run again, says so."""
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
        if figure == part.headline_figure:
            rows.append(Row(GOOD_TO, tuple(_good_to(cell, figure) for cell in cells)))
        if figure in theirs:
            name, values = theirs[figure]
            rows.append(Row(name, tuple(_printed(figure, values.get(cell.cell.id)) for cell in cells)))
    columns = tuple(Column(server.address) for server in part.servers)
    head = brackets(cell.figure(HEADLINE) for cell in cells)
    return Table(columns, (Section((*rows, *closing_rows(cells))),), heading=head)


def _good_to(cell: CellView, figure: str) -> TableCell:
    uncertainty = cell.uncertainty(figure)
    return TableCell("–" if uncertainty is None else good_to(*uncertainty.worst))


def _of_cells(part: PartView) -> Table:
    """A row per cell with its main figures, each followed by its published value."""
    whole = matrix.cells_table(part)
    figures = matrix.columns(part)
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
            if figure == part.headline_figure:
                yield good
            if figure in theirs:
                yield published(figure)
        yield own[-1]

    def of(cell: CellView) -> Callable[[str], TableCell]:
        return lambda figure: _printed(figure, theirs[figure][1].get(cell.cell.id))

    rows = tuple(
        Row(row.label, tuple(beside(row.cells, _good_to(cell, part.headline_figure), of(cell))))
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
    """A group of findings with the first reason."""
    where = f" ({group.where})" if group.where else ""
    more = f"; {group.more + len(group.reasons) - 1} more like it" if len(group.reasons) > 1 else ""
    advice = f" → {group.advice[0]}" if group.advice else ""
    return f"{KIND_WORDS[group.kind]}, {group.check}{where}: {group.reasons[0]}{more}{advice}"
