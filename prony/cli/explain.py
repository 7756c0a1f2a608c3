"""`prony explain`: where does a server's CPU time go? Must not measure by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.cli.launched import AskedTrial
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.plan import Plan

TRIALS, QUICK_TRIALS = 3, 1


@measures(without=("until_clear", "max_trials", "share_process", "budget", "hosts", "explain"))
def command(
    what: str | None = typer.Argument(
        None,
        metavar="SERVER|ID",
        help="A server that Prony starts (NAME or NAME:VARIANT), or a stored experiment (an id or 'latest').",
    ),
    trials: int | None = typer.Option(
        None, "--trials", help="Measured trials of a server beforehand [default: 3, quick: 1]."
    ),
    *,
    asked: AskedTrial,
    common: Common,
) -> int:
    """Explain a server: measured trials, then one with a profiler. Of a stored experiment each server is
    explained under the load of its trials.
    """
    from prony.cli import measure
    from prony.experiment.targets import Targets
    from prony.plan.target import named
    from prony.store import Store

    if what is None:
        raise UsageError("name a server (prony servers lists them), or an experiment (prony results)")
    if what == "latest" or Store.open(common.db).has(what):
        if trials is not None or asked != AskedTrial():
            raise UsageError(
                f"{what} is a stored experiment, whose load and trials are known: leave them out"
            )
        return measure.explain(what, common)
    target = Targets().at(named(what))
    offered = target.workloads
    if not asked.workload and not offered:
        raise UsageError(f"{target.name} does not say which workload it offers; name one with --workload")
    trial = asked.trial("" if asked.workload else offered[0])
    count = options.trials(trials if trials is not None else (QUICK_TRIALS if asked.quick else TRIALS))
    from prony.plan.cell import cell_of
    from prony.plan.plan import MAIN, one_part

    plan: Plan = one_part(
        "explain",
        f"{target.name}: {trial.workload.title or trial.workload.name}",
        [cell_of(MAIN, target.name, named(target.name), trial, count, explain=True)],
        seed=options.seed(common.seed),
        quick=asked.quick,
    )
    return measure.run(plan, common)
