"""Output of a measured result, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from prony.cli.common import Common
    from prony.experiment.testbed import Targets, Testbed
    from prony.plan.plan import Plan, ScheduledTrial, Skipped
    from prony.report.progress_state import SilentProgress
    from prony.report.result import ResultView
    from prony.report.schema import ResultOut
    from prony.store import Store


def progress_for(as_json: bool) -> SilentProgress:
    """Live progress on standard error; standard output is for results."""
    from prony.report.console import Console
    from prony.report.progress import choose_progress

    return choose_progress(Console(stderr=True), silent=as_json and not sys.stderr.isatty())


def show(
    store: Store,
    which: str,
    common: Common,
    also: Callable[[ResultView], None] | None = None,
    against: ResultView | None = None,
    typed: Sequence[str] = (),
) -> int:
    """Print a stored experiment, compared with `against`, write page and `also`; the exit code. `typed`:
    the command line that measured it.
    """
    from prony.cli.next_step import next_step
    from prony.report.answer import label_lines
    from prony.report.delivery import deliver
    from prony.report.reading import load_result, remember_answer
    from prony.report.terminal import render

    view = load_result(store, which)
    remember_answer(store, view)
    if also is not None:
        also(view)

    def table(console: Console) -> None:
        render(view, console, details=common.details)
        for line in label_lines(view):
            console.print(line, markup=False, highlight=False)
        if further := next_step(view, typed):
            console.print(f"Next: {further}", markup=False, highlight=False, soft_wrap=True)
        for part in () if further or common.details else view.parts:
            for advice in () if part.gate is None else part.gate.advice:
                console.print(advice, markup=False, highlight=False)
        if against is not None:
            from prony.report.terminal import render_two
            from prony.report.two_results import compared

            render_two(compared(view, against), console)

    def as_object() -> ResultOut:
        from prony.report.export import to_json

        return to_json(view)

    def page() -> str:
        from prony.report.html import render_html

        return render_html(view)

    deliver(as_json=common.json, as_object=as_object, table=table, page=page, report=common.report)
    return exit_code(view, common.strict_share)


def so_far(store: Store, which: str) -> str:
    """The first sentence of an experiment, by the trials that have ended."""
    from prony.report.answer import answer
    from prony.report.reading import load_result

    return answer(load_result(store, which)).sentence


def exit_code(view: ResultView, strict: float | None = None) -> ExitCode:
    """NO_FIGURE if a requested figure is missing or not known to ± `strict`; else the gate's code."""
    from prony.compare.noninferiority import Change

    if not view.usable or (strict is not None and not _known_to(view, strict)):
        return ExitCode.NO_FIGURE
    codes = {Change.WORSE: ExitCode.WORSE, Change.CANNOT_TELL: ExitCode.UNDECIDED}
    changes = {part.gate.change for part in view.parts if part.gate is not None}
    return next((code for change, code in codes.items() if change in changes), ExitCode.OK)


def _known_to(view: ResultView, share: float) -> bool:
    """Whether each cell's figure is good to ± share at its worst; False without an interval."""
    for cell in view.cells:
        if not cell.counting:
            continue
        uncertainty = cell.uncertainty(cell.headline_figure)
        if uncertainty is None or uncertainty.low is None or uncertainty.high is None:
            return False
        if any(end is None or abs(end) > share for end in uncertainty.worst):
            return False
    return True


def exported(file: Path, plan: Plan, *, as_json: bool) -> ResultView:
    """The result in a file. Raises UsageError unless it is an export with a cell of the plan."""
    from prony.report.reading import load_exported

    if as_json:
        raise UsageError(
            "--against prints tables; for JSON import the file (prony results import) and use "
            "prony compare-results ID ID --json"
        )
    result = load_exported(file)
    theirs = {cell.id for cell in result.plan.cells}
    if not theirs & {cell.id for cell in plan.cells}:
        raise UsageError(
            f"{file} has no cell of the plan '{plan.name}': it holds '{result.title}' with cells such as "
            f"{next(iter(sorted(theirs)))}; name an export of the same plan"
        )
    return result


def show_dry_run(
    plan: Plan,
    trials: Sequence[ScheduledTrial],
    lacking: Sequence[Skipped],
    warnings: Sequence[str],
    targets: Targets,
    testbed: Testbed,
    as_json: bool,
) -> int:
    """Print it; returns 0."""
    estimate_s = plan.remaining_s(trials)
    if as_json:
        from prony.report.delivery import print_model
        from prony.report.listings import DryRunOut, LeftOut, PlannedTrialOut

        json = DryRunOut(
            title=plan.title,
            quick=plan.quick,
            seed=plan.seed,
            estimate_s=round(estimate_s, 1),
            changes=list(plan.changes),
            warnings=list(warnings),
            trials=[
                PlannedTrialOut(
                    index=t.index,
                    block=t.block,
                    cell=t.cell,
                    process=t.process,
                    estimate_s=round(seconds, 1),
                )
                for t, seconds in zip(trials, plan.times_s(trials), strict=True)
            ],
            skipped=[LeftOut(cell=left_out.cell, why=left_out.why) for left_out in (*plan.skipped, *lacking)],
        )
        print_model(json)
        return 0
    from rich.table import Table
    from rich.text import Text

    from prony.experiment.requirements import servers_of
    from prony.report.console import Console
    from prony.report.wording import counted, duration, ranges

    out = Console()
    fresh = sum(not t.follows_in_process(last) for last, t in zip((None, *trials), trials, strict=False))
    shared = "" if fresh == len(trials) else f", in {counted(fresh, 'process', 'processes')}"
    out.print(Text(f"{plan.title}: {counted(len(trials), 'trial')} of {counted(len(plan.cells), 'cell')}"
                   f"{shared}, about {duration(estimate_s)}, builds apart", style="bold"))  # fmt: skip
    sides = {testbed.sides(server): server.name for server in servers_of(plan, targets)}
    facts = [
        f"CPUs{f' of {name}' if len(sides) > 1 else ''}: server {ranges(side.server)}, client "
        f"{ranges(side.client)}{' (shared: this host has too few)' if side.shared else ''}"
        for side, name in sides.items()
    ]
    out.print("; ".join((*facts, f"seed {plan.seed}")))
    for change in plan.changes:
        out.print(Text(change, style="yellow"))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("#", "block", "about"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("cell", overflow="fold")  # whole, as --only needs it
    for t, seconds in zip(trials, plan.times_s(trials), strict=True):
        table.add_row(str(t.index), str(t.block + 1), duration(seconds), Text(t.cell))
    if trials:
        out.print(table)
    else:
        out.print("No trial is left to run.")
    for left_out in (*plan.skipped, *lacking):
        out.print(Text(f"not run: {left_out.cell}: {left_out.why}", style="yellow"))
    if lacking:
        out.print(Text("The run needs --skip-unmeetable.", style="yellow"))
    for sentence in warnings:
        out.print(Text(f"Note: {sentence}", style="yellow"))
    return 0
