"""How a command shows what it measured: table or JSON, HTML when asked for, and the exit code that follows.

One way for every command and for `prony results show`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from prony.report.progress_state import SilentProgress
    from prony.report.result import ResultView
    from prony.store import Store


def progress_for(as_json: bool) -> SilentProgress:
    """Live progress on standard error, so that standard output holds results alone."""
    from prony.report.console import Console
    from prony.report.progress import choose_progress

    return choose_progress(Console(stderr=True), silent=as_json and not sys.stderr.isatty())


def show(
    store: Store,
    which: str,
    *,
    as_json: bool,
    report: Path | None = None,
    details: bool = False,
    strict: float | None = None,
    also: Callable[[ResultView], None] | None = None,
    against: ResultView | None = None,
) -> int:
    """Print a stored experiment with its tags and notes, and beside another one (`against`); write its page
    and whatever else is wanted of it (`also`), and return the exit code.
    """
    from prony.report.answer import label_lines
    from prony.report.delivery import deliver
    from prony.report.export import to_json
    from prony.report.html import render_html
    from prony.report.reading import load_result
    from prony.report.terminal import render, render_two
    from prony.report.two_results import beside

    view = load_result(store, which)
    if also is not None:
        also(view)

    def table(console: Console) -> None:
        render(view, console, details=details)
        for line in label_lines(view):
            console.print(line, markup=False, highlight=False)
        if against is not None:
            render_two(beside(view, against), console)

    deliver(
        as_json=as_json,
        as_object=lambda: to_json(view),
        table=table,
        page=lambda: render_html(view),
        report=report,
    )
    return exit_code(view, strict)


def exit_code(view: ResultView, strict: float | None = None) -> ExitCode:
    """NO_FIGURE when something that was asked has no figure, or (`strict`, a share) one that is not known as
    well as that; of a gate what it came to.
    """
    from prony.compare.noninferiority import Change

    if not view.usable or (strict is not None and not _known_to(view, strict)):
        return ExitCode.NO_FIGURE
    codes = {Change.WORSE: ExitCode.WORSE, Change.CANNOT_TELL: ExitCode.UNDECIDED}
    found = {part.gate.change for part in view.parts if part.gate is not None}
    return next((code for change, code in codes.items() if change in found), ExitCode.OK)


def _known_to(view: ResultView, share: float) -> bool:
    """Whether the figure that each cell was asked for is good to ± share at its worst. What has no interval
    is not known.
    """
    for cell in view.cells:
        if not cell.counting:
            continue
        found = cell.uncertainty(cell.asked_figure)
        if found is None or found.low is None or found.high is None:
            return False
        if any(end is None or abs(end) > share for end in found.worst):
            return False
    return True
