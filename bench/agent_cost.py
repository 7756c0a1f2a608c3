"""Cost of the agent: a server with and without it, in alternated pairs, read at the same moments.

`python -m bench.agent_cost [SERVER] [PAIRS]` prints the costs of docs/servers.md. Servers run on all CPUs and
are read when ready, and again after the agent's readings.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping

from prony.errors import PronyError
from prony.plan.target import CountKeys
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.server.launch import RunningServer, launch
from prony.server.probe import number_at, status_probe

READINGS = 10
METERS = ("jvm.classes.loaded", "jvm.threads.live", "jvm.memory.used")
MIB = 1 << 20


def observe(built: Built, agent: bool) -> dict[str, float]:
    """Figures of one start, by name."""
    with launch(built, agent=agent) as server:
        start = server.wait_ready(status_probe(server.host, server.port, built.spec.ready.path))
        assert start.process is not None
        figures = {f"at ready: {name}": value for name, value in start.reported.items()}
        figures["at ready: CPU s"] = start.process.cpu_s
        figures["at ready: RSS MiB"] = start.process.rss_bytes / MIB
        figures["at ready: kernel threads"] = start.process.threads
        figures["time to listen s"] = start.time_to_listen_s or 0.0
        took_ms = []
        for _ in range(READINGS):
            begun_s = time.perf_counter()
            if agent and server.jvm() is None:
                raise PronyError("the agent gave no reading; see the server's log")
            took_ms.append((time.perf_counter() - begun_s) * 1000)
        if agent:
            figures["a reading ms"] = statistics.median(took_ms)
        figures |= {f"after {READINGS} readings: {name}": _meter(server, name) for name in METERS}
        return figures


def _meter(server: RunningServer, name: str) -> float:
    """An Actuator meter, which both kinds of run have."""
    keys = CountKeys(path=f"/actuator/metrics/{name}", pointer="/measurements/0/value")
    value = number_at(server.address, keys)
    if value is None:
        raise PronyError(f"the server has no meter {name}; see its log")
    return value


def table(without: list[Mapping[str, float]], with_agent: list[Mapping[str, float]]) -> str:
    """Medians of both kinds, and of the differences within pairs."""
    rows = [f"{'figure (median)':44} {'without':>14} {'with':>14} {'difference':>12}"]
    for name in with_agent[0]:
        there = statistics.median(run[name] for run in with_agent)
        if name not in without[0]:
            rows.append(f"{name:44} {'':>14} {there:>14,.2f}")
            continue
        absent = statistics.median(run[name] for run in without)
        change = statistics.median(b[name] - a[name] for a, b in zip(without, with_agent, strict=True))
        rows.append(f"{name:44} {absent:>14,.2f} {there:>14,.2f} {change:>+12,.2f}")
    return "\n".join(rows)


def main() -> int:
    """Measure and print."""
    name = sys.argv[1] if len(sys.argv) > 1 else "spring-tomcat"
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    try:
        (built,) = build(
            [Catalogue.load().resolve(name)], on_line=lambda server, line: print(f"{server}: {line}")
        )
        without: list[Mapping[str, float]] = []
        with_agent: list[Mapping[str, float]] = []
        for pair in range(pairs):
            for agent in (False, True) if pair % 2 else (True, False):
                (with_agent if agent else without).append(observe(built, agent))
    except PronyError as fault:
        print(fault, file=sys.stderr)
        return int(fault.exit_code)
    print(f"{name} on JDK {built.jdk.version if built.jdk else '?'}, {pairs} pairs")
    print(table(without, with_agent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
