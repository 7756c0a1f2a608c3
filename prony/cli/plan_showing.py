"""How the run of a plan is shown: table or JSON, HTML when asked for, and the exit code that follows.

Must not measure.
"""

from __future__ import annotations

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
    from prony.cli.plan_viewing import plan_view
    from prony.report.delivery import deliver
    from prony.report.plan_json import plan_json
    from prony.report.plan_terminal import render_plan

    view = plan_view(store, store.experiment(which))
    if view is None:
        return None
    deliver(
        as_json=as_json,
        as_object=lambda: plan_json(view),
        table=lambda console: render_plan(view, console),
        page=lambda: _page(view),
        report=report,
    )
    return ExitCode.OK if all(cell.counting for cell in view.cells) else ExitCode.INVALID


def write_plan_page(store: Store, which: str, output: Path) -> bool:
    """Write the page of the run of a plan; False when it is an experiment of another kind."""
    from prony.cli.plan_viewing import plan_view
    from prony.report.html import write_text

    view = plan_view(store, store.experiment(which))
    if view is not None:
        write_text(_page(view), output)
    return view is not None


def _page(view: PlanView) -> str:
    from prony.report.html.plan_page import render_plan_html

    return render_plan_html(view)
