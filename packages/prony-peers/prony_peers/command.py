"""`prony second-opinion`: the same load by Prony and by other load generators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.cli import targets as t
from prony.cli.common import Common, measures
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.load import Connections
    from prony.plan.target import Target
    from prony.plan.workload import Workload

ALL = "wrk,ab,h2load,oha,jmeter,artillery"
CONNECTIONS = 10
DURATION = "10s"
TRIALS = 3
STATS_PATH, STATS_POINTER = "/__prony/stats", "/requests"
"""Where `prony-engine serve` says what it has counted; another server behind a URL says nothing there."""


@measures(without=("until_clear", "max_trials", "hosts", "share_process", "explain", "attach"))
def command(
    target: t.Target = None,
    tools: str = typer.Option(
        ALL,
        "--with",
        help="Tools, separated by commas; missing ones are reported.",
    ),
    connections: int = typer.Option(
        CONNECTIONS, "--connections", "-c", help="Number of connections, in closed loops."
    ),
    duration: str = typer.Option(
        DURATION, "--duration", "-d", help="Duration of each run, in whole seconds."
    ),
    rate: int | None = typer.Option(None, "--rate", "-r", help="Requests per second, in an open loop."),
    trials: int = typer.Option(
        TRIALS,
        "--trials",
        help="Number of rounds; in each, Prony and every tool run once, in shuffled order.",
    ),
    connection_per_request: bool = typer.Option(
        False, "--connection-per-request", help="No keep-alive: a new connection per request."
    ),
    http_version: str = typer.Option("1.1", "--http-version", help="1.1 or 2 (h2load, oha)."),
    streams: int = typer.Option(1, "--streams", help="HTTP/2: concurrent streams per connection."),
    insecure: bool = typer.Option(
        False, "--insecure", help="https: accept any certificate, as the other tools do."
    ),
    *,
    common: Common,
) -> int:
    """Cross-check with other load generators: the same server under the same load, and which check explains a
    difference. One GET (a URL, or the workload of a server that is one GET).
    """
    from prony.cli import measure
    from prony.plan.load import ClosedLoad, OpenLoad, WholeRun
    from prony.plan.plan import one_part
    from prony.plan.trial import TrialPlan, fixed
    from prony_peers.around_trial import available

    if target is None:
        raise UsageError(f"name a URL, {t.LAUNCHED}")
    seconds = float(round(options.seconds(duration, "--duration", at_least_s=1.0)))
    if rate is not None and rate < 1:
        raise UsageError(f"--rate is {rate}; expected 1 or more")
    wanted = _tools(tools)
    named = t.server(target)
    at, base, sends = _running(named, insecure) if named.spec is None else _launched(named)
    over = _connections(connections, connection_per_request, http_version, streams)
    places = options.users(connections * streams)
    trial = TrialPlan(
        workload=sends,
        load=ClosedLoad(users=places) if rate is None else OpenLoad(rate_per_s=rate, connections=places),
        measured=WholeRun(duration_s=seconds, warm_up_s=seconds if at.owned else 0.0),
        warm_up=fixed(0.0),
        connections=over,
        preflight=at.owned,
    ).spoken(_spoken(named))
    check = available(wanted, trial, base)
    trial = trial.model_copy(update={"beside": tuple(check.versions)})
    plan = one_part(
        "second-opinion",
        f"second opinion on {target}",
        [replace(named, target=at).cell(trial, options.trials(trials))],
        seed=options.seed(common.seed),
        shape="cross-check",
        cross_check=check,
    )
    return measure.run(plan, common)


def _connections(count: int, per_request: bool, http_version: str, streams: int) -> Connections:
    """So many, with so many requests at once on each. Raises UsageError for what does not fit together."""
    from prony.plan.load import Connections

    if streams < 1:
        raise UsageError(f"--streams is {streams}; expected at least 1")
    if options.one_of(http_version, "--http-version", ("1.1", "2")) == "1.1":
        if streams > 1:
            raise UsageError("--streams is for --http-version 2; add it, or leave --streams out")
        return Connections(keep_alive=not per_request)
    if per_request and streams > 1:
        raise UsageError(
            "--streams does not go with --connection-per-request: a connection that is shared stays open"
        )
    shared = count if streams > 1 else None
    return Connections(keep_alive=not per_request, http_version="2", count=shared)


def _spoken(named: t.Server) -> str | None:
    """The version that a server which Prony starts asks for; None: what was asked for here."""
    from prony.targets import LaunchedServer

    return None if named.spec is None else LaunchedServer(named.spec).http_version


def _tools(names: str) -> list[str]:
    """The tools' names. Raises UsageError for one that nobody knows."""
    from prony.plan.yamlfile import nearest
    from prony_peers import PEERS

    known = [tool.name for tool in PEERS]
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise UsageError(f"--with names no tool; expected some of {', '.join(known)}")
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"--with names '{name}'{nearest(name, known)}; expected some of {', '.join(known)}"
            )
    return wanted


def _running(named: t.Server, insecure: bool) -> tuple[Target, str, Workload]:
    """A running server: the target, scheme with host, and the request."""
    from prony.plan.target import CountKeys, TlsOptions, Url
    from prony.plan.workload import from_url

    assert isinstance(named.target, Url), "a running server is at a URL"
    counts = CountKeys(path=STATS_PATH, pointer=STATS_POINTER)
    counting = named.target.model_copy(update={"counts": counts, "tls": TlsOptions(insecure=insecure)})
    return counting, named.target.url, from_url(named.path)


def _launched(named: t.Server) -> tuple[Target, str, Workload]:
    """The same of a server that Prony starts; where it will listen is not known yet."""
    from prony.targets import LaunchedServer

    sends = t.request([named], None)
    steps = sends.all_steps
    if len(steps) != 1 or steps[0].method != "GET" or steps[0].headers or "${" in steps[0].path:
        raise UsageError(
            f"{named.name}: its workload {sends.name} is more than one plain GET, which is all that every "
            "tool can be asked for; start the server and give a URL"
        )
    scheme = "https" if LaunchedServer(named.launched).https else "http"
    return named.target, f"{scheme}://{named.name}", sends
