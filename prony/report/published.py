"""A result as it is printed in a text: who ran what, part by part its main figures beside those that others
published, the pairs, and why what is not valid is not. Pure. Must not know where the text stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from prony.errors import UsageError
from prony.judge.finding import Status
from prony.report import cells_table, shared
from prony.report.blocks import Block, Column, Lines, Row, Section, Table, TableCell
from prony.report.comparison import (
    best,
    cells_by_server,
    figure_cell,
    published_figures,
    spread_of,
    verdict_cell,
)
from prony.report.findings import FindingGroup, finding_groups
from prony.report.intervals import heading as brackets
from prony.report.labels import named
from prony.report.markdown import drawn, heading, paragraph
from prony.report.result import HEADLINE, CellView, PartView, ResultView
from prony.report.shapes import blocks as all_blocks
from prony.report.shapes import left_out
from prony.report.terminal import quick_words
from prony.report.wording import bytes_in_words, counted
from prony.report.words import verdict_words

BEGIN, END = "<!-- figures: written by prony results publish -->", "<!-- end of the figures -->"
MOST_COLUMNS = 5
"""Measured figures of a table of cells; the others are in the page and in the export."""
SERVERS_AS_COLUMNS = (HEADLINE, "mean_ms", "p50_ms", "p99_ms", "server_cpu_us_per_request", "time_to_ready_s")
"""The measured figures of a comparison, besides those that others published."""
MOST_SERVERS = 4
"""That stand beside each other as columns."""
MOST_CHARACTERS = 240
"""Of a reason; the page has all of it."""


def text(view: ResultView) -> str:
    """The whole as Markdown, without a title: it is a part of a page."""
    said = [paragraph(f"{view.status.value}: {verdict_words(view)}"), paragraph(_origin(view))]
    if view.quick:
        said.append(paragraph(quick_words(view)))
    for part in view.parts:
        if len(view.parts) > 1:
            said.append(heading(f"{part.part.title} ({part.part.name})"))
        said.append(drawn(_blocks(part)))
    return "\n\n".join(said) + "\n"


def placed(page: str, figures: str) -> str:
    """The page with these figures in the place that its marks name, or at its end where it has none. Raises
    UsageError for a page with one of the marks.
    """
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


def _blocks(part: PartView) -> Iterator[Block]:
    if part.failure:
        yield Lines("", (f"Not run: {part.failure}",))
        return
    if part.cells:
        one_each = len(part.cells) == len(part.servers) <= MOST_SERVERS
        yield _of_servers(part) if one_each else _of_cells(part)
    said = [block for block in all_blocks(part) if isinstance(block, Lines) and block.marked]
    yield from said if part.part.shape == "sweep" else said[:1]
    yield from shared.blocks(part)
    why = (*_failures(part), *(_reason(group) for group in finding_groups(part) if _matters(part, group)))
    if why:
        yield Lines("Not valid, and why", why)
    skipped = left_out(part)
    if skipped is not None:
        yield skipped


def _theirs(cells: Sequence[CellView]) -> dict[str, tuple[str, Mapping[str, float]]]:
    """Each figure that others published of these cells: how its row or column is called, and its values by
    the id of the cell.
    """
    return {
        figure: (f"{_name(figure)}, published{f' ({source})' if source else ''}", values)
        for figure, (source, values) in published_figures(cells).items()
    }


def _name(figure: str) -> str:
    """As a row or a column is called; what the published protocol, run again, would print has its own."""
    own = named(figure)
    return f"{own}, published protocol" if figure.startswith("published_") else own


def _printed(figure: str, value: float | None) -> TableCell:
    return TableCell("–" if value is None else cells_table.printed(figure, value))


def _of_servers(part: PartView) -> Table:
    """Servers as columns, what others published below what was measured."""
    cells = cells_by_server(part)
    theirs = _theirs(cells)
    rows = []
    for figure in dict.fromkeys((*SERVERS_AS_COLUMNS, *theirs)):
        found = [spread_of(cell, figure) for cell in cells]
        if any(found):
            winner = best(part, figure)
            measured = zip(cells, found, strict=True)
            rows.append(
                Row(
                    _name(figure),
                    tuple(figure_cell(figure, f, c, best=c.cell.server == winner) for c, f in measured),
                )
            )
        if figure in theirs:
            name, values = theirs[figure]
            rows.append(Row(name, tuple(_printed(figure, values.get(cell.cell.id)) for cell in cells)))
    rows.append(Row("bound by", tuple(TableCell(cell.bound_by or "no figure") for cell in cells)))
    rows.append(Row("verdict", tuple(verdict_cell(cell) for cell in cells)))
    columns = tuple(Column(server.address) for server in part.servers)
    return Table(columns, (Section(tuple(rows)),), heading=brackets(spread_of(c, HEADLINE) for c in cells))


def _of_cells(part: PartView) -> Table:
    """A row per cell: of the table that every output has the columns that tell most, and beside them what
    others published.
    """
    whole = cells_table.cells_table(part)
    figures = cells_table.columns(part)
    theirs = _theirs(part.cells)
    words = len(whole.columns) - 1 - len(figures)
    shown = [
        (at, figure)
        for at, figure in enumerate(figures, words)
        if whole.columns[at].rank <= MOST_COLUMNS or figure in theirs
    ]

    def beside(cells: Sequence[TableCell], id: str) -> Iterator[TableCell]:
        yield from cells[:words]
        for at, figure in shown:
            yield cells[at]
            if figure in theirs:
                yield _printed(figure, theirs[figure][1].get(id))
        yield cells[-1]

    columns = list(whole.columns[:words])
    for at, figure in shown:
        columns.append(whole.columns[at])
        if figure in theirs:
            columns.append(Column(theirs[figure][0]))
    rows = tuple(
        Row(row.label, tuple(beside(row.cells, cell.cell.id)))
        for row, cell in zip(whole.sections[0].rows, part.cells, strict=True)
    )
    return Table((*columns, whole.columns[-1]), (Section(rows),), heading=whole.heading)


def _failures(part: PartView) -> tuple[str, ...]:
    """Trials without evidence to judge, each cause once."""
    failed = (
        f"invalid, {cell.label}: {trial.record.failure}"
        for cell in part.cells
        for trial in cell.trials
        if trial.record.failure is not None
    )
    return tuple(dict.fromkeys(failed))


def _matters(part: PartView, group: FindingGroup) -> bool:
    """Whether a verdict rests on it: what is unknown counts where the check is essential and the cell is
    nothing worse.
    """
    if group.status is not Status.UNKNOWN:
        return True
    return any(
        finding.essential and finding.check == group.check and finding.status is Status.UNKNOWN
        for cell in part.cells
        if cell.status is Status.UNKNOWN
        for trial in cell.counting
        for finding in trial.judgement.findings
    )


def _reason(group: FindingGroup) -> str:
    """With one of its reasons; of a long one its first sentence, which says what decided."""
    reason = group.reasons[0]
    reason = reason if len(reason) <= MOST_CHARACTERS else reason.partition("; ")[0]
    where = f" ({group.where})" if group.where else ""
    more = f"; {group.more + len(group.reasons) - 1} more like it" if len(group.reasons) > 1 else ""
    advice = f" → {group.advice[0]}" if group.advice else ""
    return f"{group.status.value}, {group.check}{where}: {reason}{more}{advice}"
