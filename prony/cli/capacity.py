"""`prony capacity`: the highest rate that still meets an objective. Must not measure by itself."""

from __future__ import annotations

import typer

from prony.cli import options
from prony.cli import target_options as t
from prony.errors import UsageError


def command(
    target: t.Target,
    slo: str = typer.Option(
        ..., "--slo", help="What must hold, such as 'p99<50ms' or 'p99<50ms,p99.9<1s' (quote it)."
    ),
    start: float | None = typer.Option(
        None, "--start", help="The first rate, requests/s [default: half of what a closed loop carries]."
    ),
    highest: float | None = typer.Option(None, "--highest", help="Do not try more than this, requests/s."),
    resolution: float = typer.Option(
        5.0, "--resolution", help="End when the bracket is so narrow, per cent."
    ),
    max_trials: int = typer.Option(24, "--max-trials", help="At most so many trials."),
    users: int = typer.Option(64, "--users", "-c", help="Of the closed loop that says where to begin."),
    arrivals: str = typer.Option("constant", "--arrivals", help="constant or poisson."),
    workload: t.Workload = None,
    window: t.Window = None,
    warmup: t.WarmUp = None,
    quick: t.Quick = False,
    seed: t.Seed = None,
    driver: t.Driver = "auto",
    server_cpus: t.ServerCpus = None,
    client_cpus: t.ClientCpus = None,
    jdk: t.Jdk = None,
    db: t.Db = None,
    json: t.Json = False,
    report: t.Report = None,
) -> int:
    """How much can it carry while the objective holds? Open-loop trials, each judged; never more than the
    load generator really offered.
    """
    from prony.cli.bench import prepare
    from prony.cli.showing import progress_for, show
    from prony.cli.targets import Chosen
    from prony.experiment.capacity import capacity
    from prony.experiment.points import recorded
    from prony.experiment.series import CapacitySpec
    from prony.plan.objective import objectives
    from prony.store import Store

    wanted = objectives(slo)
    for rate in (start, highest):
        if rate is not None:
            options.rate(rate)
    if start is not None and highest is not None and start > highest:
        raise UsageError(f"--start is {start:g} and --highest {highest:g}; expected the start below it")
    if not 0.1 <= resolution <= 100:
        raise UsageError(f"--resolution is {resolution:g}; expected 0.1 to 100 per cent")
    most = options.trials(max_trials)
    poisson = options.one_of(arrivals, "--arrivals", ("constant", "poisson")) == "poisson"
    chosen = Chosen(target, workload, window, warmup, quick, driver, jdk, options.seed(seed))
    if report is not None:
        options.writable(report)
    store = Store.open(db)
    bench = prepare(server_cpus, client_cpus)
    with progress_for(json) as progress:
        points = chosen.points(store, bench, progress)
        asked = CapacitySpec(
            target=points.name,
            objectives=slo,
            highest_per_s=options.MAX_RATE_PER_S if highest is None else highest,
            resolution=resolution / 100,
            most_trials=most,
            window_s=points.window_s,
            seed=chosen.seed,
        )
        title = f"capacity of {points.name} with {slo}"
        with recorded(points, title, asked.model_dump(mode="json"), most) as identifier:
            capacity(
                points,
                wanted,
                note=progress.note,
                arrivals_poisson=poisson,
                start_per_s=start,
                highest_per_s=asked.highest_per_s,
                users=options.users(users),
                resolution=asked.resolution,
                most_trials=most,
            )
    return show(store, identifier, as_json=json, report=report)
