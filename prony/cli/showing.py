"""How a command shows what it measured: table or JSON, HTML when asked for, and the exit code that follows.

Must not measure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ExitCode

if TYPE_CHECKING:
    from prony.report.latency_pass import LatencyPass
    from prony.report.progress import AnyProgress
    from prony.store import Store


def progress_for(as_json: bool) -> AnyProgress:
    """Live progress on standard error, so that standard output holds results alone."""
    from rich.console import Console

    from prony.report.progress import choose_progress

    return choose_progress(Console(stderr=True), silent=as_json and not sys.stderr.isatty())


def show_experiment(
    store: Store,
    which: str,
    *,
    as_json: bool,
    report: Path | None = None,
    passes: Sequence[LatencyPass] = (),
) -> int:
    """Print the experiment, write its report, and return the exit code: INVALID when no trial may be
    printed.
    """
    from prony.cli.plan_showing import show_plan
    from prony.cli.series_showing import show_series
    from prony.cli.viewing import experiment_view
    from prony.report.delivery import deliver
    from prony.report.export import to_json
    from prony.report.html import render_html
    from prony.report.terminal import render

    for special in (show_plan, show_series):
        code = special(store, which, as_json=as_json, report=report)
        if code is not None:
            return code
    shown = replace(experiment_view(store, which), passes=tuple(passes))
    deliver(
        as_json=as_json,
        as_object=lambda: to_json(shown),
        table=lambda console: render(shown, console),
        page=lambda: render_html(shown),
        report=report,
    )
    if any(trial.counts for server in shown.servers for trial in shown.of(server.address)):
        every = all(any(trial.counts for trial in shown.of(server.address)) for server in shown.servers)
        return ExitCode.OK if every else ExitCode.INVALID
    return ExitCode.INVALID


def show_load(store: Store, which: str, *, as_json: bool) -> int:
    """Print one `prony load` run; INVALID when its figure may not be printed."""
    from prony.cli.viewing import experiment_view
    from prony.report.delivery import deliver
    from prony.report.export import load_json
    from prony.report.terminal import render_load

    trial = experiment_view(store, which).trials[0]
    deliver(
        as_json=as_json,
        as_object=lambda: load_json(trial),
        table=lambda console: render_load(trial, console),
    )
    return ExitCode.OK if trial.counts else ExitCode.INVALID
