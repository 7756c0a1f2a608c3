"""`prony load`: offer a load to a server that is already running."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prony import redaction
from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.load import Connections, Load, Measured
    from prony.plan.target import TlsOptions
    from prony.plan.workload import Workload


@measures(without=("until_clear", "max_trials", "jdk", "share_process"))
def command(
    url: str | None = typer.Argument(
        None, help="URL, such as http://127.0.0.1:8080/path or unix:/run/app.sock:/path."
    ),
    method: str | None = typer.Option(
        None, "--method", "-X", help="Request method [default: GET, with a body POST]."
    ),
    header: list[str] = typer.Option(
        [], "--header", "-H", help="Request header, such as 'Accept: */*'; repeatable."
    ),
    body: str | None = typer.Option(
        None, "--body", "--data", help="Request body; @FILE sends a file. ${…} placeholders: docs/engine.md."
    ),
    body_file: Path | None = typer.Option(
        None, "--body-file", help="Request body from a file, byte for byte."
    ),
    users: int | None = typer.Option(
        None,
        "--users",
        "-c",
        help="Closed loop: number of users, one connection each [default: 10].",
    ),
    think: str | None = typer.Option(
        None,
        "--think",
        help="Think time after each response: 500ms, uniform:0.5s,1.5s, exponential:1s or gaussian:1s,0.2s.",
    ),
    rate: float | None = typer.Option(
        None, "--rate", "-r", help="Open loop: requests per second, independent of responses."
    ),
    arrivals: str | None = typer.Option(
        None, "--arrivals", help="Open loop: arrivals constant or poisson [default: constant]."
    ),
    max_users: int | None = typer.Option(
        None,
        "--max-users",
        help="Open loop: requests under way at once; one more is blocked and counted "
        "[default: a second's worth, 100 to 10000].",
    ),
    phases: str | None = typer.Option(
        None, "--phases", help="Open loop: the rate over time, such as 10s@0..100,60s@100."
    ),
    sessions: bool = typer.Option(
        False, "--sessions", help="Open loop: each arrival is a user who walks the workload once."
    ),
    deadline: str | None = typer.Option(
        None, "--deadline", help="Open loop: deadline of a request, from its due time."
    ),
    ramp_up: str | None = typer.Option(
        None, "--ramp-up", help="Ramp-up duration of users or rate, such as 10s."
    ),
    ramp_down: str | None = typer.Option(None, "--ramp-down", help="Ramp-down duration of a closed loop."),
    workload: str | None = typer.Option(
        None,
        "--workload",
        "-w",
        help="Walk this workload (a name, or a .yaml file) instead of one request.",
    ),
    duration: str | None = typer.Option(
        None,
        "--duration",
        "-d",
        help="Measurement time, such as 30s [default: until the throughput is good to ±5 %, 10s to 60s].",
    ),
    requests: int | None = typer.Option(
        None, "--requests", "-n", help="Number of requests, measured from the first."
    ),
    whole: bool = typer.Option(
        False, "--whole", help="With --duration: measure from the first request, ramps included."
    ),
    iterations: int | None = typer.Option(
        None, "--iterations", help="Iterations per user, measured from the first."
    ),
    warmup: str | None = typer.Option(
        None,
        "--warmup",
        help="Warm-up load before the measured part, such as 5s [default: the ramp and 3s; with -n none].",
    ),
    connection_per_request: bool = typer.Option(
        False, "--connection-per-request", help="No keep-alive: a new connection per request."
    ),
    requests_per_connection: int | None = typer.Option(
        None, "--requests-per-connection", help="Requests per connection; the client then closes it."
    ),
    pipeline: int = typer.Option(
        1, "--pipeline", help="Pipelining: requests sent together before the first response is awaited."
    ),
    http_version: str = typer.Option("1.1", "--http-version", help="1.1, 2 or 1.0."),
    streams: int = typer.Option(1, "--streams", help="HTTP/2: concurrent streams per connection."),
    address: list[str] = typer.Option(
        [], "--address", help="Connect to HOST:PORT instead of the URL's host; repeatable, used round-robin."
    ),
    source: list[str] = typer.Option(
        [], "--source", help="Source address of connections; repeatable, used round-robin."
    ),
    ca: Path | None = typer.Option(
        None, "--ca", help="https: PEM file of trusted certificates, instead of the system's."
    ),
    insecure: bool = typer.Option(
        False, "--insecure", help="https: accept any certificate; the report says so."
    ),
    client_cert: Path | None = typer.Option(
        None, "--client-cert", help="https: the client's certificate chain (PEM); with --client-key."
    ),
    client_key: Path | None = typer.Option(None, "--client-key", help="https: the client's key (PEM)."),
    sni: str | None = typer.Option(None, "--sni", help="https: server name (SNI) [default: the URL's host]."),
    tls_version: str | None = typer.Option(
        None, "--tls-version", help="https: only 1.2 or only 1.3 [default: both]."
    ),
    no_resumption: bool = typer.Option(
        False, "--no-resumption", help="https: full handshake for every connection, no resumption."
    ),
    log: Path | None = typer.Option(
        None, "--log", help="Also write one row per request into this CSV file (docs/engine.md)."
    ),
    trials: int = typer.Option(1, "--trials", help="Number of trials, one after the other."),
    *,
    common: Common,
) -> int:
    """Measure a server that is already running. Checks that need to own the server say unknown."""
    from prony.cli import measure
    from prony.cli.load_options import chosen as chosen_load
    from prony.cli.load_options import request
    from prony.cli.targets import url as running
    from prony.plan.budget import FEWEST
    from prony.plan.cell import cell_of
    from prony.plan.plan import MAIN, one_part, shape_of
    from prony.plan.trial import TrialPlan, fixed

    if url is None:
        raise UsageError(
            "name the URL of a running server, such as http://127.0.0.1:8080/path, or --resume ID"
        )
    target, path = running(url)
    if workload is None:
        sends = request(path, method, header, body, body_file)
    else:
        sends = _walked(workload, path, [method, header, body, body_file])
    offered = chosen_load(
        users=users,
        think_time=think,
        ramp_up=ramp_up,
        ramp_down=ramp_down,
        rate=rate,
        phase_list=phases,
        arrivals=arrivals,
        sessions=sessions,
        max_users=max_users,
        deadline=deadline,
        default_users=10 if workload is None else sends.users,
    )
    if common.windows is not None and duration is None:
        duration = "10s"
    measured = _measured(offered, duration, requests, iterations, whole, within=common.within is not None)
    tls = _tls(target.https, ca, insecure, client_cert, client_key, sni, tls_version or no_resumption)
    target = target.model_copy(
        update={"tls": tls, "addresses": tuple(_host_and_port(each) for each in address)}
    )
    trial = TrialPlan(
        workload=sends,
        load=offered,
        measured=measured,
        warm_up=fixed(_warm_up_s(warmup, measured, offered.ramp_up_s)),
        connections=_connections(
            connection_per_request,
            requests_per_connection,
            tls_version,
            no_resumption,
            pipeline,
            options.one_of(http_version, "--http-version", ("1.0", "1.1", "2")),
            streams,
        ),
        source_addresses=tuple(source),
        log=None if log is None else str(log),
    )
    times = trials if common.budget is None else max(trials, FEWEST)
    cells = [cell_of(MAIN, target.url, target, trial, options.trials(times))]
    plan = one_part(
        "load", f"load {redaction.url(url)}", cells, seed=options.seed(common.seed), shape=shape_of(cells)
    )
    return measure.run(plan, common)


def _walked(name: str, path: str, given: list[Any]) -> Workload:
    """The workload of this name. Raises UsageError when the request itself was described as well."""
    from prony.plan import workload as workloads

    if path != "/" or any(given):
        raise UsageError(
            "--workload brings paths, methods, headers and bodies of its own; give the URL without a path "
            "and leave --method, --header and --body out"
        )
    return workloads.load(name)


def _connections(
    per_request: bool,
    most: int | None,
    tls_version: str | None,
    no_resumption: bool,
    pipeline: int = 1,
    http_version: Any = "1.1",
    streams: int = 1,
) -> Connections:
    from prony.plan.load import Connections

    if per_request and most is not None:
        raise UsageError(
            "both --connection-per-request and --requests-per-connection were given; give one of them"
        )
    if most is not None and not 1 <= most <= 2**31:
        raise UsageError(f"--requests-per-connection is {most}; expected at least 1")
    if not 1 <= pipeline <= 1024:
        raise UsageError(f"--pipeline is {pipeline}; expected 1 (no pipelining) to 1024")
    if pipeline > 1 and (per_request or http_version == "1.0"):
        raise UsageError(
            "--pipeline does not go with --connection-per-request or --http-version 1.0; leave them out"
        )
    if streams < 1:
        raise UsageError(f"--streams is {streams}; expected at least 1")
    if http_version == "2":
        if pipeline > 1:
            raise UsageError("--pipeline is for HTTP/1.1; with --http-version 2 give --streams")
        if streams > 1 and (per_request or most is not None):
            raise UsageError(
                "--streams does not go with --connection-per-request or --requests-per-connection: users who "
                "share a connection cannot close it"
            )
    elif streams > 1:
        raise UsageError("--streams is for --http-version 2; add it, or leave --streams out")
    only: Any = None if tls_version is None else options.one_of(tls_version, "--tls-version", ("1.2", "1.3"))
    return Connections(
        keep_alive=not per_request,
        max_requests=most,
        tls_resumption=not no_resumption,
        tls_version=only,
        pipeline=pipeline,
        http_version=http_version,
        streams=streams,
    )


def _host_and_port(address: str) -> str:
    """The same, checked. Raises UsageError for what names no port."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(
            f"--address is '{address}'; expected HOST:PORT, such as 127.0.0.2:8080 or [::1]:8080"
        )
    return address


def _tls(
    https: bool,
    ca: Path | None,
    insecure: bool,
    client_cert: Path | None = None,
    client_key: Path | None = None,
    sni: str | None = None,
    other: object = None,
) -> TlsOptions:
    """How TLS is spoken. Raises UsageError for options that cannot be followed."""
    from prony.plan.target import TlsOptions

    if not https and (insecure or other or any((ca, client_cert, client_key, sni))):
        raise UsageError(
            "--ca, --insecure, --client-cert, --client-key, --sni, --tls-version and --no-resumption go with "
            "an https:// URL; this one is http://"
        )
    if ca is not None and insecure:
        raise UsageError("both --ca and --insecure were given; give one: with --insecure nothing is checked")
    if (client_cert is None) != (client_key is None):
        raise UsageError("--client-cert and --client-key need each other; give both or neither")
    for option, file in (("--ca", ca), ("--client-cert", client_cert), ("--client-key", client_key)):
        if file is not None and not file.is_file():
            raise UsageError(f"{option} names {file}, which is not a file; name a PEM file")
    return TlsOptions(ca=ca, insecure=insecure, client_cert=client_cert, client_key=client_key, sni=sni)


GOOD_ENOUGH = 0.05
"""Without a duration a window ends when its figure is known to ± this share ..."""
LONGEST_S = 60.0
"""... or after this."""


def _measured(
    load: Load,
    duration: str | None,
    requests: int | None,
    iterations: int | None,
    whole: bool,
    *,
    within: bool = False,
) -> Measured:
    """The part that is measured: a time after a warm-up, or everything from the first request. `within`: how
    precise is said by an option.
    """
    from prony.plan.load import OpenLoad, SteadyWindow, WholeRun

    given = {"--duration": duration, "--requests": requests, "--iterations": iterations}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"both {named[0]} and {named[1]} were given; give one: a time, or a number")
    if iterations is not None and load.model == "open":
        raise UsageError("--iterations applies to --users; a user of an open loop walks the workload once")
    if isinstance(load, OpenLoad) and load.phases:
        if named:
            raise UsageError(f"both --phases and {named[0]} were given; the phases say how long it takes")
        return WholeRun()
    if requests is not None:
        return WholeRun(total_requests=options.requests(requests))
    if iterations is not None:
        return WholeRun(iterations_per_user=options.requests(iterations))
    if whole:
        return WholeRun(duration_s=options.seconds(duration or "10s", "--duration", at_least_s=1.0))
    if load.model == "closed" and load.ramp_down_s:
        raise UsageError("--ramp-down lies after a measured window; give --whole to measure all of the run")
    if duration is None:
        return SteadyWindow(window_s=LONGEST_S, precision=None if within else GOOD_ENOUGH)
    return SteadyWindow(window_s=options.seconds(duration, "--duration", at_least_s=1.0))


def _warm_up_s(warmup: str | None, measured: Measured, ramp_up_s: float) -> float:
    if measured.kind == "steady":
        warm_up_s = 3.0 + ramp_up_s if warmup is None else options.seconds(warmup, "--warmup")
        if warm_up_s < ramp_up_s:
            raise UsageError(
                f"--warmup is {warm_up_s:g} s and --ramp-up {ramp_up_s:g} s; expected the ramp to be over "
                "before anything is measured"
            )
        return warm_up_s
    if warmup is not None:
        raise UsageError("--warmup applies to --duration; otherwise the window starts with the first request")
    return 0.0
