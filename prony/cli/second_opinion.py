"""`prony second-opinion`: the same load by Prony and by other load generators. Must not measure by itself."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from prony.cli import options
from prony.cli import target_options as t
from prony.errors import EnvironmentFault, ExitCode, UsageError

if TYPE_CHECKING:
    from prony.experiment.bench import Bench
    from prony.experiment.second_opinion import Counter
    from prony.peers import Tool

ALL = "wrk,ab,h2load,oha,jmeter,artillery"
MOST_ROUNDS = 20
READY_S = 120.0


def command(
    target: t.Target,
    tools: str = typer.Option(
        ALL,
        "--with",
        help="The tools, with commas; those that are missing are named.",
    ),
    connections: int = typer.Option(10, "--connections", "-c", help="Open at once, in closed loops."),
    duration: str = typer.Option("10s", "--duration", "-d", help="Of each run, in whole seconds."),
    rate: int | None = typer.Option(None, "--rate", "-r", help="Requests per second, in an open loop."),
    rounds: int = typer.Option(3, "--rounds", help="Each tool runs once per round, in shuffled order."),
    connection_per_request: bool = typer.Option(
        False, "--connection-per-request", help="No keep-alive: each request opens a connection."
    ),
    seed: t.Seed = None,
    server_cpus: t.ServerCpus = None,
    client_cpus: t.ClientCpus = None,
    jdk: t.Jdk = None,
    db: t.Db = None,
    json: t.Json = False,
) -> int:
    """What do other load generators say of the same server under the same load, and which check explains the
    difference? One GET (a URL, or the workload of a server that is one GET).
    """
    from prony.cli.bench import prepare
    from prony.experiment.running import RunningLoad, Target
    from prony.experiment.second_opinion import Asked, second_opinion
    from prony.plan.load import ClosedLoad, Connections, OpenLoad, WholeRun
    from prony.plan.workload import from_url
    from prony.report.progress import SilentProgress
    from prony.report.second_opinion import as_json, lines
    from prony.store import Store

    seconds = round(options.seconds(duration, "--duration", at_least_s=1.0))
    if not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(f"--rounds is {rounds}; expected 1 to {MOST_ROUNDS}")
    if rate is not None and rate < 1:
        raise UsageError(f"--rate is {rate}; expected 1 or more")
    chosen = _tools(tools)
    options.users(connections)
    bench = prepare(server_cpus, client_cpus)
    store = Store.open(db)

    class Told(SilentProgress):
        def note(self, text: str) -> None:
            print(f"prony: {text}", file=sys.stderr)

    with _running(target, bench, jdk) as (url, count):
        at = Target.parse(url)
        asked = Asked(connections, seconds, rate, connection_per_request, at.tls)
        load = RunningLoad(
            target=at,
            workload=from_url(at.path),
            load=ClosedLoad(users=connections) if rate is None else OpenLoad(rate_per_s=rate),
            measured=WholeRun(duration_s=float(seconds)),
            warm_up_s=0.0,
            driver="auto",
            seed=options.seed(seed),
            connections=Connections(keep_alive=not connection_per_request),
            asks_first=False,
            title=f"second opinion on {url}",
        )
        found = second_opinion(
            load, asked, chosen, rounds=rounds, bench=bench, store=store, progress=Told(), count=count
        )
    if json:
        jsonlib.dump(as_json(found), sys.stdout, indent=2)
        print()
    else:
        print("\n".join(lines(found)))
    return ExitCode.OK


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
def _running(target: str, bench: Bench, jdk: str | None) -> Iterator[tuple[str, Counter]]:
    """The URL of a running server, or of one of ours that runs meanwhile; and who asks it for its count."""
    from prony.experiment.second_opinion import counter_of
    from prony.plan import workload as workloads
    from prony.server.build import build
    from prony.server.catalogue import Catalogue
    from prony.server.launch import launch
    from prony.server.probe import status_probe

    if "://" in target:
        from prony.experiment.running import Target

        if jdk is not None:
            raise UsageError("--jdk goes with a server of the catalogue; this one is running already")
        yield target, counter_of(Target.parse(target).base)
        return
    spec = Catalogue.load().resolve(target)
    name = next(iter(spec.workloads), None)
    steps: tuple[Any, ...] = () if name is None else workloads.load(name).all_steps
    if len(steps) != 1 or steps[0].method != "GET" or steps[0].headers or "${" in steps[0].path:
        raise UsageError(
            f"{spec.name}: its workload {name} is more than one plain GET, which is all that every tool can "
            "be asked for; start the server and give a URL"
        )
    (built,) = build(
        [spec], jdk=jdk, on_line=lambda server, line: print(f"prony: {server}: {line}", file=sys.stderr)
    )
    with launch(built, cpus=bench.partition.server) as server:
        path = steps[0].path
        if (
            server.wait_ready(status_probe(server.host, server.port, path, tls=server.address.tls), READY_S)
            is None
        ):
            raise EnvironmentFault(f"{spec.name} was not ready within {READY_S:g} s")
        counts = spec.counts
        asks = _nobody if counts is None else counter_of(server.url, counts.path, counts.pointer)
        yield f"{server.url}{path}", asks


def _nobody() -> None:
    """A server that does not count."""
