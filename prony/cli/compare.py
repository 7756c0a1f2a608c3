"""`prony compare`: servers against each other, from fresh processes, with intervals on the ratios.

Must not measure by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from prony.plan.spec import ExperimentPlan
    from prony.store import Store


def command(
    servers: list[str] = typer.Argument(
        ..., help="Two or more servers (prony servers lists them), NAME or NAME:VARIANT."
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
    until_clear: bool = typer.Option(
        False,
        "--until-clear",
        help="After these trials add more until every pair is clear; intervals hold at every look.",
    ),
    two_pass: bool = typer.Option(
        False,
        "--two-pass",
        help="Then latency in an open loop: at 70 % of each server's capacity, and at one rate for all "
        "(takes three times as long).",
    ),
    max_trials: int | None = typer.Option(
        None, "--max-trials", help="With --until-clear: at most so many per server [default: 20]."
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
    seed: int | None = typer.Option(
        None, "--seed", help="Order of trials and all draws [default: drawn, and recorded]."
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
    driver: str = typer.Option("auto", "--driver", help="auto, io_uring or epoll."),
    server_cpus: str | None = typer.Option(
        None, "--server-cpus", help="CPUs for the server, such as 0-3 [default: chosen]."
    ),
    client_cpus: str | None = typer.Option(
        None, "--client-cpus", help="CPUs for the engine and the sampler [default: chosen]."
    ),
    jdk: str | None = typer.Option(
        None, "--jdk", help="JDK to use, a major version or a folder [default: what each server prefers]."
    ),
    db: str | None = typer.Option(None, "--db", help="Where results are kept, a file or an SQLAlchemy URL."),
    json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
    report: Path | None = typer.Option(
        None, "--report", help="Write a self-contained HTML report to this file."
    ),
) -> int:
    """Compare servers: how much can each carry? Fresh processes, detected steady state, intervals on
    ratios, proof of the bound.
    """
    from prony.cli.bench import prepare
    from prony.cli.showing import progress_for, show
    from prony.experiment.run import Experiment, check_workload
    from prony.plan import workload as workloads
    from prony.plan.spec import ExperimentPlan
    from prony.plan.trial import capped, full_trial, pinned, quick_trial
    from prony.server.catalogue import Catalogue
    from prony.store import Store

    catalogue = Catalogue.load()
    specs = {spec.name: spec for spec in map(catalogue.resolve, servers)}
    _check_servers(servers, list(specs))
    chosen = workloads.load(workload or _common_workload({n: list(s.workloads) for n, s in specs.items()}))
    chosen = chosen.with_settings(options.settings(setting))
    check_workload(specs, chosen.name)
    number = options.users(users if users is not None else chosen.users)
    window_s = None if window is None else options.seconds(window, "--window", at_least_s=1.0)
    trial = (quick_trial if quick else full_trial)(chosen, number, window_s)
    trial = trial.model_copy(
        update={"driver": options.one_of(driver, "--driver", ("auto", "io_uring", "epoll"))}
    )
    if options.one_of(warm_up, "--warm-up", ("all-cpus", "pinned")) == "pinned":
        trial = trial.model_copy(update={"warm_up": pinned(trial.warm_up)})
    if warm_up_cap is not None:
        cap_s = options.seconds(warm_up_cap, "--warm-up-cap", at_least_s=1.0)
        trial = trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})
    first = options.trials(trials if trials is not None else (3 if quick else 5))
    plan = ExperimentPlan(
        title=f"{' vs '.join(specs)}: {chosen.title or chosen.name}",
        servers=tuple(specs),
        trial=trial,
        trials=first,
        until_clear=_last_look(until_clear, max_trials, first),
        controls=0 if quick or trial.warm_up.method == "pinned" else 1,
        band=options.share(band, "--band"),
        quick=quick,
        seed=options.seed(seed),
    )
    if report is not None:
        options.writable(report)
    store = Store.open(db)
    bench = prepare(server_cpus, client_cpus, specs.values())
    passes: list[str] = []
    with progress_for(json) as progress:
        identifier = Experiment(plan, specs, store, bench, progress, jdk=jdk).run()
        if two_pass:

            def run(second: ExperimentPlan) -> str:
                return Experiment(second, specs, store, bench, progress, jdk=jdk).run()

            try:
                passes = _latency_passes(store, identifier, plan, run)
            except EnvironmentFault as fault:
                progress.note(str(fault))
    code = show(store, identifier, as_json=json, report=report)
    for second in () if json else passes:
        show(store, second, as_json=False)
    return code


def _latency_passes(
    store: Store, first: str, plan: ExperimentPlan, run: Callable[[ExperimentPlan], str]
) -> list[str]:
    """The second pass: at 70 % of each server's own capacity, and at one rate that all can carry.

    Raises EnvironmentFault when a server has no capacity to take a share of.
    """
    from prony.experiment.passes import rates, second_pass
    from prony.report.reading import load_result

    cells = {cell.cell.server: cell for cell in load_result(store, first).cells}
    capacities = {
        server: [
            t.figures["requests_per_s"]
            for t in cells[server].counting
            if t.figures.get("requests_per_s", 0) > 0
        ]
        for server in plan.servers
    }
    found = rates(capacities, plan.servers)
    own, common = second_pass(plan, found)
    return [run(own), run(common)]


MOST_LOOKS = 100
"""Planning the looks takes seconds from here on, and so many trials take days."""


def _last_look(until_clear: bool, max_trials: int | None, first: int) -> int | None:
    """After how many trials to stop adding. Raises UsageError for what makes no plan."""
    if not until_clear:
        if max_trials is not None:
            raise UsageError("--max-trials goes with --until-clear; otherwise --trials says how many")
        return None
    most = 20 if max_trials is None else max_trials
    if not 3 <= first <= most <= MOST_LOOKS:
        raise UsageError(
            f"the first look is after {first} trials (--trials) and the last after {most} (--max-trials); "
            f"expected at least 3, and the last look at or after the first and at most {MOST_LOOKS}"
        )
    return most


def _check_servers(named: list[str], resolved: list[str]) -> None:
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
