"""`prony second-opinion`: the same load by Prony and by other load generators. Must not measure by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from prony.cli import options
from prony.cli import targets as t
from prony.cli.command import measures
from prony.cli.common import Common
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.evidence.host import CpuPartition
    from prony.peers import Tool
    from prony.plan.plan import Counts
    from prony.plan.target import TlsOptions

ALL = "wrk,ab,h2load,oha,jmeter,artillery"
CONNECTIONS = 10
DURATION = "10s"
ROUNDS = 3
MOST_ROUNDS = 20
READY_S = 120.0


@measures(without=("until_clear", "max_trials", "resume"))
def command(
    target: t.Target = None,
    tools: str = typer.Option(
        ALL,
        "--with",
        help="The tools, with commas; those that are missing are named.",
    ),
    connections: int = typer.Option(
        CONNECTIONS, "--connections", "-c", help="Open at once, in closed loops."
    ),
    duration: str = typer.Option(DURATION, "--duration", "-d", help="Of each run, in whole seconds."),
    rate: int | None = typer.Option(None, "--rate", "-r", help="Requests per second, in an open loop."),
    rounds: int = typer.Option(ROUNDS, "--rounds", help="Each tool runs once per round, in shuffled order."),
    connection_per_request: bool = typer.Option(
        False, "--connection-per-request", help="No keep-alive: each request opens a connection."
    ),
    *,
    common: Common,
) -> int:
    """Cross-check with other load generators: the same server under the same load, and which check explains a
    difference. One GET (a URL, or the workload of a server that is one GET).
    """
    from prony.cli import measure
    from prony.cli.testbed import prepare
    from prony.experiment.cross_check import asked_of
    from prony.plan.load import ClosedLoad, Connections, OpenLoad, WholeRun
    from prony.plan.plan import MAIN, CrossCheck, Part, Plan, cell_of
    from prony.plan.target import parse_url
    from prony.plan.trial import TrialPlan, fixed
    from prony.plan.workload import from_url

    if target is None:
        raise UsageError("name a URL or a server of the catalogue (prony servers lists them)")
    seconds = round(options.seconds(duration, "--duration", at_least_s=1.0))
    if not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(f"--rounds is {rounds}; expected 1 to {MOST_ROUNDS}")
    if rate is not None and rate < 1:
        raise UsageError(f"--rate is {rate}; expected 1 or more")
    chosen = _tools(tools)
    options.users(connections)
    testbed = prepare(common.server_cpus, common.client_cpus)
    seed = options.seed(common.seed)
    with _running(target, testbed.partition, common.jdk) as (url, tls, counts):
        at, path = parse_url(url)
        at = at.model_copy(update={"tls": tls})
        asked = CrossCheck(
            connections=connections,
            seconds=seconds,
            rate_per_s=rate,
            per_request=connection_per_request,
            tls=at.https,
            url=url,
            counts=counts,
        )
        trial = TrialPlan(
            workload=from_url(path),
            load=ClosedLoad(users=connections) if rate is None else OpenLoad(rate_per_s=rate),
            measured=WholeRun(duration_s=float(seconds)),
            warm_up=fixed(0.0),
            connections=Connections(keep_alive=not connection_per_request),
            preflight=False,
        )
        title = f"second opinion on {url}"
        check = asked_of(chosen, asked, testbed.partition.client[0], seed)
        plan = Plan(
            name="second-opinion",
            command="second-opinion",
            title=title,
            parts=(Part(name=MAIN, title=title, shape="cross-check", cross_check=check),),
            cells=(cell_of(MAIN, at.url, at, trial, rounds),),
            seed=seed,
        )
        return measure.run(plan, replace(common, jdk=None))


def _tools(names: str) -> list[Tool]:
    """Adapters by name. Raises UsageError for one that nobody knows."""
    from prony.peers import PEERS
    from prony.plan.yamlfile import nearest

    known = {tool.name: tool for tool in PEERS}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise UsageError(f"--with names no tool; expected some of {', '.join(known)}")
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"--with names '{name}'{nearest(name, list(known))}; expected some of {', '.join(known)}"
            )
    return [known[name] for name in dict.fromkeys(wanted)]


@contextmanager
def _running(
    target: str, partition: CpuPartition, jdk: str | None
) -> Iterator[tuple[str, TlsOptions, Counts | None]]:
    """The URL of a running server, or of one of ours that runs meanwhile; how TLS is spoken with it, and
    where it tells its count.
    """
    from prony.experiment.cross_check import STATS_PATH, STATS_POINTER
    from prony.plan import workload as workloads
    from prony.plan.plan import Counts
    from prony.plan.target import Launch, TlsOptions, parse_url
    from prony.server.catalogue import Catalogue
    from prony.server.probe import status_probe
    from prony.targets import LaunchedServer

    if "://" in target:
        if jdk is not None:
            raise UsageError("--jdk applies to servers that Prony launches; this one is already running")
        base = parse_url(target).target.url
        yield target, TlsOptions(), Counts(base=base, path=STATS_PATH, pointer=STATS_POINTER)
        return
    launched = LaunchedServer.of(Launch(address=target, jdk=jdk), Catalogue.load())
    name = next(iter(launched.workloads), None)
    steps: tuple[Any, ...] = () if name is None else workloads.load(name).all_steps
    if len(steps) != 1 or steps[0].method != "GET" or steps[0].headers or "${" in steps[0].path:
        raise UsageError(
            f"{launched.name}: its workload {name} is more than one plain GET, which is all that every tool "
            "can be asked for; start the server and give a URL"
        )
    launched.prepare(lambda server, line: print(f"prony: {server}: {line}", file=sys.stderr))
    with launched.start(partition) as server:
        path = steps[0].path
        server.wait_ready(status_probe(server.host, server.port, path, tls=server.address.tls), READY_S)
        keys = launched.spec.counts
        told = None if keys is None else Counts(base=server.url, path=keys.path, pointer=keys.pointer)
        yield f"{server.url}{path}", server.tls, told
