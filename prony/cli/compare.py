"""`prony compare`: servers against each other, from fresh processes, with intervals on the ratios.

Must not measure by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.cli.launched import AskedTrial, common_workload
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.cell import Cell
    from prony.plan.part import Part
    from prony.plan.plan import Plan
    from prony.plan.trial import TrialPlan

SHARE = 0.7
"""Of the capacity: busy, and not yet a queue that grows with every accident."""


@measures(without=("share_process",))
def command(
    servers: list[str] = typer.Argument(
        None, help="Two or more servers (prony servers lists them), NAME or NAME:VARIANT."
    ),
    trials: int | None = typer.Option(
        None, "--trials", help="Fresh processes per server [default: 5, quick: 3]."
    ),
    two_pass: bool = typer.Option(
        False,
        "--two-pass",
        help="Then latency in an open loop: at 70 % of each server's capacity, and at one rate for all "
        "(takes three times as long).",
    ),
    *,
    asked: AskedTrial,
    common: Common,
) -> int:
    """Compare servers: how much can each carry? Fresh processes, detected steady state, intervals on ratios,
    proof of the bound.
    """
    from prony.cli import measure
    from prony.experiment.targets import Targets
    from prony.plan.target import named

    servers = servers or []
    targets = Targets()
    claims = {one.name: list(one.workloads) for one in (targets.at(named(server)) for server in servers)}
    _check_servers(servers, list(claims), machines=_machines(common))
    trial = asked.trial("" if asked.workload else common_workload(claims))
    first = options.trials(trials if trials is not None else (3 if asked.quick else 5))
    plan = _plan(list(claims), trial, first, asked, seed=options.seed(common.seed))
    if two_pass:
        plan = plan.model_copy(update={"parts": (*plan.parts, *_latency_parts(plan.parts[0]))})
    return measure.run(plan, common)


def _plan(servers: list[str], trial: TrialPlan, trials: int, asked: AskedTrial, *, seed: int) -> Plan:
    """A comparison of these servers."""
    from prony.experiment.stored import history_of
    from prony.plan.cell import cell_of
    from prony.plan.plan import MAIN, one_part
    from prony.plan.target import named

    controls = 0 if asked.quick or trial.warm_up.method == "pinned" else 1

    def cell(server: str) -> Cell:
        known = history_of(trial.workload, server)
        return cell_of(MAIN, server, named(server), trial, trials, controls=controls, published=known)

    return one_part(
        "compare",
        f"{' vs '.join(servers)}: {trial.workload.title or trial.workload.name}",
        [cell(server) for server in servers],
        seed=seed,
        quick=asked.quick,
        shape="comparison",
        band=options.share(asked.band, "--band"),
    )


def _latency_parts(capacity: Part) -> list[Part]:
    """Latency at given rates, which follow from the capacity."""
    from prony.plan.part import Follow

    share = f"{SHARE * 100:.0f} %"
    titles: dict[Literal["own", "common"], str] = {
        "own": f"Latency at {share} of each server's own capacity",
        "common": f"Latency at one rate for all, {share} of the lowest capacity",
    }
    return [
        capacity.model_copy(
            update={
                "name": f"latency-{rate}",
                "title": title,
                "follows": Follow(part=capacity.name, share=SHARE, rate=rate),
            }
        )
        for rate, title in titles.items()
    ]


def _machines(common: Common) -> int:
    """On how many machines each server is measured."""
    if common.hosts is None:
        return 1
    from prony.hosts.file import read

    return max(1, len(read(common.hosts).servers))


def _check_servers(named: list[str], resolved: list[str], *, machines: int) -> None:
    if not named:
        raise UsageError("name two or more servers, or --resume ID; prony servers lists them")
    if len(named) < 2 and machines < 2:
        raise UsageError(
            f"one server was named ({named[0]}); compare needs at least two (prony servers lists them)"
        )
    if len(resolved) < len(named):
        raise UsageError(f"a server was named twice ({', '.join(named)}); name each server once")
