"""How a command shows what it measured: table or JSON, HTML when asked for, and the exit code that follows.

One way for every command and for `prony results show`. Must not measure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ExitCode

if TYPE_CHECKING:
    from prony.report.progress import AnyProgress
    from prony.store import Store


def progress_for(as_json: bool) -> AnyProgress:
    """Live progress on standard error, so that standard output holds results alone."""
    from rich.console import Console

    from prony.report.progress import choose_progress

    return choose_progress(Console(stderr=True), silent=as_json and not sys.stderr.isatty())


def show(store: Store, which: str, *, as_json: bool, report: Path | None = None) -> int:
    """Print a stored experiment, write its page, and return the exit code: INVALID when something that was
    asked has no figure that may be printed.
    """
    from prony.report.delivery import deliver
    from prony.report.export import to_json
    from prony.report.html import render_html
    from prony.report.reading import load_result
    from prony.report.terminal import render

    view = load_result(store, which)
    deliver(
        as_json=as_json,
        as_object=lambda: to_json(view),
        table=lambda console: render(view, console),
        page=lambda: render_html(view),
        report=report,
    )
    return ExitCode.OK if view.usable else ExitCode.INVALID
