"""The same load by Prony and by other load generators, in shuffled rounds, and what explains differences.

Must not know how any tool is asked (prony.peers) or how it is printed.
"""

from __future__ import annotations

import json
import random
import statistics
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.experiment.bench import Bench, Progress
from prony.experiment.running import RunningLoad, measure_running
from prony.peers.base import NotOffered, Request, Tool
from prony.peers.runner import run
from prony.plan.workload import at_pointer
from prony.store import Store

PRONY = "prony"
AGREE = 0.05
"""Medians nearer than this share of Prony's agree."""
BUSY = 0.85
"""Share of the CPUs that a tool can use from which it, and not the server, may be what is measured."""
MISCOUNTED = 0.01
"""Share by which a tool's count and the server's may differ: what was in flight at its end."""
STATS_PATH, STATS_POINTER = "/__prony/stats", "/requests"
"""Where `prony-engine serve` says what it has counted."""
ONE_THREAD = frozenset({"ab", "wrk", "h2load"})
"""As they are asked here: all their work is one thread's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The load, alike for all."""

    connections: int
    seconds: int
    rate_per_s: int | None = None
    per_request: bool = False
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of one tool."""

    tool: str
    round: int
    requests: int
    """By its own account."""
    errors: int
    seconds: float
    """Asked for; of Prony, measured."""
    client_cpu_s: float | None
    """By the kernel."""
    wall_s: float
    counted: int | None
    """By the server, in the same time; None when it does not count."""
    failure: str | None = None
    verdict: str | None = None
    finding: str | None = None
    """Prony's: the check that decided, with its reason."""
    identifier: str | None = None

    @property
    def per_s(self) -> float:
        """Requests per second: the server's count where there is one, else the tool's own."""
        return (self.requests if self.counted is None else self.counted) / self.seconds

    def busy(self, cpus: int) -> float | None:
        """Share of the CPUs that it can use."""
        if self.client_cpu_s is None or self.wall_s <= 0:
            return None
        return self.client_cpu_s / self.wall_s / (1 if self.tool in ONE_THREAD else cpus)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a tool says over all rounds, beside Prony."""

    tool: str
    version: str
    turns: tuple[Turn, ...]
    per_s: float | None
    """Median over rounds; None when no run ended well."""
    ratio: float | None
    """To Prony's median."""
    agrees: bool | None
    check: str | None = None
    """Which check explains a difference …"""
    why: str = ""
    """… in a sentence."""


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The whole."""

    url: str
    asked: Asked
    rounds: int
    seed: int
    client_cpus: tuple[int, ...]
    opinions: tuple[Opinion, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    """Tool -> why it did not run, and how to get it."""


Counter = Callable[[], int | None]


def counter_of(url: str, path: str = STATS_PATH, pointer: str = STATS_POINTER) -> Counter:
    """Asks a server how many requests it has read; None when it does not count."""

    def count() -> int | None:
        try:
            with urllib.request.urlopen(url.rstrip("/") + path, timeout=5) as answer:
                found = at_pointer(json.loads(answer.read(1 << 20)), pointer)
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    return count


def second_opinion(
    load: RunningLoad, asked: Asked, tools: Sequence[Tool], *, rounds: int, bench: Bench, store: Store,
    progress: Progress, count: Counter,
) -> SecondOpinion:  # fmt: skip
    """Run all. Raises EnvironmentFault when Prony itself cannot measure."""
    cpus = bench.partition.client
    found: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    request = Request(asked, load.target.url, asked.seconds, 0.0, "", cpus[0], load.seed)
    for tool in tools:
        program = tool.find()
        if program is None:
            left_out[tool.name] = f"it is not installed: {tool.install}"
            continue
        try:
            tool.command(program, request)
            found[tool.name] = program
        except NotOffered as reason:
            left_out[tool.name] = str(reason)
    by_name = {tool.name: tool for tool in tools}
    draw = random.Random(load.seed)
    turns: list[Turn] = []
    for number in range(1, rounds + 1):
        for name in draw.sample([PRONY, *found], len(found) + 1):
            progress.note(f"round {number} of {rounds}: {name}")
            if name == PRONY:
                turns.append(_own(load, number, bench, store, progress, count))
            else:
                turns.append(_foreign(by_name[name], found[name], request, number, cpus, count))
    versions = {name: by_name[name].version(program) for name, program in found.items()}
    return SecondOpinion(
        load.target.url, asked, rounds, load.seed, tuple(cpus), opinions(turns, versions, len(cpus)), left_out
    )


def _own(
    load: RunningLoad, number: int, bench: Bench, store: Store, progress: Progress, count: Counter
) -> Turn:
    before, began_s = count(), time.monotonic()
    identifier = measure_running(load, bench, store, progress)
    wall_s = time.monotonic() - began_s
    after = count()
    trial = store.trials(identifier)[0]
    report = trial.record.evidence.engine
    window = None if report is None else report.window
    if report is None or window is None:
        raise EnvironmentFault(f"{identifier} holds no measured part; see: prony results show {identifier}")
    threads = [thread.cpu_s for thread in window.threads]
    used_s = sum(cpu_s for cpu_s in threads if cpu_s is not None) if None not in threads else None
    worst = trial.judgement.worst
    return Turn(
        PRONY, number, window.completed, window.failed, window.duration_s, used_s,
        min(wall_s, window.duration_s),
        None if before is None or after is None else after - before,
        verdict=trial.judgement.verdict.value,
        finding=None if worst is None else f"{worst.check}: {worst.reason}",
        identifier=identifier,
    )  # fmt: skip


def _foreign(
    tool: Tool, program: Path, request: Request, number: int, cpus: Sequence[int], count: Counter
) -> Turn:
    before = count()
    ran = run(tool, program, request, cpus)
    after = count()
    return Turn(
        tool.name, number, ran.claim.requests, ran.claim.errors, float(request.seconds), ran.cpu_s,
        ran.wall_s,
        None if before is None or after is None else after - before,
        failure=ran.failure,
    )  # fmt: skip


def opinions(turns: Sequence[Turn], versions: dict[str, str], cpus: int) -> tuple[Opinion, ...]:
    """The tools beside Prony, with what explains their differences. Pure."""
    own = [turn for turn in turns if turn.tool == PRONY]
    reference = statistics.median(turn.per_s for turn in own) if own else None
    names = [PRONY, *(name for name in versions)]
    found = []
    for name in names:
        mine = tuple(turn for turn in turns if turn.tool == name)
        good = [turn.per_s for turn in mine if turn.failure is None]
        median = statistics.median(good) if good else None
        ratio = median / reference if median is not None and reference else None
        agrees = None if ratio is None else abs(ratio - 1) <= AGREE
        check, why = _explained(mine, own, cpus, agrees)
        found.append(Opinion(name, versions.get(name, ""), mine, median, ratio, agrees, check, why))
    return tuple(found)


def _explained(
    turns: Sequence[Turn], own: Sequence[Turn], cpus: int, agrees: bool | None
) -> tuple[str | None, str]:
    """The first check that accounts for a difference, the gravest first."""
    failed = next((turn.failure for turn in turns if turn.failure), None)
    if failed is not None:
        return "errors", failed
    if not turns:
        return None, ""
    for turn in turns:
        if turn.counted is not None and abs(turn.counted - turn.requests) > max(
            turn.counted * MISCOUNTED, 2 * 64
        ):
            return "counts", f"it says {turn.requests} requests, the server counted {turn.counted}"
    errors, requests = sum(turn.errors for turn in turns), sum(turn.requests for turn in turns)
    if errors > 0.01 * max(1, requests):
        return "errors", f"{errors} of its {requests} requests failed"
    if agrees is not False:
        return None, ""
    busiest = max((turn.busy(cpus) or 0.0 for turn in turns), default=0.0)
    if turns[0].tool != PRONY and busiest >= BUSY:
        return "client", f"it used {busiest:.0%} of the CPU that it can use: its own limit is measured"
    slower = bool(own) and max(turn.per_s for turn in turns) < min(turn.per_s for turn in own)
    finding = next((turn.finding for turn in own if turn.finding), None)
    if finding is not None and not (slower and finding.startswith("client:")):
        check, _, reason = finding.partition(": ")
        return check, f"of Prony's own run: {reason}"
    if slower and all(turn.counted is not None for turn in own):
        carried = statistics.median(turn.per_s for turn in own)
        return (
            "client",
            f"the server counted {carried:,.0f}/s under the same load by Prony: the tool is the limit",
        )
    rates = [turn.per_s for turn in (*turns, *own)]
    spread = max(turn.per_s for turn in own) / max(1e-9, min(turn.per_s for turn in own)) - 1
    if spread > AGREE:
        return "steady", f"Prony's own rounds differ by {spread:.0%}: the server or the machine is not level"
    return None, f"no check explains it ({min(rates):.0f} to {max(rates):.0f}/s); more rounds would tell"
