"""`prony load`: offer a load to a server that is already running. Must not start, pin or stop that server."""

from __future__ import annotations

from typing import Any

import typer

from prony.cli import options
from prony.errors import UsageError


def command(
    url: str = typer.Argument(..., help="What to request, such as http://127.0.0.1:8080/path."),
    users: int = typer.Option(
        10, "--users", "-c", help="Users in a closed loop, each with a connection of its own."
    ),
    duration: str | None = typer.Option(
        None, "--duration", "-d", help="Measure for so long, such as 30s [default: 10s]."
    ),
    requests: int | None = typer.Option(
        None, "--requests", "-n", help="Or: exactly so many requests, measured from the first."
    ),
    warmup: str | None = typer.Option(
        None, "--warmup", help="Load before the measured part, such as 5s [default: 3s; with -n none]."
    ),
    driver: str = typer.Option("auto", "--driver", help="auto, io_uring or epoll."),
    client_cpus: str | None = typer.Option(
        None, "--client-cpus", help="CPUs for the engine [default: chosen]."
    ),
    seed: int | None = typer.Option(None, "--seed", help="For all draws [default: drawn, and recorded]."),
    db: str | None = typer.Option(None, "--db", help="Where results are kept, a file or an SQLAlchemy URL."),
    json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
) -> int:
    """Measure a server that is already running. Checks that need to own the server say unknown."""
    from prony.cli.bench import prepare
    from prony.cli.showing import progress_for, show_load
    from prony.experiment.running import RunningLoad, Target, measure_running
    from prony.store import Store

    target = Target.parse(url)
    chosen: Any = options.one_of(driver, "--driver", ("auto", "io_uring", "epoll"))
    load = RunningLoad(
        target=target,
        users=options.users(users),
        duration_s=_duration_s(duration, requests),
        total_requests=None if requests is None else options.requests(requests),
        warm_up_s=_warm_up_s(warmup, requests),
        driver=chosen,
        seed=options.seed(seed),
    )
    store = Store.open(db)
    bench = prepare(None, client_cpus)
    with progress_for(json) as progress:
        identifier = measure_running(load, bench, store, progress)
    return show_load(store, identifier, as_json=json)


def _duration_s(duration: str | None, requests: int | None) -> float | None:
    if requests is None:
        return options.seconds(duration or "10s", "--duration", at_least_s=1.0)
    if duration is not None:
        raise UsageError(
            "both --duration and --requests were given; give one: a time, or a number of requests"
        )
    return None


def _warm_up_s(warmup: str | None, requests: int | None) -> float:
    if requests is None:
        return options.seconds(warmup or "3s", "--warmup")
    if warmup is not None:
        raise UsageError("--warmup goes with --duration; with --requests every request counts from the first")
    return 0.0
