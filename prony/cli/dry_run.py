"""`prony run --dry-run`: what would run, in which order, how long it takes, and what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence

from prony.experiment.requirements import servers_of
from prony.experiment.targets import Targets
from prony.experiment.testbed import Testbed
from prony.plan.plan import Plan, ScheduledTrial, Skipped
from prony.report.delivery import print_model
from prony.report.listings import DryRunOut, LeftOut, PlannedTrialOut


def show_dry_run(
    plan: Plan,
    trials: Sequence[ScheduledTrial],
    lacking: Sequence[Skipped],
    warnings: Sequence[str],
    targets: Targets,
    testbed: Testbed,
    as_json: bool,
) -> int:
    """Print it; always 0, because a dry run measures nothing that could be invalid."""
    estimate_s = plan.remaining_s(trials)
    if as_json:
        print_model(_as_json(plan, trials, lacking, warnings, estimate_s))
        return 0
    from rich.table import Table
    from rich.text import Text

    from prony.report.console import Console
    from prony.report.wording import counted, duration, ranges

    out = Console()
    fresh = sum(not one.follows_in_process(last) for last, one in zip((None, *trials), trials, strict=False))
    shared = "" if fresh == len(trials) else f", in {counted(fresh, 'process', 'processes')}"
    out.print(Text(f"{plan.title}: {counted(len(trials), 'trial')} of {counted(len(plan.cells), 'cell')}"
                   f"{shared}, about {duration(estimate_s)}, builds apart", style="bold"))  # fmt: skip
    sides = {testbed.sides(one): one.name for one in servers_of(plan, targets)}
    said = [
        f"CPUs{f' of {name}' if len(sides) > 1 else ''}: server {ranges(side.server)}, client "
        f"{ranges(side.client)}{' (shared: this host has too few)' if side.shared else ''}"
        for side, name in sides.items()
    ]
    out.print("; ".join((*said, f"seed {plan.seed}")))
    for change in plan.changes:
        out.print(Text(change, style="yellow"))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("#", "block", "about"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("cell", overflow="fold")  # as --only takes it, and on one line of 80 characters
    for one, seconds in zip(trials, plan.times_s(trials), strict=True):
        table.add_row(str(one.index), str(one.block + 1), duration(seconds), Text(one.cell))
    if trials:
        out.print(table)
    else:
        out.print("Nothing is left to run.")
    for left_out in (*plan.skipped, *lacking):
        out.print(Text(f"not run: {left_out.cell}: {left_out.why}", style="yellow"))
    if lacking:
        out.print(Text("Without --skip-unmeetable this would be refused.", style="yellow"))
    for sentence in warnings:
        out.print(Text(f"Note: {sentence}", style="yellow"))
    return 0


def _as_json(
    plan: Plan,
    trials: Sequence[ScheduledTrial],
    lacking: Sequence[Skipped],
    warnings: Sequence[str],
    estimate_s: float,
) -> DryRunOut:
    return DryRunOut(
        title=plan.title,
        quick=plan.quick,
        seed=plan.seed,
        estimate_s=round(estimate_s, 1),
        changes=list(plan.changes),
        warnings=list(warnings),
        trials=[
            PlannedTrialOut(
                index=one.index,
                block=one.block,
                cell=one.cell,
                process=one.process,
                estimate_s=round(seconds, 1),
            )
            for one, seconds in zip(trials, plan.times_s(trials), strict=True)
        ],
        skipped=[LeftOut(cell=one.cell, why=one.why) for one in (*plan.skipped, *lacking)],
    )
