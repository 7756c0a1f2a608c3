"""`prony sweep`: throughput and times over numbers of users. Must not measure by itself."""

from __future__ import annotations

import typer

from prony.cli import options
from prony.cli import target_options as t
from prony.errors import UsageError

USERS = "1,2,4,8,16,32,64,128,256"
MOST_POINTS = 100


def command(
    target: t.Target,
    users: str = typer.Option(USERS, "--users", "-c", help="Numbers of users; 16…2048 doubles between two."),
    repeats: int = typer.Option(1, "--repeats", help="Trials per number; 3 or more give better intervals."),
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
    """How does it scale? A judged trial for each number of users, the Universal Scalability Law, and where
    more users stop paying.
    """
    from prony.cli.bench import prepare
    from prony.cli.showing import progress_for, show
    from prony.cli.targets import Chosen
    from prony.experiment.points import recorded
    from prony.experiment.series import SweepSpec
    from prony.experiment.sweep import sweep
    from prony.plan.load import ClosedLoad
    from prony.store import Store

    numbers = user_list(users)
    times = options.trials(repeats)
    chosen = Chosen(target, workload, window, warmup, quick, driver, jdk, options.seed(seed))
    if report is not None:
        options.writable(report)
    store = Store.open(db)
    bench = prepare(server_cpus, client_cpus)
    with progress_for(json) as progress:
        points = chosen.points(store, bench, progress)
        for number in numbers:
            points.check(ClosedLoad(users=number))
        asked = SweepSpec(
            target=points.name, users=numbers, repeats=times, window_s=points.window_s, seed=chosen.seed
        )
        title = f"sweep of {points.name}"
        with recorded(points, title, asked.model_dump(mode="json"), len(numbers) * times) as identifier:
            sweep(points, numbers, times, chosen.seed, progress.note)
    return show(store, identifier, as_json=json, report=report)


def user_list(text: str) -> tuple[int, ...]:
    """`1,8,16…2048`: numbers of users, ascending; … or ... doubles from the one before to the one after."""
    found: list[int] = []
    for part in text.replace("...", "…").split(","):
        ends = [end.strip() for end in part.split("…")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):
            raise UsageError(f"--users has '{part}'; expected numbers such as 1,8,16…2048")
        first, last = options.users(int(ends[0])), options.users(int(ends[-1]))
        if last < first:
            raise UsageError(f"--users has '{part}'; expected the smaller number first")
        while first < last:
            found.append(first)
            first *= 2
        found.append(last)
    if len(set(found)) > MOST_POINTS:
        raise UsageError(f"--users has {len(set(found))} numbers; expected at most {MOST_POINTS}")
    return tuple(sorted(set(found)))
