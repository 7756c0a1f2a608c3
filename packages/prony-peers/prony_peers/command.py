"""`prony second-opinion`: the same load from Prony and from other load generators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.cli import targets as t
from prony.cli.command import measures
from prony.cli.common import Common
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
"""Counters of `prony-engine serve`; other servers do not have them."""


@measures(without=("until_clear", "max_trials", "hosts", "share_process", "explain", "attach"))
def command(
    target: t.Target = None,
    tools: str = typer.Option(ALL, "--with", help="Comma-separated tools; missing tools are reported."),
    connections: int = typer.Option(
        CONNECTIONS, "--connections", "-c", help="Number of connections, in closed loops."
    ),
    duration: str = typer.Option(
        DURATION, "--duration", "-d", help="Duration of each run, in whole seconds."
    ),
    rate: int | None = typer.Option(None, "--rate", "-r", help="Requests per second, in an open loop."),
    trials: int = typer.Option(
        TRIALS, "--trials", help="Number of rounds; each runs Prony and every tool once, in shuffled order."
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
    """Cross-check with other load generators: same server, same load; lists the checks that explain a
    difference. The load is one GET: a URL, or a server's workload that is one GET.
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
    ).in_http_version(_spoken(named))
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
    """The connections for these options. Raises UsageError for a contradiction."""
    from prony.plan.load import Connections

    if streams < 1:
        raise UsageError(f"--streams is {streams}; expected at least 1")
    if options.one_of(http_version, "--http-version", ("1.1", "2")) == "1.1":
        if streams > 1:
            raise UsageError("--streams is for --http-version 2; add it, or leave --streams out")
        return Connections(keep_alive=not per_request)
    if per_request and streams > 1:
        raise UsageError("--streams excludes --connection-per-request: a shared connection stays open")
    shared = count if streams > 1 else None
    return Connections(keep_alive=not per_request, http_version="2", count=shared)


def _spoken(named: t.Server) -> str | None:
    """HTTP version of a server that Prony starts; None: as given on the command line."""
    from prony.targets import LaunchedServer

    return None if named.spec is None else LaunchedServer(named.spec).http_version


def _tools(names: str) -> list[str]:
    """The tools' names. Raises UsageError for an unknown name."""
    from prony.plan.yamlfile import nearest
    from prony_peers import PEERS

    available = [tool.name for tool in PEERS]
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise UsageError(f"--with names no tool; expected some of {', '.join(available)}")
    for name in wanted:
        if name not in available:
            raise UsageError(f"--with '{name}'{nearest(name, available)}; expected {', '.join(available)}")
    return wanted


def _running(named: t.Server, insecure: bool) -> tuple[Target, str, Workload]:
    """Target, scheme with host, and workload for a running server."""
    from prony.plan.target import CountKeys, TlsOptions, Url
    from prony.plan.workload import from_url

    assert isinstance(named.target, Url), "a running server is at a URL"
    counts = CountKeys(path=STATS_PATH, pointer=STATS_POINTER)
    counting = named.target.model_copy(update={"counts": counts, "tls": TlsOptions(insecure=insecure)})
    return counting, named.target.url, from_url(named.path)


def _launched(named: t.Server) -> tuple[Target, str, Workload]:
    """The same for a server that Prony starts, whose address is not known yet."""
    from prony.targets import LaunchedServer

    sends = t.request([named], None)
    steps = sends.all_steps
    if len(steps) != 1 or steps[0].method != "GET" or steps[0].headers or "${" in steps[0].path:
        raise UsageError(
            f"{named.name}: its workload {sends.name} is more than the one plain GET that every "
            "tool can send; start the server and give a URL"
        )
    scheme = "https" if LaunchedServer(named.launched).https else "http"
    return named.target, f"{scheme}://{named.name}", sends
