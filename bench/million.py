"""A million closed-loop users with think time in one engine, against as many reference servers as the
descriptor limit requires, checked by the laboratory's judge. Bounded in time; prints the result.

    python -m bench.million [--users 1000000] [--think-s 100] [--ramp-s 120] [--window-s 30]
                            [--engine PATH]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.evidence.engine import Counters, EngineReport, IntervalRow, Ready, Window
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.checks.little import little
from prony.judge.checks.think import think
from prony.judge.limits import CheckLimits
from prony.load.engine import find_engine

PAIR_BYTES = 9_000
"""Memory of both ends of a connection on one host, kernel and both processes (measured: 8.3 KB)."""
USERS_PER_SOURCE = 10_000
"""Well below half of the 28,000 default ports per source address: the kernel searches one half first, and
takes milliseconds per connect when that is nearly full.
"""
BOUND_BYTES = 600
SPARE_DESCRIPTORS = 100
"""Descriptors of a server besides its connections, generously."""
PATIENCE_S = 360.0
"""Time limit after the ramp for all users to connect."""


def main() -> int:
    """Exit codes: 0 all users connected, 1 not all, 2 too little memory."""
    options = _options()
    free = _kibibytes(Path("/proc/meminfo"), "MemAvailable") * 1024
    if free < options.users * PAIR_BYTES:
        fits = free // PAIR_BYTES
        print(
            f"{options.users:,} users need about {options.users * PAIR_BYTES / 1e9:.1f} GB of memory for "
            f"both ends; {free / 1e9:.1f} GB are free. Free some, or try --users {fits}",
            file=sys.stderr,
        )
        return 2
    engine = options.engine or find_engine()
    cpus = sorted(os.sched_getaffinity(0))
    server_cpu, client_cpu = cpus[0], cpus[-1]
    with ExitStack() as stack:
        servers = [stack.enter_context(_serve(engine, server_cpu)) for _ in range(_servers(options.users))]
        return _offer(engine, options, servers, client_cpu)


def _servers(users: int) -> int:
    """Number of servers; each needs a descriptor per connection. The engine needs none (direct ones)."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    per_server = users if most == resource.RLIM_INFINITY else max(1, most - SPARE_DESCRIPTORS)
    return math.ceil(users / per_server)


@dataclass(frozen=True, slots=True)
class Server:
    """A running reference server."""

    pid: int
    address: str


@contextmanager
def _serve(engine: Path, cpu: int) -> Iterator[Server]:
    command: list[str | Path] = [engine, "serve", "--bare", "--stdin-guard", "--cpus", str(cpu)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdin
    try:
        yield Server(process.pid, json.loads(process.stdout.readline())["address"])
    finally:
        process.stdin.close()
        process.wait(60)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--think-s", type=float, default=100.0)
    parser.add_argument("--ramp-s", type=float, default=120.0)
    parser.add_argument("--window-s", type=float, default=30.0)
    parser.add_argument("--engine", type=Path, default=None)
    return parser.parse_args()


def _plan(options: argparse.Namespace, addresses: list[str], cpu: int) -> dict[str, Any]:
    sources = options.users // USERS_PER_SOURCE + 1
    return {
        "version": 1,
        "target": {
            "url": f"http://{addresses[0]}",
            "addresses": addresses,
            "source_addresses": [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(sources)],
        },
        "driver": "io_uring",
        "threads": {"cpus": [cpu], "pin": True},
        "load": {
            "model": "closed",
            "users": options.users,
            "think": {"kind": "exponential", "mean_ms": options.think_s * 1000},
            "ramp_up_ms": options.ramp_s * 1000,
        },
        "scenarios": [{"steps": [{"method": "GET", "path": "/"}]}],
        "stop": {"after_ms": (options.ramp_s + PATIENCE_S + options.window_s + 30) * 1000},
        "window": {"mode": "commanded"},
        "timeouts": {"connect_ms": 60_000, "request_ms": 60_000},
    }


def _offer(engine: Path, options: argparse.Namespace, servers: list[Server], cpu: int) -> int:
    client = subprocess.Popen([engine, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdin
    assert client.stdout
    events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        assert client.stdout
        for line in client.stdout:
            events.put(json.loads(line))
        events.put({"event": "end"})

    threading.Thread(target=read, daemon=True).start()

    def send(message: dict[str, Any]) -> None:
        assert client.stdin
        client.stdin.write(json.dumps(message) + "\n")
        client.stdin.flush()

    send(_plan(options, [server.address for server in servers], cpu))
    ready: Ready | None = None
    rows: list[IntervalRow] = []
    done: dict[str, Any] | None = None
    commanded = False
    memory = (0, 0)
    give_up = time.monotonic() + options.ramp_s + PATIENCE_S
    while True:
        event = events.get()
        kind = event["event"]
        if kind == "end":
            break
        if kind == "ready":
            ready = Ready.model_validate(event)
        elif kind == "interval":
            row = IntervalRow.model_validate(event)
            rows.append(row)
            if len(rows) % 10 == 0:
                _progress(event)
            all_there = event["users"] == options.users and event["connections_open"] == options.users
            if not commanded and (all_there or time.monotonic() > give_up):
                commanded = True
                send({"command": "window", "duration_ms": options.window_s * 1000})
        elif kind == "window_closed":
            memory = (_resident_bytes(client.pid), sum(_resident_bytes(server.pid) for server in servers))
            send({"command": "stop"})
        elif kind == "finished":
            done = event
        elif kind == "error":
            print(event["message"], file=sys.stderr)
    client.stdin.close()
    client.wait(60)
    if ready is None or done is None:
        print("the engine ended without a report", file=sys.stderr)
        return 1
    report = EngineReport(
        ready=ready,
        rows=tuple(rows),
        reason=done["reason"],
        elapsed_ms=done["elapsed_ms"],
        totals=Counters.model_validate(done["totals"]),
        window=Window.model_validate(done["window"]) if done["window"] else None,
    )
    return _tell(options, report, done, memory)


def _tell(
    options: argparse.Namespace, report: EngineReport, done: dict[str, Any], memory: tuple[int, int]
) -> int:
    totals, window = done["totals"], done["window"]
    reached = max((row.connections_open or 0 for row in report.rows), default=0)
    evidence = Evidence(
        load=LoadFacts(
            model="closed",
            users=options.users,
            think_kind="exponential",
            think_mean_ms=options.think_s * 1000,
            ramp_up_s=options.ramp_s,
        ),
        engine=report,
        server=ServerIdentity(name="prony-engine serve"),
    )
    print(
        f"\nusers reached        {reached:,} of {options.users:,}, one engine thread, "
        f"driver {report.ready.driver}"
    )
    print(f"errors               {totals['failed']:,} {totals['errors'] or ''}")
    within = "within" if memory[0] <= BOUND_BYTES * options.users else "ABOVE"
    print(
        f"memory per user      engine {memory[0] / options.users:.0f} bytes, "
        f"servers {memory[1] / options.users:.0f} bytes "
        f"(resident, whole processes; engine {within} the bound of {BOUND_BYTES})"
    )
    if window:
        rate = window["completed"] / window["duration_s"]
        print(f"in the window        {rate:,.0f} requests/s over {window['duration_s']:.1f} s")
        service = window["service_time"]
        print(
            f"service time         mean {service['mean_ns'] / 1e6:.3f} ms, "
            f"max {service['max_ns'] / 1e6:.1f} ms"
        )
        thread = window["threads"][0]
        print(f"engine CPU           {thread['cpu_s'] / thread['wall_s']:.0%} of one CPU")
    for finding in (think(evidence, CheckLimits()), little(evidence, CheckLimits())):
        if finding:
            print(f"{finding.check:<21}{finding.code}: {finding.reason}")
    return 0 if reached == options.users else 1


def _progress(event: dict[str, Any]) -> None:
    print(
        f"{event['t_ms'] / 1000:6.0f} s  {event['users']:>9,} users  "
        f"{event['connections_open']:>9,} connections  "
        f"{event['completed']:>7,} requests  {event['failed']} failed",
        flush=True,
    )


def _kibibytes(file: Path, key: str) -> int:
    line = next(line for line in file.read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1])


def _resident_bytes(pid: int) -> int:
    return _kibibytes(Path(f"/proc/{pid}/status"), "VmRSS") * 1024


if __name__ == "__main__":
    sys.exit(main())
