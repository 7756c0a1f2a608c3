"""`prony run`: a plan, from its file to its report, or the rest of an interrupted run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.plan import Plan


@measures(beside_resume=("plan", "dry_run", "against"))
def command(
    plan: str | None = Argument(
        None, metavar="[PLAN|FILE]", help="A plan of the catalogue (crud, jaxrs …) or a plan file."
    ),
    quick: bool = Option(
        False, "--quick", help="Shorten to about five minutes; every figure is marked quick."
    ),
    dry_run: bool = Option(
        False,
        "--dry-run",
        help="Print the trials in order and the estimated duration, without running them.",
    ),
    skip_unmeetable: bool = Option(False, "--skip-unmeetable", help="Skip cells that this host cannot run."),
    only: str | None = Option(
        None, "--only", metavar="GLOB", help="Only this part, or cells whose id matches."
    ),
    soak: str | None = Option(None, "--duration", help="Duration of the plan's soak, such as 8h."),
    against: Path | None = Option(
        None,
        "--against",
        metavar="FILE",
        help="Compare with an exported result, such as those of docs/results.",
    ),
    small: bool = Option(False, "--miniature", hidden=True),
    *,
    common: Common,
) -> int:
    """Run a plan: every cell (server x workload x load), trials interleaved in a recorded order, each judged
    and stored when it ends.
    """
    from prony.cli import measure
    from prony.judge.limits import CheckLimits
    from prony.plan.planfile_read import find, known, place_of, read

    if plan is None:
        names = ", ".join(sorted(known())) or "none"
        raise UsageError(f"name a plan or a plan file, or --resume ID; known plans: {names}")
    seed = options.seed(common.seed)
    wanted = read(find(plan), limits=CheckLimits, seed=seed)
    if common.seed is not None:
        wanted = wanted.model_copy(update={"seed": seed})
    wanted = _cut(wanted, quick, small, only, soak)
    return measure.run(
        wanted,
        common,
        skip_unmeetable=skip_unmeetable,
        dry_run=dry_run,
        where=partial(place_of, find(plan)),
        against=against,
    )


def _cut(plan: Plan, quick: bool, small: bool, only: str | None, soak: str | None) -> Plan:
    from prony.plan.planfile_quick import miniature, quicken, with_soak

    plan = with_soak(plan, None if soak is None else options.seconds(soak, "--duration", at_least_s=1.0))
    if only is not None:
        chosen = plan.only(only)
        if chosen is None:
            parts = ", ".join(dict.fromkeys(cell.part for cell in plan.cells))
            raise UsageError(
                f"--only {only} matches no cell of '{plan.name}'; its parts: {parts}; a cell is "
                f"part/server/workload/load, such as {plan.cells[0].id}"
            )
        plan = chosen
    if small:
        return miniature(plan)
    return quicken(plan) if quick else plan
