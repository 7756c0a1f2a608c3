"""CPU time of the laboratory for many load hosts: rows, merging and judging per second of run. Hosts are
simulated by replaying a real engine's events. Prints results, asserts nothing.

    python -m bench.many_hosts [--hosts 64] [--seconds 60] [--actors]

`--actors`: each host is a Dask actor in another process, reached over TLS as real hosts are (needs
`prony[hosts]`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from prony.evidence.hosts import HostEvidence
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence
from prony.judge.judging import judge
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.facts import load_facts
from prony.load.reference import reference_server
from prony.plan.load import ClosedLoad, Connections
from prony.plan.workload import Workload, from_url
from prony_hosts.load.clock import ClockEstimate
from prony_hosts.load.shares import shared
from prony_hosts.load.together import EnginesTogether

USERS = 32
RECORDED_S = 3.0
BUDGET_S = 0.1
"""Aim for the CPU time per second of run."""


class Recorded:
    """Events of a real engine over a few seconds."""

    def __init__(self, workload: Workload) -> None:
        with reference_server(()) as url:
            load = EngineLoad(
                url=url,
                workload=workload,
                load=ClosedLoad(users=USERS),
                cpus=(),
                after_s=RECORDED_S,
                window="all",
            )
            (alone,) = shared(load, (1,))
            assert alone is not None
            run = EngineRun(alone)
            self.events: list[dict[str, Any]] = []
            while not run.finished:
                event = run.next_event(10)
                if event is None:
                    continue
                self.events.append(event)
                if event["event"] == "prepared":
                    run.send({"command": "start"})
            run.close()
        self.load = load

    def named(self, kind: str) -> list[dict[str, Any]]:
        """The events of this kind."""
        return [event for event in self.events if event["event"] == kind]

    def batches(self, seconds: int) -> list[list[dict[str, Any]]]:
        """Events of a run of this length, in batches: a row per second."""
        rows = self.named("interval")[1:-1] or self.named("interval")
        timed = [
            [{**rows[second % len(rows)], "t_ms": 1000.0 * (second + 1), "duration_ms": 1000.0}]
            for second in range(seconds)
        ]
        return [self.named("prepared"), self.named("ready"), *timed, self.named("finished")]


class Replay:
    """A host that replays batches of events."""

    def __init__(self, batches: Sequence[list[dict[str, Any]]]) -> None:
        self._batches = list(batches)

    def events(self, _number: int, _timeout_s: float) -> list[dict[str, Any]] | None:
        """The next batch; None after the last."""
        return self._batches.pop(0) if self._batches else None

    def send(self, _number: int, _command: dict[str, Any]) -> None:
        """Ignored."""

    def close(self, _number: int) -> None:
        """Nothing to close."""


class Handle:
    """The handle of a simulated host; `call` calls a method of its `Replay`."""

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self._name, self._call = name, call

    @property
    def name(self) -> str:
        return self._name

    def send(self, command: dict[str, Any]) -> None:
        self._call("send", 1, command)

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        batch: Sequence[dict[str, Any]] | None = self._call("events", 1, timeout_s)
        return batch

    def clock(self) -> ClockEstimate:
        return ClockEstimate(time.monotonic_ns(), 0.0, 0.0, 1000.0, 10)

    def close(self) -> None:
        self._call("close", 1)


def here(batches: Sequence[list[dict[str, Any]]], hosts: int) -> list[Handle]:
    """All hosts in this process."""

    def calling(replay: Replay) -> Callable[..., Any]:
        return lambda method, *args: getattr(replay, method)(*args)

    return [Handle(f"host-{place + 1}", calling(Replay(batches))) for place in range(hosts)]


def actors(batches: Sequence[list[dict[str, Any]]], hosts: int, stack: ExitStack) -> list[Handle]:
    """A Dask actor per host, in two other processes, called over TLS by the laboratory's own code."""
    from distributed import Client, LocalCluster

    from prony_hosts.facts import facts
    from prony_hosts.file import HostsFile
    from prony_hosts.laboratory import Attached, Laboratory, Remote

    cluster = stack.enter_context(
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, security=True)
    )
    client = stack.enter_context(Client(cluster))
    laboratory = Laboratory(client)
    stack.callback(laboratory.close)
    listed = [{"connect": f"host-{place + 1}"} for place in range(hosts)]
    file = HostsFile.model_validate({"lab": {"scheduler": "tcp://127.0.0.1:1"}, "load": listed})
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    handles = []
    for place, host in enumerate(file.hosts()):
        address = workers[place % len(workers)]
        task = client.submit(Replay, batches, actor=True, pure=False, workers=[address])
        task.result()
        handles.append(Handle(host.name, Remote(task, Attached(host, address, facts(), ()), laboratory).call))
    return handles


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--actors", action="store_true")
    options = parser.parse_args()
    workload = from_url("/")
    recorded = Recorded(workload)
    batches = recorded.batches(options.seconds)
    with ExitStack() as stack:
        make = partial(actors, stack=stack) if options.actors else here
        handles = make(batches, options.hosts)
        begun_s, begun_cpu_s = time.monotonic(), time.process_time()
        run = EnginesTogether(recorded.load, handles)
        report = run.run_to_end(600)
        rows_cpu_s = time.process_time() - begun_cpu_s
        evidence = Evidence(
            load=load_facts(recorded.load.load, workload, Connections()),
            engine=report,
            server=ServerIdentity(name="prony-engine serve"),
            hosts=tuple(
                HostEvidence(name=name, role="load", clock=handles[0].clock().evidence(), **fields)
                for name, fields in run.evidence_fields().items()
            ),
        )
        judged = judge(evidence)
        cpu_s, wall_s = time.process_time() - begun_cpu_s, time.monotonic() - begun_s
    row = recorded.named("interval")[1]
    where = "Dask actors over TLS" if options.actors else "in this process"
    print(f"hosts                {options.hosts}, {where}")
    print(f"run                  {options.seconds} s, {len(report.rows)} merged rows")
    size = len(row["service_time"]["v2"])
    print(f"row of a host        {row['completed']:,} requests, {size} bytes of histogram")
    print(f"rows and reports     {rows_cpu_s / options.seconds * 1000:.1f} ms CPU per second of run")
    judging_ms = (cpu_s - rows_cpu_s) / options.seconds * 1000
    print(f"judging              {judging_ms:.1f} ms, {len(judged.findings)} findings")
    within = "within" if cpu_s <= BUDGET_S * options.seconds else "ABOVE"
    whole_ms = cpu_s / options.seconds * 1000
    print(f"together             {whole_ms:.1f} ms ({within} {BUDGET_S * 1000:.0f} ms)")
    print(f"wall time            {wall_s:.1f} s for {options.seconds} s of run")


if __name__ == "__main__":
    main()
