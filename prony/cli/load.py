"""`prony load`: offer a load to a server that is already running. Must not start, pin or stop that server."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.load.contract import OpenLoop, TlsOptions
    from prony.plan.workload import Workload


def command(
    url: str = typer.Argument(..., help="What to request, such as http://127.0.0.1:8080/path."),
    method: str | None = typer.Option(
        None, "--method", "-X", help="The method [default: GET, with a body POST]."
    ),
    header: list[str] = typer.Option(
        [], "--header", "-H", help="A header, such as 'Accept: */*'; may be given again."
    ),
    body: str | None = typer.Option(
        None, "--body", "--data", help="The body; @FILE sends a file. ${…} placeholders: docs/engine.md."
    ),
    body_file: Path | None = typer.Option(None, "--body-file", help="A file that is sent as the body."),
    users: int | None = typer.Option(
        None,
        "--users",
        "-c",
        help="Users in a closed loop, each with a connection of its own [default: 10].",
    ),
    think: str | None = typer.Option(
        None, "--think", help="Users of a closed loop pause so long after each answer, such as 500ms."
    ),
    rate: float | None = typer.Option(
        None, "--rate", "-r", help="Or an open loop: so many requests per second, whatever the answers do."
    ),
    arrivals: str | None = typer.Option(
        None, "--arrivals", help="Open loop: constant or poisson [default: constant]."
    ),
    max_users: int | None = typer.Option(
        None,
        "--max-users",
        help="Open loop: requests under way at once; one more is blocked and counted "
        "[default: a second's worth, 100 to 10000].",
    ),
    ramp_up: str | None = typer.Option(
        None, "--ramp-up", help="Users start, or the rate rises from 0, over so long, such as 10s."
    ),
    duration: str | None = typer.Option(
        None, "--duration", "-d", help="Measure for so long, such as 30s [default: 10s]."
    ),
    requests: int | None = typer.Option(
        None, "--requests", "-n", help="Or: exactly so many requests, measured from the first."
    ),
    warmup: str | None = typer.Option(
        None,
        "--warmup",
        help="Load before the measured part, such as 5s [default: the ramp and 3s; with -n none].",
    ),
    ca: Path | None = typer.Option(
        None, "--ca", help="https: a PEM file with the certificates to trust, instead of the system's."
    ),
    insecure: bool = typer.Option(
        False, "--insecure", help="https: take any certificate; the report says so."
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
    sends = request(target.path, method, header, body, body_file)
    chosen: Any = options.one_of(driver, "--driver", ("auto", "io_uring", "epoll"))
    open_loop = _open_loop(rate, arrivals, max_users, users, think)
    ramp_up_s = options.seconds(ramp_up or "0s", "--ramp-up")
    load = RunningLoad(
        target=target,
        workload=sends,
        users=options.users(10 if users is None else users),
        think_ms=options.seconds(think or "0s", "--think") * 1000,
        ramp_up_s=ramp_up_s,
        open_loop=open_loop,
        duration_s=_duration_s(duration, requests),
        total_requests=None if requests is None else options.requests(requests),
        warm_up_s=_warm_up_s(warmup, requests, ramp_up_s),
        driver=chosen,
        tls=_tls(target.tls, ca, insecure),
        seed=options.seed(seed),
    )
    store = Store.open(db)
    bench = prepare(None, client_cpus)
    with progress_for(json) as progress:
        identifier = measure_running(load, bench, store, progress)
    return show_load(store, identifier, as_json=json)


def _tls(https: bool, ca: Path | None, insecure: bool) -> TlsOptions:
    """How TLS is spoken. Raises UsageError for options that cannot be followed."""
    from prony.load.contract import TlsOptions

    if not https and (ca is not None or insecure):
        raise UsageError("--ca and --insecure go with an https:// URL; this one is http://")
    if ca is not None and insecure:
        raise UsageError("both --ca and --insecure were given; give one: with --insecure nothing is checked")
    if ca is not None and not ca.is_file():
        raise UsageError(f"--ca names {ca}, which is not a file; name a PEM file with certificates")
    return TlsOptions(ca=ca, insecure=insecure)


def request(
    path: str, method: str | None, headers: list[str], body: str | None, body_file: Path | None
) -> Workload:
    """The one request that is repeated. Raises UsageError for what cannot be sent."""
    from pydantic import ValidationError

    from prony.plan.workload import Method, from_url

    if body is not None and body.startswith("@"):
        if body_file is not None:
            raise UsageError("both --data @FILE and --body-file were given; give one")
        body_file = Path(body[1:])
        body = None
    if body is not None and body_file is not None:
        raise UsageError("both --body and --body-file were given; give one")
    if body_file is not None and not body_file.is_file():
        raise UsageError(f"the body's file {body_file} is not there; name a file that can be read")
    word = method.upper() if method is not None else "GET" if body is None and body_file is None else "POST"
    chosen: Any = options.one_of(word, "--method", get_args(Method))
    pairs: dict[str, str] = {}
    for line in headers:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or "\n" in line or "\r" in line:
            raise UsageError(f"--header is '{line}'; expected a name, a colon and a value: 'Accept: */*'")
        pairs[name.strip()] = value.strip()
    try:
        return from_url(path, chosen, pairs, body, None if body_file is None else str(body_file.resolve()))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"the request cannot be sent: {reason}") from fault


def _duration_s(duration: str | None, requests: int | None) -> float | None:
    if requests is None:
        return options.seconds(duration or "10s", "--duration", at_least_s=1.0)
    if duration is not None:
        raise UsageError(
            "both --duration and --requests were given; give one: a time, or a number of requests"
        )
    return None


def _warm_up_s(warmup: str | None, requests: int | None, ramp_up_s: float) -> float:
    if requests is None:
        warm_up_s = 3.0 + ramp_up_s if warmup is None else options.seconds(warmup, "--warmup")
        if warm_up_s < ramp_up_s:
            raise UsageError(
                f"--warmup is {warm_up_s:g} s and --ramp-up {ramp_up_s:g} s; expected the ramp to be over "
                "before anything is measured"
            )
        return warm_up_s
    if warmup is not None:
        raise UsageError("--warmup goes with --duration; with --requests every request counts from the first")
    return 0.0


def _open_loop(
    rate: float | None, arrivals: str | None, max_users: int | None, users: int | None, think: str | None
) -> OpenLoop | None:
    """The open loop that was asked for; None for a closed one. Raises UsageError when both were."""
    if rate is None:
        for value, name in ((arrivals, "--arrivals"), (max_users, "--max-users")):
            if value is not None:
                raise UsageError(f"{name} goes with an open loop; give its --rate, or leave {name} out")
        return None
    for given, name in ((users, "--users"), (think, "--think")):
        if given is not None:
            raise UsageError(
                f"both --rate and {name} were given; give --rate for an open loop, or {name} for a closed one"
            )
    from prony.load.contract import OpenLoop

    per_s = options.rate(rate)
    spacing: Any = options.one_of(arrivals or "constant", "--arrivals", ("constant", "poisson"))
    most = int(min(10_000, max(100, math.ceil(per_s)))) if max_users is None else options.max_users(max_users)
    # Ten milliseconds' worth of requests: more are opened when answers take longer.
    ready = min(most, max(10, math.ceil(per_s / 100)))
    return OpenLoop(rate_per_s=per_s, arrivals=spacing, max_users=most, connections=ready)
