"""The result on a terminal: verdict first, then part by part the tables, the sentences, the findings.

Must not know what a part's shape means, nor where the view came from. Everything goes through a rich console,
which knows whether colour is wanted (NO_COLOR, a pipe) and how wide a line may be.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

from prony.compare.noninferiority import Change
from prony.judge.finding import Status
from prony.report import explained
from prony.report.blocks import Block, Lines, Table
from prony.report.findings import FindingGroup, finding_groups
from prony.report.result import PartView, ResultView
from prony.report.shapes import blocks, hosts, left_out, rejected
from prony.report.style import STATUS_STYLE
from prony.report.table import drawn
from prony.report.two_results import TwoResults
from prony.report.two_results import blocks as two_blocks
from prony.report.wording import counted
from prony.report.words import verdict_words

CHANGE_STYLE = {
    Change.NO_WORSE: "green",
    Change.WORSE: "red",
    Change.CANNOT_TELL: "yellow",
    Change.NOT_MEASURABLE: "red",
}
QUICK = "quick"
MOST_WIDTH = 160
"""Lines longer than this are hard to read on any screen."""


def render(view: ResultView, console: Console) -> None:
    """Print the whole result."""
    out = _Printer(console, QUICK if view.quick else "")
    out.line()
    for gate in (part.gate for part in view.parts if part.gate is not None):
        word = (gate.change.value.upper(), f"bold {CHANGE_STYLE[gate.change]}")
        out.text(Text.assemble(word, "  ", (gate.sentence, "bold")))
    status = view.status
    head = (status.value.upper(), f"bold {STATUS_STYLE[status]}")
    out.text(Text.assemble(head, "  ", (verdict_words(view), "bold")))
    out.text(Text(f"{view.title} · {view.created:%Y-%m-%d %H:%M} · {view.id}", style="dim"))
    if view.plan.note:
        out.text(Text(view.plan.note, style="dim"))
    if view.quick:
        out.text(Text(quick_words(view), style="yellow"))
    for warning in view.warnings:
        out.text(Text(f"Note: {warning}", style="yellow"))
    for part in view.parts:
        _part(view, part, out)
    out.line()


def render_two(found: TwoResults, console: Console) -> None:
    """Print two results beside each other."""
    out = _Printer(console, "")
    verdict = "CONFOUNDED" if found.confounded else "SAME FINGERPRINT"
    out.text(Text.assemble((verdict, "bold yellow"), "  ", found.words))
    for block in two_blocks(found):
        out.block(block)


def quick_words(view: ResultView) -> str:
    """What a quick run is worth."""
    trials = max((len(cell.trials) for cell in view.cells), default=0)
    return f"Quick run: {counted(trials, 'trial')} each, a first look. Every line that rests on it is marked."


def _part(view: ResultView, part: PartView, out: _Printer) -> None:
    if len(view.parts) > 1:
        out.heading(part.part.title, part.part.name)
        if part.part.note:
            out.text(Text(part.part.note, style="dim"))
    if part.failure:
        out.line()
        out.text(Text.assemble(("invalid", STATUS_STYLE[Status.INVALID]), f"  {part.failure}"), 2)
    for block in (
        *blocks(part),
        *explained.blocks(part.explanation),
        *hosts(part),
        rejected(part),
        left_out(part),
    ):
        if block is not None:
            out.block(block)
    _findings(finding_groups(part), out)


def _findings(groups: Iterable[FindingGroup], out: _Printer) -> None:
    shown = list(groups)
    if shown:
        out.heading("Findings", "every check that is not valid, and what to do")
    for group in shown:
        place = f"  {group.where}" if group.where else ""
        status = (group.status.value, STATUS_STYLE[group.status])
        out.text(Text.assemble(status, (f" {group.check}", "bold"), (place, "dim")), 2)
        for reason in group.reasons:
            out.text(Text(reason), 4)
        if group.more:
            out.text(Text(f"… and {group.more} more like it", style="dim"), 4)
        if group.limit and group.status is not Status.UNKNOWN:
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
