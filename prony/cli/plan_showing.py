"""How the run of a plan is shown: table or JSON, HTML when asked for, and the exit code that follows.

Must not measure.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ExitCode

if TYPE_CHECKING:
    from prony.report.plan_view import PlanView
    from prony.store import Store


def show_plan(store: Store, which: str, *, as_json: bool, report: Path | None) -> int | None:
    """Print the run of a plan and return the exit code; None when it is an experiment of another kind.

    INVALID when a cell that was to be run has no figure that may be printed.
    """
    from rich.console import Console

    from prony.cli.plan_viewing import plan_view
    from prony.report.plan_json import plan_json
    from prony.report.plan_terminal import render_plan

    view = plan_view(store, store.experiment(which))
    if view is None:
        return None
    if as_json:
        json.dump(plan_json(view), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        render_plan(view, Console())
    if report is not None:
        _write(view, report)
        print(f"report: {report}", file=sys.stderr)
    return ExitCode.OK if all(cell.counting for cell in view.cells) else ExitCode.INVALID


def write_plan_page(store: Store, which: str, output: Path) -> bool:
    """Write the page of the run of a plan; False when it is an experiment of another kind."""
    from prony.cli.plan_viewing import plan_view

    view = plan_view(store, store.experiment(which))
    if view is not None:
        _write(view, output)
    return view is not None


def _write(view: PlanView, output: Path) -> None:
    from prony.report.html import write_text
    from prony.report.html.plan_page import render_plan_html

    write_text(render_plan_html(view), output)
