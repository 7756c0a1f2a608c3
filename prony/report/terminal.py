"""The result on a terminal: the answer, and on request part by part the tables, the sentences, the checks.

Everything goes through a rich console, which knows whether colour is wanted (NO_COLOR, a pipe) and how wide a
line may be.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

from prony.judge.finding import Kind
from prony.report.answer import Answer, answer, provided, quick_words
from prony.report.blocks import Block, Lines, Table
from prony.report.findings import FindingGroup, finding_groups
from prony.report.result import PartView, ResultView
from prony.report.shape import left_out
from prony.report.shapes import blocks, hosts, not_conforming
from prony.report.style import KIND_STYLE, KIND_WORDS
from prony.report.table import drawn
from prony.report.two_results import TwoResults
from prony.report.two_results import blocks as two_blocks

QUICK = "quick"
MOST_WIDTH = 160
"""Lines longer than this are hard to read on any screen."""


def render(view: ResultView, console: Console, *, details: bool = False) -> None:
    """Print the answer, and with `details` every table and check behind it."""
    out = _Printer(console, QUICK if view.quick else "")
    found = answer(view)
    several = len(found.parts) > 1
    out.line()
    for part in found.parts:
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
    for one in () if details else view.parts:
        for block in one.explanation.blocks if one.explanation is not None else ():
            out.block(block)
    for line in (*provided(found), *view.warnings):
        out.text(Text(line, style="dim"))
    out.text(Text(_foot(view, found, details), style="dim"))
    if details:
        if view.plan.note:
            out.text(Text(view.plan.note, style="dim"))
        for one in view.parts:
            _part(view, one, out)
    out.line()


def _foot(view: ResultView, found: Answer, details: bool) -> str:
    """How many trials conform, and where the rest is."""
    quick = f"quick: {quick_words(view)}" if view.quick else ""
    where = view.id if details else f"all of it: prony results show {view.id} --details"
    first = found.conforming[:1].upper() + found.conforming[1:]
    return " · ".join(filter(None, (first, quick, where)))


def render_two(found: TwoResults, console: Console) -> None:
    """Print two results beside each other."""
    out = _Printer(console, "")
    word = "CONFOUNDED" if found.confounded else "SAME FINGERPRINT"
    out.text(Text.assemble((word, "bold yellow"), "  ", found.words))
    for block in two_blocks(found):
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
