"""Slow requests compared with a known truth: servers that stop or hold a lock on a schedule, or whose slow
requests sleep independently. A collection or a lock must be named if it is the reason, and only then.

Part of `prony selftest --section explain`; half a minute per server, a minute with a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prony.errors import EnvironmentFault
from prony.evidence.profile import EventKind
from prony.load.contract import EngineLoad, Slowest
from prony.load.engine import EngineRun
from prony.plan.load import ClosedLoad
from prony.plan.step import Step
from prony.plan.workload import Workload
from prony_explain.collector import Collector
from prony_explain.slow import NAMES, SlowRequests, requests_of, slow_requests
from prony_selftest.programs import FOLDER, NotRun, java, profiler, started
from prony_selftest.tables import Say, table

WARM_S, PROFILED_S, USERS = 6.0, 20.0, 8
WITH_LOCK_S = 60.0
"""Waits for a lock are recorded in the last slice only, a twelfth of it."""
OPTIONS = ("-XX:+UseSerialGC", "-Xms512m", "-Xmx512m", "-Dsun.net.httpserver.nodelay=true")
"""A collection is one pause; responses do not wait for an acknowledgement (40 ms)."""
HEAD = ("server", "slowest 0.1 %", "event", "overlap", "by chance", "named", "right")


@dataclass(frozen=True, slots=True)
class Staged:
    """A server, and whether events of a kind cause its slow requests."""

    name: str
    does: Mapping[str, int]
    kind: EventKind
    the_reason: bool
    seconds: float = PROFILED_S


STAGED = (
    Staged("collects its heap about every second", {"collect_ms": 1000, "ballast_mib": 12}, "collection",
        True),
    Staged("one request in 1000 sleeps 200 ms", {"sleep_each": 1000, "sleep_ms": 200}, "collection", False),
    Staged("both: shorter collections, one request in 1000 sleeps 200 ms",
        {"collect_ms": 1000, "ballast_mib": 2, "sleep_each": 1000, "sleep_ms": 200}, "collection", False),
    Staged("holds its lock for 20 ms about every 400 ms", {"lock_each": 400, "lock_ms": 20}, "lock", True,
        WITH_LOCK_S),
    Staged("both: holds its lock for 20 ms, one request in 1000 sleeps 40 ms",
        {"lock_each": 400, "lock_ms": 20, "sleep_each": 1000, "sleep_ms": 40}, "lock", False, WITH_LOCK_S),
)  # fmt: skip


def run(staged: Staged, say: Say) -> SlowRequests:
    """Warm up, then load with a profiler attached. Raises NotRun."""
    with _started(staged) as (pid, url):
        EngineRun(_load(url, WARM_S)).run_to_end(WARM_S + 30)
        collector = Collector(profiler)
        collector.attach([pid])
        try:
            collector.begin(staged.seconds)
            report = EngineRun(_load(url, staged.seconds)).run_to_end(staged.seconds + 30)
        finally:
            profile = collector.end()
    known = requests_of(report, profile)
    if known is None or profile.timeline_from_s is None:
        raise NotRun("; ".join(profile.missing) or "the engine reported no slow requests")
    slow = slow_requests(known, profile)
    say(f"{staged.name}: {'; '.join(slow.sentences) or 'no event could be compared with its slow requests'}")
    return slow


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


@contextmanager
def _started(staged: Staged) -> Iterator[tuple[int, str]]:
    does = [f"{name}={value}" for name, value in staged.does.items()]
    with started([java(17), *OPTIONS, str(FOLDER / "Slow.java"), *does]) as program:
        yield program.process.pid, f"http://127.0.0.1:{program.line()}"


def slow_table(say: Say) -> str:
    """A row per server."""
    rows = []
    for staged in STAGED:
        try:
            rows.append(row(staged, run(staged, say)))
        except (NotRun, EnvironmentFault, OSError) as fault:
            rows.append((staged.name, "", NAMES[staged.kind], "", "", "", f"not run: {fault}"))
    return table(HEAD, rows)


def row(staged: Staged, slow: SlowRequests) -> tuple[str, ...]:
    """A server's row; right: the kind of event is named if, and only if, it is the reason."""
    what = f"{slow.requests:,}, {slow.over_ms:.3g} ms and more"
    overlap = next((kind for kind in slow.beside if kind.kind == staged.kind), None)
    if overlap is None:
        return staged.name, what, NAMES[staged.kind], "not read", "", "", "no"
    return (
        staged.name,
        what,
        NAMES[staged.kind],
        f"{overlap.share:.0%} [{overlap.low:.0%}, {overlap.high:.0%}] of {overlap.events}",
        f"{overlap.chance:.0%}",
        "yes" if overlap.shown else "no",
        "yes" if overlap.shown == staged.the_reason else "no",
    )
