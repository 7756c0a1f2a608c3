"""Slow requests where the truth is known: servers that stop on a schedule, or whose slow requests sleep and
know nothing of the stops. Is a collection named where it is the reason, and only there?

Part of `python -m prony.selftest --section explain`; half a minute for each. Must not know reports.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.explain.collector import Collector
from prony.explain.processes import Chosen
from prony.explain.profilers.async_profiler import AsyncProfiler
from prony.explain.profilers.base import Profiler
from prony.explain.slow import SlowRequests, requests_of, slow_requests
from prony.load.contract import EngineLoad, Slowest
from prony.load.engine import EngineRun
from prony.plan.load import ClosedLoad
from prony.plan.step import Step
from prony.plan.workload import Workload
from prony.selftest.tables import Say, table
from prony.server.build import async_profiler
from prony.server.jdk import find_jdks

WARM_S, PROFILED_S, USERS = 6.0, 20.0, 8
OPTIONS = ("-XX:+UseSerialGC", "-Xms512m", "-Xmx512m", "-Dsun.net.httpserver.nodelay=true")
"""A collection is one pause; responses are not held back for an acknowledgement (40 ms)."""
HEAD = ("server", "slowest 0.1 %", "beside a collection", "by chance", "named", "right")


@dataclass(frozen=True, slots=True)
class Staged:
    """A server, and whether its collections make its slowest requests slow."""

    name: str
    does: Mapping[str, int]
    by_collections: bool


STAGED = (
    Staged("collects its heap about every second", {"collect_ms": 1000, "ballast_mib": 12}, True),
    Staged("one request in 1000 sleeps 200 ms", {"sleep_each": 1000, "sleep_ms": 200}, False),
    Staged(
        "both: shorter collections, one request in 1000 sleeps 200 ms",
        {"collect_ms": 1000, "ballast_mib": 2, "sleep_each": 1000, "sleep_ms": 200},
        False,
    ),
)


class NotRun(Exception):
    """Why a server could not be run here, in one sentence."""


def run(staged: Staged, say: Say) -> SlowRequests:
    """Start it, warm it up, then load it with a profiler beside. Raises NotRun."""
    with _started(staged) as (pid, url):
        EngineRun(_load(url, WARM_S)).run_to_end(WARM_S + 30)
        collector = Collector(_profiler)
        collector.attach([pid])
        try:
            collector.begin(PROFILED_S)
            report = EngineRun(_load(url, PROFILED_S)).run_to_end(PROFILED_S + 30)
        finally:
            profile = collector.end()
    known = requests_of(report, profile)
    if known is None or profile.timeline_from_s is None:
        raise NotRun("; ".join(profile.missing) or "the engine told no slow request")
    found = slow_requests(known, profile)
    say(f"{staged.name}: {'; '.join(found.sentences) or 'nothing could be held against its slow requests'}")
    return found


def _load(url: str, seconds: float) -> EngineLoad:
    return EngineLoad(
        url=url,
        workload=Workload(name="hello", steps=(Step(path="/"),)),
        load=ClosedLoad(users=USERS),
        cpus=(),
        after_s=seconds,
        window="all",
        slowest=Slowest(),
    )


def _profiler(chosen: Chosen) -> Profiler:
    return AsyncProfiler(chosen.pid, *async_profiler(lambda _stream, _line: None))


@contextmanager
def _started(staged: Staged) -> Iterator[tuple[int, str]]:
    jdks = [one for one in find_jdks() if one.has_compiler and one.major >= 17]
    if not jdks:
        raise NotRun("no JDK 17 or newer with a compiler was found")
    source = Path(__file__).parent / "staged" / "Slow.java"
    does = [f"{name}={value}" for name, value in staged.does.items()]
    command = [str(jdks[0].java), *OPTIONS, str(source), *does]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            assert process.stdout is not None, "a pipe"
            port = process.stdout.readline().strip()
            if not port:
                raise NotRun(f"the server ended with exit code {process.wait()}")
            yield process.pid, f"http://127.0.0.1:{port}"
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def slow_table(say: Say) -> str:
    """A row for each server."""
    rows = []
    for staged in STAGED:
        try:
            rows.append(row(staged, run(staged, say)))
        except (NotRun, EnvironmentFault, OSError) as fault:
            rows.append((staged.name, "", "", "", "", f"not run: {fault}"))
    return table(HEAD, rows)


def row(staged: Staged, found: SlowRequests) -> tuple[str, ...]:
    """One server: right is a collection that is named where it is the reason, and only there."""
    what = f"{found.requests:,}, {found.over_ms:.3g} ms and more"
    one = next((one for one in found.beside if one.kind == "collection"), None)
    if one is None:
        return staged.name, what, "not read", "", "", "no"
    return (
        staged.name,
        what,
        f"{one.share:.0%} [{one.low:.0%}, {one.high:.0%}] of {one.events}",
        f"{one.chance:.0%}",
        "yes" if one.shown else "no",
        "yes" if one.shown == staged.by_collections else "no",
    )
