"""`prony compare`: servers against each other, from fresh processes, with intervals on the ratios.

Must not measure by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.part import Part
    from prony.plan.plan import Plan
    from prony.plan.trial import TrialPlan
    from prony.plan.workload import Workload

SHARE = 0.7
"""Of the capacity: busy, and not yet a queue that grows with every accident."""


@measures()
def command(
    servers: list[str] = typer.Argument(
        None, help="Two or more servers (prony servers lists them), NAME or NAME:VARIANT."
    ),
    workload: str | None = typer.Option(
        None, "--workload", "-w", help="Which requests; by default the first that all servers offer."
    ),
    users: int | None = typer.Option(
        None, "--users", "-c", help="Users in a closed loop, each with a connection of its own."
    ),
    setting: list[str] = typer.Option(
        [], "--set", help="Change a setting of the workload, such as delay_ms=50 (again for more)."
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
    band: str = typer.Option(
        "2%", "--band", help="Servers that surely differ by less are called equivalent, such as 1% or 0.01."
    ),
    window: str | None = typer.Option(
        None, "--window", help="Measured part of a trial, such as 30s [default: 30s, quick: 10s]."
    ),
    quick: bool = typer.Option(
        False, "--quick", help="A first look: 3 trials, short windows; every figure is marked quick."
    ),
    warm_up: str = typer.Option(
        "all-cpus",
        "--warm-up",
        help="all-cpus: faster, same plateau; pinned: on the server's CPUs from the start.",
    ),
    warm_up_cap: str | None = typer.Option(
        None,
        "--warm-up-cap",
        help="Longest warm-up, such as 60s; a server that is not steady then is suspect.",
    ),
    *,
    common: Common,
) -> int:
    """Compare servers: how much can each carry? Fresh processes, detected steady state, intervals on ratios,
    proof of the bound.
    """
    from prony.cli import measure
    from prony.experiment.targets import Targets
    from prony.plan import workload as workloads
    from prony.plan.target import named

    servers = servers or []
    targets = Targets()
    claims = {one.name: list(one.workloads) for one in (targets.at(named(server)) for server in servers)}
    _check_servers(servers, list(claims))
    chosen = workloads.load(workload or _common_workload(claims)).with_settings(options.settings(setting))
    trial = trial_of(chosen, users, window, warm_up, warm_up_cap, quick=quick)
    first = options.trials(trials if trials is not None else (3 if quick else 5))
    plan = plan_of(
        list(claims),
        trial,
        trials=first,
        band=options.share(band, "--band"),
        quick=quick,
        seed=options.seed(common.seed),
        two_pass=two_pass,
    )
    return measure.run(plan, common)


def trial_of(
    workload: Workload,
    users: int | None,
    window: str | None,
    warm_up: str,
    warm_up_cap: str | None,
    *,
    quick: bool,
) -> TrialPlan:
    """The trial that these options describe. Raises UsageError for a value out of range."""
    from prony.plan.trial import capped, full_trial, pinned, quick_trial

    number = options.users(users if users is not None else workload.users)
    window_s = None if window is None else options.seconds(window, "--window", at_least_s=1.0)
    trial = (quick_trial if quick else full_trial)(workload, number, window_s)
    if options.one_of(warm_up, "--warm-up", ("all-cpus", "pinned")) == "pinned":
        trial = trial.model_copy(update={"warm_up": pinned(trial.warm_up)})
    if warm_up_cap is None:
        return trial
    cap_s = options.seconds(warm_up_cap, "--warm-up-cap", at_least_s=1.0)
    return trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})


def plan_of(
    servers: list[str], trial: TrialPlan, *, trials: int, band: float, quick: bool, seed: int, two_pass: bool
) -> Plan:
    """A comparison of these servers; with two passes latency at given rates follows the capacity."""
    from prony.experiment.stored import history_of
    from prony.plan.part import Part
    from prony.plan.plan import MAIN, Plan, cell_of
    from prony.plan.target import named

    title = f"{' vs '.join(servers)}: {trial.workload.title or trial.workload.name}"
    part = Part(name=MAIN, title=title, shape="comparison", band=band)
    controls = 0 if quick or trial.warm_up.method == "pinned" else 1
    return Plan(
        name="compare",
        command="compare",
        title=title,
        parts=(part, *(_latency_parts(part) if two_pass else ())),
        cells=tuple(
            cell_of(
                MAIN,
                server,
                named(server),
                trial,
                trials,
                controls=controls,
                published=history_of(trial.workload, server),
            )
            for server in servers
        ),
        quick=quick,
        seed=seed,
    )


def _latency_parts(capacity: Part) -> tuple[Part, Part]:
    from prony.plan.part import Follow

    own = capacity.model_copy(
        update={
            "name": "latency-own",
            "title": f"Latency at {SHARE:.0%} of each server's own capacity".replace("%", " %"),
            "follows": Follow(part=capacity.name, share=SHARE, rate="own"),
        }
    )
    common = capacity.model_copy(
        update={
            "name": "latency-common",
            "title": f"Latency at one rate for all, {SHARE:.0%} of the lowest capacity".replace("%", " %"),
            "follows": Follow(part=capacity.name, share=SHARE, rate="common"),
        }
    )
    return own, common


def _check_servers(named: list[str], resolved: list[str]) -> None:
    if not named:
        raise UsageError("name two or more servers, or --resume ID; prony servers lists them")
    if len(named) < 2:
        raise UsageError(
            f"one server was named ({named[0]}); compare needs at least two (prony servers lists them)"
        )
    if len(resolved) < len(named):
        raise UsageError(f"a server was named twice ({', '.join(named)}); name each server once")


def _common_workload(offered: dict[str, list[str]]) -> str:
    """The first workload of the first server that all offer (a server that claims none takes any)."""
    claims = {name: names for name, names in offered.items() if names}
    if not claims:
        raise UsageError("no server says which workload it offers; name one with --workload")
    first = next(iter(claims.values()))
    for name in first:
        if all(name in names for names in claims.values()):
            return name
    listed = "; ".join(f"{server}: {', '.join(names)}" for server, names in claims.items())
    raise UsageError(f"these servers share no workload ({listed}); compare servers that offer the same one")
