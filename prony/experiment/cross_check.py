"""The rounds of a cross-check: Prony's own trial and a run of each other tool, in shuffled order.

Must not know how a tool is asked (prony.peers), or what its claim is worth (prony.compare.cross_check).
"""

from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.compare.cross_check import PRONY
from prony.peers.base import NotOffered, Request, Tool
from prony.peers.runner import run
from prony.plan.plan import CrossCheck, Part, ToolRun
from prony.plan.workload import at_pointer

STATS_PATH, STATS_POINTER = "/__prony/stats", "/requests"
"""Where `prony-engine serve` says what it has counted."""

Counter = Callable[[], int | None]


def counter_of(url: str, path: str = STATS_PATH, pointer: str = STATS_POINTER) -> Counter:
    """Asks a server how many requests it has read; None when it does not count."""

    def count() -> int | None:
        try:
            with urllib.request.urlopen(url.rstrip("/") + path, timeout=5) as response:
                found = at_pointer(json.loads(response.read(1 << 20)), pointer)
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    return count


def counted_in(count: Counter, offer: Callable[[], None]) -> int | None:
    """How many requests the server read while a load was offered; None when it does not count."""
    before = count()
    offer()
    after = count()
    return None if before is None or after is None else after - before


def asked_of(tools: Sequence[Tool], asked: CrossCheck, cpu: int, seed: int) -> CrossCheck:
    """The same, with the version of each tool that can be asked and the reason for each that cannot."""
    versions: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for tool in tools:
        program = tool.find()
        if program is None:
            left_out[tool.name] = f"it is not installed: {tool.install}"
            continue
        try:
            tool.command(program, _request(asked, cpu, seed))
            versions[tool.name] = tool.version(program)
        except NotOffered as reason:
            left_out[tool.name] = str(reason)
    return asked.model_copy(update={"versions": versions, "left_out": left_out})


@dataclass(frozen=True, slots=True)
class Rounds:
    """Runs the tools of a cross-check beside Prony's own trials."""

    tools: dict[str, Tool]
    cpus: Sequence[int]
    seed: int

    def order(self, part: Part, round_: int) -> list[str]:
        """Prony and the tools, as this round runs them."""
        assert part.cross_check is not None
        names = [PRONY, *part.cross_check.versions]
        return random.Random(f"{self.seed}/{round_}").sample(names, len(names))

    def run(self, name: str, part: Part, round_: int) -> ToolRun:
        """One run of one tool. Raises EnvironmentFault."""
        asked, tool = part.cross_check, self.tools[name]
        assert asked is not None
        program = tool.find() or Path(name)
        count = counter(asked)
        before = count()
        ran = run(tool, program, _request(asked, self.cpus[0], self.seed), self.cpus)
        after = count()
        return ToolRun(
            tool=name,
            round=round_,
            requests=ran.claim.requests,
            errors=ran.claim.errors,
            seconds=float(asked.seconds),
            client_cpu_s=ran.cpu_s,
            wall_s=ran.wall_s,
            counted=None if before is None or after is None else after - before,
            failure=ran.failure,
        )


def counter(asked: CrossCheck) -> Counter:
    """Who asks the server of a cross-check for its count."""
    if asked.counts is None:
        return lambda: None
    return counter_of(asked.counts.base, asked.counts.path, asked.counts.pointer)


def _request(asked: CrossCheck, cpu: int, seed: int) -> Request:
    return Request(asked, asked.url, asked.seconds, 0.0, "", cpu, seed)
